"""What every world of ours has in common: when an episode may be stepped, how it ends, what a break does to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from environments.types import Action, EpisodeOver, Goal, Kind, Observation, Start, WorldError

Held = TypeVar("Held")


class EpisodicWorld(ABC):
    """A :class:`environments.types.World` but for how it begins, acts, judges and lets go.

    What breaks closes the world, and the next reset starts it anew.
    """

    def __init__(self) -> None:
        self._last: Observation | None = None
        self._ended = True

    def reset(self, goal: Goal, seed: int) -> Start:
        """Begin the episode of a goal instance.

        Raises:
            WorldError: when there is no such goal, or the world cannot start or broke.
        """
        self._ended, self._last = False, None
        with self._closed_when_broken():
            start = self._begin(goal, seed)
        self._last = start.observation
        return start

    def step(self, action: Action) -> Observation:
        """Act, let the world settle, observe. ``complete`` changes nothing and ends the episode.

        Raises:
            EpisodeOver: when the episode has ended, or none has begun.
            WorldError: when the world broke; the episode is over.
        """
        if self._ended or self._last is None:
            raise EpisodeOver(f"{action}: the episode has ended or not begun; call reset first")
        if action.kind is Kind.COMPLETE:
            self._ended = True
            return self._last
        with self._closed_when_broken():
            self._last = self._act(action)
        return self._last

    @property
    def ended(self) -> bool:
        """Whether the world takes no more actions: by itself, by ``complete``, by a break, or before a reset."""
        return self._ended

    def verdict(self) -> bool:
        """Whether the goal is reached.

        Raises:
            EpisodeOver: before a reset.
            WorldError: when the world can no longer tell.
        """
        if self._last is None:
            raise EpisodeOver("no episode has begun: there is no verdict; call reset first")
        return self._reached()

    def close(self) -> None:
        """End the episode and let go of what it held. A second call has no effect."""
        self._ended = True
        self._release()

    @contextmanager
    def _closed_when_broken(self) -> Iterator[None]:
        try:
            yield
        except WorldError:
            self.close()
            raise

    @abstractmethod
    def _begin(self, goal: Goal, seed: int) -> Start:
        """Instruction and first observation; sets ``_ended`` where the world is over at once."""

    @abstractmethod
    def _act(self, action: Action) -> Observation:
        """What is seen after an action on ``_last``; sets ``_ended`` where the world is over by it."""

    @abstractmethod
    def _reached(self) -> bool:
        """Whether the goal is reached; False where what would tell has been let go."""

    @abstractmethod
    def _release(self) -> None:
        """Let go of what is held. A second call has no effect."""


def held(thing: Held | None) -> Held:
    """What a world holds while an episode is under way."""
    if thing is None:
        raise EpisodeOver("nothing is held: no episode is under way; call reset first")
    return thing
