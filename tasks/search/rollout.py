"""Greedy episodes, several side by side: what the agent does when nothing helps it. The world judges them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, closing

from environments.registry import open_world
from environments.types import Busy, Candidate, End, Episode, Instance, Observation, Step, World, WorldError
from models.prompts import Context, context_at
from tasks.progress import log
from tasks.search import Proposer
from tasks.search.walker import Walker

SIDE_BY_SIDE = 6  # a token for so many episodes costs little more than for one


class Attempt:
    """An episode under way in a world of its own. A world that cannot start ends it as crashed.

    Raises:
        Busy: this process's other worlds hold all the devices there are.
    """

    def __init__(self, instance: Instance, world: World) -> None:
        self.instance = instance
        self.end: End | None = None
        self.world, self._walker = world, Walker(world, instance)
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
            verdict = self.end is not End.CRASHED and self.world.verdict()
        except WorldError as error:
            self._crash(error)
        end = self.end or End.STEP_LIMIT
        return Episode(self.instance, self._instruction, tuple(self._steps), self._screen, end), verdict

    def _crash(self, error: WorldError) -> None:
        log.warning("%s: the world broke: %s", self.instance.name, error)
        self.end = End.CRASHED


def greedy(agent: Proposer, instances: Sequence[Instance]) -> list[tuple[Episode, bool]]:
    """One greedy episode of each instance, with the world's verdict (False for a crash).

    :data:`SIDE_BY_SIDE` of them advance together, or as many as there are devices for. As one ends, another begins in
    its world.

    Raises:
        Busy: when not even one can begin.
    """
    found: dict[int, tuple[Episode, bool]] = {}
    waiting = deque(enumerate(instances))
    with ExitStack() as stack:
        worlds = Worlds(stack)
        going: dict[int, Attempt] = {}
        while waiting or going:
            _begin(worlds, waiting, going)
            alive = [attempt for attempt in going.values() if attempt.end is None]
            proposed = agent.propose([attempt.context for attempt in alive], 1, 0.0) if alive else []
            for attempt, options in zip(alive, proposed, strict=True):
                attempt.take(options)
            for place in [place for place, attempt in going.items() if attempt.end is not None]:
                attempt = going.pop(place)
                found[place] = attempt.finish()
                worlds.give_back(attempt.instance, attempt.world)
    return [found[place] for place in range(len(instances))]


class Worlds:
    """Worlds that stay open from one episode to the next: starting a browser takes longer than many an episode."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._free = stack, dict[str, list[World]]()

    def lend(self, instance: Instance) -> World:
        """A world for an instance, open already if there is one that nobody uses."""
        path = instance.goal.world
        if free := self._free.get(path):
            return free.pop()
        return self._stack.enter_context(closing(open_world(path)))

    def give_back(self, instance: Instance, world: World) -> None:
        """Take a world back whose episode is over, or has not begun."""
        self._free.setdefault(instance.goal.world, []).append(world)


def _begin(worlds: Worlds, waiting: deque[tuple[int, Instance]], going: dict[int, Attempt]) -> None:
    """Begin as many of the waiting ones as there is room for. Raises Busy when none is under way then."""
    while waiting and len(going) < SIDE_BY_SIDE:
        place, instance = waiting[0]
        world = worlds.lend(instance)
        try:
            going[place] = Attempt(instance, world)
        except Busy:
            if not going:
                raise
            worlds.give_back(instance, world)
            return
        waiting.popleft()
