"""Greedy episodes, several side by side: what the agent does when nothing helps it. The world judges them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing

from environments.registry import open_world
from environments.types import Busy, Candidate, End, Episode, Instance, Observation, Step, World, WorldError
from models.prompts import Context, context_at
from tasks.progress import log
from tasks.search import Proposer
from tasks.walker import Walker


class Attempt:
    """An episode under way in a world of its own. A world that cannot start ends it as crashed.

    Raises:
        Busy: this process's other worlds hold all the devices there are.
    """

    def __init__(self, instance: Instance, world: World) -> None:
        self.instance = instance
        self.end: End | None = None
        self._world, self._walker = world, Walker(world, instance)
        self._instruction, self._screen = "", Observation(b"", ())
        self._steps: list[Step] = []
        try:
            start = self._walker.start
            self._instruction, self._screen = start.instruction, start.observation
        except Busy:
            raise
        except WorldError as error:
            self._crash(error)

    @property
    def context(self) -> Context:
        """What the agent is to answer."""
        return context_at(self._instruction, self._steps, self._screen)

    @property
    def breaks(self) -> int:
        """How often the world broke."""
        return self._walker.breaks

    def take(self, options: Sequence[Candidate]) -> None:
        """Take the first of the agent's candidates; none of them ends the episode."""
        if not options:
            self.end = End.INVALID
            return
        action = options[0].action
        try:
            screen = self._walker.walk(self._steps, self._screen, action)
        except WorldError as error:
            self._crash(error)
            return
        self._steps.append(Step(self._screen, action, tuple(options)))
        self._screen = screen
        self.end = self._walker.end(action, len(self._steps))

    def finish(self) -> tuple[Episode, bool]:
        """The episode, and the world's verdict (False for a crash)."""
        verdict = False
        try:
            verdict = self.end is not End.CRASHED and self._world.verdict()
        except WorldError as error:
            self._crash(error)
        end = self.end or End.STEP_LIMIT
        return Episode(self.instance, self._instruction, tuple(self._steps), self._screen, end), verdict

    def _crash(self, error: WorldError) -> None:
        log.warning("%s: the world broke: %s", self.instance.name, error)
        self.end = End.CRASHED


def greedy(agent: Proposer, instances: Sequence[Instance]) -> list[tuple[Episode, bool]]:
    """One greedy episode of each instance, with the world's verdict (False for a crash).

    They advance together; those that find no free device begin when the others are over.
    """
    found: dict[int, tuple[Episode, bool]] = {}
    while waiting := [place for place in range(len(instances)) if place not in found]:
        with ExitStack() as stack:
            attempts = _begun(stack, instances, waiting)
            while going := [attempt for attempt in attempts.values() if attempt.end is None]:
                proposed = agent.propose([attempt.context for attempt in going], 1, 0.0)
                for attempt, options in zip(going, proposed, strict=True):
                    attempt.take(options)
            found |= {place: attempt.finish() for place, attempt in attempts.items()}
    return [found[place] for place in range(len(instances))]


def _begun(stack: ExitStack, instances: Sequence[Instance], waiting: Sequence[int]) -> dict[int, Attempt]:
    """The waiting ones that can begin now, by their place. Raises Busy when none can."""
    attempts: dict[int, Attempt] = {}
    for place in waiting:
        world = stack.enter_context(closing(open_world(instances[place].goal.world)))
        try:
            attempts[place] = Attempt(instances[place], world)
        except Busy:
            if not attempts:
                raise
    return attempts
