"""What an unfinished round has done, so that a stopped one goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Self

from tasks import versions
from tasks.files import WORK, read_json, remove, write_json

JOURNAL = WORK / "round.json"
# When the work on this round began, in seconds since the epoch, where that is before its journal is opened.
BEGAN: ContextVar[float | None] = ContextVar("BEGAN", default=None)


@dataclass
class Journal:
    """``.ratchet/round.json``: there from a round's first moment to its last.

    ``head`` is the commit the round started from; ``founding`` whether it makes the seed first; ``at`` the
    stage or step under way; ``done`` the steps taken and what each gave; ``stages`` seconds of each stage's
    own work; ``spent_s`` seconds until the last save.
    """

    round: int
    head: str
    founding: bool
    at: str = "begin"
    mlflow_run: str | None = None
    spent_s: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._clock = BEGAN.get() or time.time()

    @classmethod
    def read(cls) -> Self | None:
        """The journal of the round that was stopped, if one was."""
        return cls(**read_json(JOURNAL)) if JOURNAL.exists() else None

    @classmethod
    def begin(cls) -> Self:
        """The journal of a new round, not yet saved.

        Raises:
            WorkspaceError: git is in the middle of something, a file that rounds commit is dirty, or the round
                was made already.
        """
        versions.check_clean()
        number = versions.round_number()
        versions.check_untagged(number)
        return cls(number, versions.head(), founding=not versions.has_state())

    def save(self) -> None:
        """Write it, whole or not at all."""
        now = time.time()
        self.spent_s += now - self._clock
        self._clock = now
        write_json(JOURNAL, asdict(self))

    def begin_step(self, name: str) -> None:
        """Note what is under way."""
        self.at = name
        self.save()

    def once(self, step: str, action: Callable[[], str]) -> str:
        """Take a step unless it was taken, and give what it gave. Killed before it is noted, it is taken again."""
        if step not in self.done:
            self.begin_step(step)
            self.done[step] = action()
            self.save()
        return self.done[step]

    def close(self) -> None:
        """The round is over."""
        remove(JOURNAL)
