"""The truth about a goal instance: how far the oracle is from success after any path, and the world's verdict."""

from __future__ import annotations

from collections.abc import Sequence

from environments.oracles import known_action
from environments.types import COMPLETE, Action, Candidate, End, Episode, Instance, Observation, Step, World
from tasks.search.walker import Walker

Steps = tuple[Step, ...]


class Ground:
    """One goal instance in a world of its own, entered again by reset and replay (:mod:`tasks.search.walker`)."""

    def __init__(self, world: World, instance: Instance) -> None:
        self.instance = instance
        self._world, self._walker = world, Walker(world, instance)
        self.start = self._walker.start

    def take(self, steps: Steps, screen: Observation, action: Action) -> tuple[Steps, Observation, End | None]:
        """The path one action on: its steps, the screen after them, and why it is over if it is."""
        seen = self._walker.walk(steps, screen, action)
        grown = (*steps, Step(screen, action))
        return grown, seen, self._walker.end(action, len(grown))

    def distance(self, steps: Steps, screen: Observation, end: End | None = None) -> int | None:
        """Actions that the oracle takes from here to success, a `complete` counted; None when it does not get there.

        It does not get there when the goal's step limit, counted from the start of the path, comes first, when the
        world is over without success, and when the script does not know what to do on such a screen. ``end`` is
        why the path is over: then the world, which stands at its end, is asked at once.
        """
        before = len(steps)
        while end is None:
            taken = [step.action for step in steps]
            action = known_action(self.instance.goal.page, self.start.instruction, screen, taken)
            if action is None:
                return None
            steps, screen, end = self.take(steps, screen, action)
        return len(steps) - before if self._world.verdict() else None

    def right(
        self, steps: Steps, screen: Observation, options: Sequence[Candidate]
    ) -> list[tuple[Candidate, bool, bool]]:
        """Of each candidate: whether it is right here, and whether the goal is still in reach after it.

        Right is an action that brings the goal nearer: after it the oracle reaches success within the step limit,
        in fewer actions than it needs without it. What changes nothing, and a detour that must be undone, leave
        the goal in reach and are not right.
        """
        before = self.distance(steps, screen)
        found = []
        for option in options:
            after = self.distance(*self.take(steps, screen, option.action))
            nearer = before is not None and after is not None and after < before
            found.append((option, nearer, after is not None))
        return found

    def play(self, actions: Sequence[Action]) -> tuple[Episode, bool]:
        """An episode of given actions, up to where the world is over; and the world's verdict."""
        steps, screen, end = Steps(()), self.start.observation, None
        for action in actions:
            if end is None:
                steps, screen, end = self.take(steps, screen, action)
        if not steps:
            steps, screen, end = self.take(steps, screen, COMPLETE)
        return Episode(self.instance, self.start.instruction, steps, screen, end or End.BUDGET), self._world.verdict()

    def verdict(self, episode: Episode) -> bool:
        """What the world says at the end of an episode that another walker has played."""
        return self.play([step.action for step in episode.steps])[1]
