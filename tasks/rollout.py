"""Greedy episodes, several side by side: what the agent does when nothing helps it. The world judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial

from environments.registry import open_world
from environments.types import Busy, Candidate, End, Episode, Instance, Kind, Observation, Step, World, WorldError
from models.prompts import context_at
from tasks.progress import log
from tasks.search import Proposer


@dataclass
class _Attempt:
    """An episode under way in a world of its own."""

    instance: Instance
    world: World
    instruction: str = ""
    screen: Observation = field(default_factory=lambda: Observation(b"", ()))
    steps: list[Step] = field(default_factory=list)
    end: End | None = None
    verdict: bool = False


def greedy(agent: Proposer, instances: Sequence[Instance]) -> list[tuple[Episode, bool]]:
    """One greedy episode of each instance, with the world's verdict (False for a crash).

    They advance together; those that find no free device begin when the others are over.
    """
    found: dict[int, tuple[Episode, bool]] = {}
    while waiting := [place for place in range(len(instances)) if place not in found]:
        with ExitStack() as stack:
            attempts = _begun(stack, instances, waiting)
            while going := [attempt for attempt in attempts.values() if attempt.end is None]:
                contexts = [context_at(item.instruction, item.steps, item.screen) for item in going]
                for attempt, options in zip(going, agent.propose(contexts, 1, 0.0), strict=True):
                    _guarded(attempt, partial(_take, attempt, options))
            found |= {place: _finish(attempt) for place, attempt in attempts.items()}
    return [found[place] for place in range(len(instances))]


def _begun(stack: ExitStack, instances: Sequence[Instance], waiting: Sequence[int]) -> dict[int, _Attempt]:
    """The waiting ones that can begin now, by their place. Raises Busy when none can."""
    attempts: dict[int, _Attempt] = {}
    for place in waiting:
        world = stack.enter_context(closing(open_world(instances[place].goal.world)))
        attempt = _Attempt(instances[place], world)
        try:
            _guarded(attempt, partial(_begin, attempt))
        except Busy:
            if not attempts:
                raise
            continue
        attempts[place] = attempt
    return attempts


def _guarded(attempt: _Attempt, act: Callable[[], None]) -> None:
    """A world that breaks ends its own episode, not the others."""
    try:
        act()
    except Busy:
        raise
    except WorldError as error:
        log.warning("%s: the world broke: %s", attempt.instance.name, error)
        attempt.end = End.CRASHED


def _begin(attempt: _Attempt) -> None:
    start = attempt.world.reset(attempt.instance.goal, attempt.instance.seed)
    attempt.instruction, attempt.screen = start.instruction, start.observation


def _take(attempt: _Attempt, options: Sequence[Candidate]) -> None:
    if not options:
        attempt.end = End.INVALID
        return
    action = options[0].action
    screen = attempt.world.step(action)
    attempt.steps.append(Step(attempt.screen, action, tuple(options)))
    attempt.screen = screen
    if action.kind is Kind.COMPLETE:
        attempt.end = End.COMPLETED
    elif attempt.world.ended:
        attempt.end = End.WORLD
    elif len(attempt.steps) >= attempt.instance.goal.max_steps:
        attempt.end = End.STEP_LIMIT


def _judge(attempt: _Attempt) -> None:
    attempt.verdict = attempt.world.verdict()


def _finish(attempt: _Attempt) -> tuple[Episode, bool]:
    if attempt.end is not End.CRASHED:
        _guarded(attempt, partial(_judge, attempt))
    end = attempt.end or End.STEP_LIMIT
    episode = Episode(attempt.instance, attempt.instruction, tuple(attempt.steps), attempt.screen, end)
    return episode, attempt.verdict
