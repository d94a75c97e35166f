"""Greedy episodes, several side by side: what the agent does when nothing helps it. The world judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial

from environments.registry import open_world
from environments.types import Candidate, End, Episode, Instance, Kind, Observation, Step, World, WorldError
from models.prompts import Context, context_at
from tasks.progress import log
from tasks.search import Proposer

MAX_BREAKS = 2  # of the world in one episode: one more, and it is recorded as crashed


class Attempt:
    """An episode under way in a world of its own. Where the world breaks, it is entered again by reset and replay."""

    def __init__(self, instance: Instance, world: World) -> None:
        self.instance = instance
        self.end: End | None = None
        self.breaks = 0
        self._world, self._entered = world, False
        self._instruction, self._screen = "", Observation(b"", ())
        self._steps: list[Step] = []
        self._guarded(lambda: None)

    @property
    def context(self) -> Context:
        """What the agent is to answer."""
        return context_at(self._instruction, self._steps, self._screen)

    def take(self, options: Sequence[Candidate]) -> None:
        """Take the first of the agent's candidates; none of them ends the episode."""
        if not options:
            self.end = End.INVALID
            return
        self._guarded(partial(self._act, options))

    def finish(self) -> tuple[Episode, bool]:
        """The episode, and the world's verdict (False for a crash)."""
        end = self.end or End.STEP_LIMIT
        episode = Episode(self.instance, self._instruction, tuple(self._steps), self._screen, end)
        return episode, end is not End.CRASHED and self._world.verdict()

    def _guarded(self, act: Callable[[], None]) -> None:
        """Act in the world; where it breaks, come back and act again. Too many breaks are a crash."""
        while self.end is None:
            try:
                if not self._entered:
                    self._enter()
                return act()
            except WorldError as error:
                log.warning("%s: the world broke: %s", self.instance.name, error)
                self._entered = False
                self.breaks += 1
                self.end = End.CRASHED if self.breaks > MAX_BREAKS else None

    def _enter(self) -> None:
        """Come to the end of the steps so far."""
        start = self._world.reset(self.instance.goal, self.instance.seed)
        self._instruction, self._screen = start.instruction, start.observation
        for step in self._steps:
            self._screen = self._world.step(step.action)
        self._entered = True

    def _act(self, options: Sequence[Candidate]) -> None:
        action = options[0].action
        screen = self._world.step(action)
        self._steps.append(Step(self._screen, action, tuple(options)))
        self._screen = screen
        if action.kind is Kind.COMPLETE:
            self.end = End.COMPLETED
        elif self._world.ended:
            self.end = End.WORLD
        elif len(self._steps) >= self.instance.goal.max_steps:
            self.end = End.STEP_LIMIT


def greedy(agent: Proposer, instances: Sequence[Instance]) -> list[tuple[Episode, bool]]:
    """One greedy episode of each instance, advanced together, with the world's verdict (False for a crash)."""
    with ExitStack() as stack:
        worlds = [stack.enter_context(closing(open_world(instance.goal.world))) for instance in instances]
        attempts = [Attempt(instance, world) for instance, world in zip(instances, worlds, strict=True)]
        while going := [attempt for attempt in attempts if attempt.end is None]:
            proposed = agent.propose([attempt.context for attempt in going], 1, 0.0)
            for attempt, options in zip(going, proposed, strict=True):
                attempt.take(options)
        return [attempt.finish() for attempt in attempts]
