"""Scripted agents that solve MiniWoB++ pages from the instruction and the screen alone.

They make the first demonstrations, and show in tests that the goals can be reached through the actions
and elements an agent has. An oracle is one short function a page: it names the next action, or None
when the work is done. The modules here hold them by kind of page.
"""

from __future__ import annotations

from collections.abc import Sequence

from environments.oracles import (  # noqa: F401  they register
    clicks,
    feeds,
    flights,
    forms,
    mail,
    puzzles,
    sights,
    texts,
    widgets,
)
from environments.oracles.turn import ORACLES, Turn
from environments.types import COMPLETE, Action, Observation


class NoOracle(LookupError):
    """No oracle is written for a page."""


def next_action(page: str, instruction: str, observation: Observation, taken: Sequence[Action]) -> Action:
    """The oracle's action for the screen it sees, after the actions taken; ``complete`` when all is done.

    Raises:
        NoOracle: when no oracle is written for the page.
        ValueError: when the instruction is not worded as the page words it.
    """
    if page not in ORACLES:
        raise NoOracle(f"page {page!r} has no oracle; there is one for {', '.join(sorted(ORACLES))}")
    return ORACLES[page](Turn(instruction, observation, taken)) or COMPLETE


def known_action(page: str, instruction: str, observation: Observation, taken: Sequence[Action]) -> Action | None:
    """What :func:`next_action` says; None where the script is off its way and does not know what to do."""
    try:
        return next_action(page, instruction, observation, taken)
    except Exception:  # a script off its way raises whatever its lists and patterns do
        return None


def pages() -> frozenset[str]:
    """The pages that have an oracle."""
    return frozenset(ORACLES)
