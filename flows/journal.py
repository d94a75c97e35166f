"""What an unfinished round has done, so that a stopped one goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Self

from tasks import versions
from tasks.errors import WorkspaceError
from tasks.files import STATE, WORK, read_json, remove, write_json

JOURNAL = WORK / "round.json"
FOUND, COMMIT = "commit the seed", "commit"
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
        """The journal of the round that was stopped, if one was.

        Raises:
            WorkspaceError: it was written by another version of Ratchet.
        """
        try:
            return cls(**read_json(JOURNAL)) if JOURNAL.exists() else None
        except (TypeError, ValueError) as error:
            raise WorkspaceError(
                f"{JOURNAL}: not a journal ({error}); give that round up with `rm {JOURNAL}`"
            ) from error

    @classmethod
    def open(cls) -> Self:
        """The journal of the round that was stopped, or of a new one, which is not saved yet.

        Raises:
            WorkspaceError: git is in the middle of something, a file that rounds commit is dirty, there is no remote,
                the state is not the one that git names, or the round was made already; for a stopped round, that the
                state is no longer the one it started from.
        """
        if stopped := cls.read():
            stopped._check_state()
            return stopped
        versions.check_clean()
        versions.check_remote()
        versions.check_state()
        number = versions.round_number()
        versions.check_untagged(number)
        return cls(number, versions.head(), founding=not versions.has_state())

    def _check_state(self) -> None:
        if COMMIT in self.done or (self.founding and FOUND not in self.done):
            return  # the state is being moved
        versions.check_state()
        starts = versions.round_number()
        if starts != self.round:
            raise WorkspaceError(
                f"{STATE}: starts round {starts}, and round {self.round} was stopped here; go back to its commit "
                f"{self.head[:8]} and `dvc checkout`, or give it up with `rm {JOURNAL}`"
            )

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
