"""A world brought to the end of any sequence of actions: reset and replay, with a look at what comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from environments.types import Action, Busy, End, Episode, Instance, Kind, Observation, Start, Step, World, WorldError
from tasks.progress import log

Result = TypeVar("Result")
TRIES = 3  # of one action: a world that breaks under it each time is given up
_NO_LIMIT = 1_000_000_000


class Diverged(WorldError):
    """A replayed path showed another screen than the first time: its world is not deterministic."""


class Walker:
    """One goal instance, open for walks.

    Args:
        steps: how many actions may be taken, those of replays not counted; None is no limit.
        seconds: for how long actions may be taken; None is no limit.
    """

    def __init__(
        self, world: World, instance: Instance, steps: int | None = None, seconds: float | None = None
    ) -> None:
        self._world, self._instance = world, instance
        self._steps = _NO_LIMIT if steps is None else steps
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._stands: list[Action] | None = None  # the actions that led to where the world stands
        self.taken = self.replayed = self.breaks = 0

    @cached_property
    def start(self) -> Start:
        """The beginning of the episode. Raises WorldError when the world does not start."""
        start = self._again(self._reset)
        self._stands = []
        return replace(start, instruction=self._instance.asked or start.instruction)

    @property
    def left(self) -> int:
        """Actions that may still be taken."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return 0
        return max(0, self._steps - self.taken)

    def walk(self, steps: Sequence[Step], screen: Observation, action: Action) -> Observation:
        """The screen after ``action``, taken where ``steps`` led to: on ``screen``.

        Raises:
            Diverged: the way there shows another screen than it did.
            WorldError: the world broke under the action, each time it was tried.
        """
        self.taken += 1
        return self._again(lambda: self._act(steps, screen, action))

    def verdict(self, episode: Episode) -> bool:
        """The world's verdict where an episode ended, after playing it again.

        Raises:
            Diverged: another screen shows than when it was recorded.
            WorldError: the world broke, each time it was tried.
        """
        return self._again(lambda: self._judge(episode))

    def end(self, action: Action, length: int) -> End | None:
        """Why the episode is over after an action, the ``length``-th; None when it goes on."""
        if action.kind is Kind.COMPLETE:
            return End.COMPLETED
        if self._world.ended:
            return End.WORLD
        return End.STEP_LIMIT if length >= self._instance.goal.max_steps else None

    def _again(self, act: Callable[[], Result]) -> Result:
        """What an act in the world gives. Where the world breaks under it, it starts anew and tries again."""
        for _ in range(TRIES - 1):
            try:
                return act()
            except (Busy, Diverged):
                raise
            except WorldError as error:
                log.warning("%s: the world broke and starts anew: %s", self._instance.name, error)
                self.breaks += 1
                self._stands = None
        return act()

    def _act(self, steps: Sequence[Step], screen: Observation, action: Action) -> Observation:
        before = [step.action for step in steps]
        if self._stands != before:
            self._enter(steps, screen)
        self._stands = None  # unknown, should the world break now
        seen = self._world.step(action)
        self._stands = [*before, action]
        return seen

    def _judge(self, episode: Episode) -> bool:
        self._enter(episode.acts, episode.last)
        return self._world.verdict()

    def _reset(self) -> Start:
        return self._world.reset(self._instance.goal, self._instance.seed)

    def _enter(self, steps: Sequence[Step], screen: Observation) -> None:
        """Bring the world to ``screen`` by ``steps``."""
        self._stands = None
        seen = self._reset().observation
        for place, step in enumerate(steps):
            self._compare(place, step.observation, seen)
            seen = self._world.step(step.action)
            self.replayed += 1
        self._compare(len(steps), screen, seen)

    def _compare(self, place: int, first: Observation, again: Observation) -> None:
        if first == again:
            return
        what = "pixels" if first.elements == again.elements else "elements"
        raise Diverged(f"{self._instance.name}: after {place} actions the {what} differ from the first time")
