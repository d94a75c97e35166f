"""Greedy episodes, several side by side: what the agent does when nothing helps it. The world judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial

from environments.registry import open_world
from environments.types import Candidate, End, Episode, Instance, Kind, Observation, Step, World, WorldError
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


def greedy(agent: Proposer, instances: Sequence[Instance]) -> list[tuple[Episode, bool]]:
    """One greedy episode of each instance, advanced together, with the world's verdict (False for a crash)."""
    with ExitStack() as stack:
        worlds = [stack.enter_context(closing(open_world(instance.goal.world))) for instance in instances]
        attempts = [_Attempt(instance, world) for instance, world in zip(instances, worlds, strict=True)]
        for attempt in attempts:
            _guarded(attempt, partial(_begin, attempt))
        while going := [attempt for attempt in attempts if attempt.end is None]:
            contexts = [context_at(item.instruction, item.steps, item.screen) for item in going]
            for attempt, options in zip(going, agent.propose(contexts, 1, 0.0), strict=True):
                _guarded(attempt, partial(_take, attempt, options))
        return [_finish(attempt) for attempt in attempts]


def _guarded(attempt: _Attempt, act: Callable[[], None]) -> None:
    """A world that breaks ends its own episode, not the others."""
    try:
        act()
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


def _finish(attempt: _Attempt) -> tuple[Episode, bool]:
    end = attempt.end or End.STEP_LIMIT
    episode = Episode(attempt.instance, attempt.instruction, tuple(attempt.steps), attempt.screen, end)
    return episode, end is not End.CRASHED and attempt.world.verdict()
