"""A world brought to the end of any sequence of actions: reset and replay, with a look at what comes back."""

from __future__ import annotations

import time
from collections.abc import Sequence

from environments.types import Action, End, Instance, Kind, Observation, Start, Step, World, WorldError
from tasks.progress import log

_TRIES = 2  # of a walk: a world that broke under it starts anew


class Diverged(WorldError):
    """A replayed path showed another screen than the first time: its world is not deterministic."""


class Walker:
    """One goal instance, open for walks.

    Args:
        steps: how many actions may be taken, those of replays not counted; None is no limit.
        seconds: for how long actions may be taken; None is no limit.

    Raises:
        WorldError: the world cannot start.
    """

    def __init__(
        self, world: World, instance: Instance, steps: int | None = None, seconds: float | None = None
    ) -> None:
        self._world, self._instance = world, instance
        self._steps = steps
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._stands: list[Action] | None = []  # the actions that led to where the world stands
        self.start: Start = world.reset(instance.goal, instance.seed)
        self.taken = self.replayed = 0

    @property
    def left(self) -> int:
        """Actions that may still be taken."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return 0
        return 1_000_000_000 if self._steps is None else max(0, self._steps - self.taken)

    def walk(self, steps: Sequence[Step], screen: Observation, action: Action) -> Observation:
        """The screen after ``action``, taken where ``steps`` led to: on ``screen``.

        Raises:
            Diverged: the way there shows another screen than it did.
            WorldError: the world broke under the action, and once more when it was taken again.
        """
        self.taken += 1
        for left in reversed(range(_TRIES)):
            try:
                self._enter(steps, screen)
                self._stands = None  # unknown, should the world break now
                seen = self._world.step(action)
            except Diverged:
                raise
            except WorldError as error:
                if not left:
                    raise
                log.warning("%s: the world broke and starts anew: %s", self._instance.name, error)
            else:
                self._stands = [*(step.action for step in steps), action]
                return seen
        raise AssertionError("a walk ends with a screen or an error")

    def end(self, action: Action, length: int) -> End | None:
        """Why the episode is over after an action, the ``length``-th; None when it goes on."""
        if action.kind is Kind.COMPLETE:
            return End.COMPLETED
        if self._world.ended:
            return End.WORLD
        return End.STEP_LIMIT if length >= self._instance.goal.max_steps else None

    def _enter(self, steps: Sequence[Step], screen: Observation) -> None:
        """Bring the world to ``screen``, where it is not there already."""
        before = [step.action for step in steps]
        if self._stands == before:
            return
        self._stands = None
        seen = self._world.reset(self._instance.goal, self._instance.seed).observation
        for place, step in enumerate(steps):
            self._compare(place, step.observation, seen)
            seen = self._world.step(step.action)
            self.replayed += 1
        self._compare(len(steps), screen, seen)
        self._stands = before

    def _compare(self, place: int, first: Observation, again: Observation) -> None:
        if first == again:
            return
        what = "pixels" if first.elements == again.elements else "elements"
        raise Diverged(f"{self._instance.name}: after {place} actions the {what} differ from the first time")
