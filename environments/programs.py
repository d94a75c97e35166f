"""What the programs that worlds start have in common."""

from __future__ import annotations

import os
from pathlib import Path

_KEPT = ("PATH", "LD_LIBRARY_PATH")


def kept_variables() -> dict[str, str]:
    """What a program is given of this process's environment: a person's own fonts and language would change pixels."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def last_words(log: Path) -> str:
    """The last line of a process's log that says something."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")[:300]
