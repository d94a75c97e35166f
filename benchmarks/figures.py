"""How the benchmarks print a share."""

from __future__ import annotations

from tasks.evidence.statistics import wilson


def within(wins: int, of: int, places: int = 2) -> str:
    """Wilson's 95 % interval of a share: all of it, where there is nothing to share."""
    low, high = wilson(wins, of) or (0.0, 1.0)
    return f"[{low:.{places}f}, {high:.{places}f}]"
