"""Reward-guided search in one goal instance: a beam over actions, and rollouts that continue what failed.

UI-Genie, section 3.4: the agent proposes candidates, the reward model scores them, the partial paths with the
highest cumulative reward go on. A world is deterministic, so a path is re-entered by reset and replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from environments.types import (
    COMPLETE,
    Action,
    Candidate,
    End,
    Episode,
    Instance,
    Kind,
    Observation,
    Start,
    Step,
    World,
)
from models.prompts import Context, context_at
from tasks.params import Explore


class Proposer(Protocol):
    """What proposes actions (:class:`models.roles.Agent`, or any of one's own)."""

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = ""
    ) -> list[list[Candidate]]:
        """Candidates for each context, most frequent first."""
        ...


class Scorer(Protocol):
    """What scores actions (:class:`models.roles.RewardModel`, or any of one's own)."""

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """Rewards in 0..1 of each context's actions."""
        ...


@dataclass(frozen=True, slots=True)
class Continuation:
    """A rollout from a failed episode: the number of it in the search's list, the steps shared, the new episode."""

    parent: int
    shared: int
    episode: Episode


@dataclass(frozen=True, slots=True)
class _Path:
    """A partial path: its steps, the screen after them, its cumulative reward, and why it ended if it has."""

    steps: tuple[Step, ...]
    screen: Observation
    value: float = 0.0
    end: End | None = None


class Walker:
    """Brings a world to the end of any sequence of actions, by the shortest way."""

    def __init__(self, world: World, instance: Instance) -> None:
        self._world, self._instance = world, instance
        self._taken: list[Action] = []
        self.start: Start = world.reset(instance.goal, instance.seed)

    def walk(self, steps: Sequence[Step], action: Action) -> Observation:
        """The screen after ``steps`` and ``action``. Raises WorldError when the world broke."""
        before = [step.action for step in steps]
        if self._taken != before:
            self._world.reset(self._instance.goal, self._instance.seed)
            for earlier in before:
                self._world.step(earlier)
        self._taken = [*before, action]
        return self._world.step(action)

    def end(self, action: Action, length: int) -> End | None:
        """Why the episode is over after an action, the ``length``-th; None when it goes on."""
        if action.kind is Kind.COMPLETE:
            return End.COMPLETED
        if self._world.ended:
            return End.WORLD
        return End.STEP_LIMIT if length >= self._instance.goal.max_steps else None


def search(
    world: World, agent: Proposer, judge: Scorer, instance: Instance, settings: Explore, seed: str
) -> list[Episode]:
    """Episodes of the best paths, at most ``settings.paths``, each with step scores and an outcome score."""
    walker = Walker(world, instance)
    instruction = walker.start.instruction
    live, ended = [_Path((), walker.start.observation)], list[_Path]()
    for depth in range(instance.goal.max_steps):
        considered = _consider(agent, judge, instruction, live, settings, f"{seed}/{depth}")
        ended += [replace(path, end=End.INVALID) for path, options in zip(live, considered, strict=True) if not options]
        grown = _grow(walker, live, considered, settings.paths - len(ended))
        live = [path for path in grown if path.end is None]
        ended += [path for path in grown if path.end is not None]
        if not live:
            break
    episodes = [Episode(instance, instruction, path.steps, path.screen, path.end or End.STEP_LIMIT) for path in ended]
    outcomes = score_outcomes(judge, episodes)
    return [replace(episode, outcome=outcome) for episode, outcome in zip(episodes, outcomes, strict=True)]


def _consider(
    agent: Proposer, judge: Scorer, instruction: str, live: Sequence[_Path], settings: Explore, seed: str
) -> list[list[Candidate]]:
    """Scored candidates of each path."""
    contexts = [context_at(instruction, path.steps, path.screen) for path in live]
    proposed = agent.propose(contexts, settings.candidates, settings.temperature, seed)
    scores = judge.score(contexts, [[candidate.action for candidate in options] for options in proposed])
    return [
        [replace(candidate, score=score) for candidate, score in zip(options, row, strict=True)]
        for options, row in zip(proposed, scores, strict=True)
    ]


def _grow(walker: Walker, live: Sequence[_Path], considered: Sequence[list[Candidate]], width: int) -> list[_Path]:
    """The ``width`` best extensions by cumulative reward, taken in the world; ties go to the more frequent."""
    options = [
        (path.value + (candidate.score or 0.0), candidate.count, path, candidate, tuple(candidates))
        for path, candidates in zip(live, considered, strict=True)
        for candidate in candidates
    ]
    options.sort(key=lambda option: (-option[0], -option[1]))
    grown = []
    for value, _, path, candidate, candidates in options[:width]:
        step = Step(path.screen, candidate.action, candidates, candidate.score)
        screen = walker.walk(path.steps, candidate.action)
        steps = (*path.steps, step)
        grown.append(_Path(steps, screen, value, walker.end(candidate.action, len(steps))))
    return grown


def score_outcomes(judge: Scorer, episodes: Sequence[Episode]) -> list[float]:
    """The outcome reward of each episode: the score of ``complete`` on its last screen."""
    contexts = [context_at(episode.instruction, episode.acts, episode.last) for episode in episodes]
    return [row[0] for row in judge.score(contexts, [[COMPLETE]] * len(contexts))] if contexts else []


def roll_on(
    world: World,
    agent: Proposer,
    instance: Instance,
    failed: Sequence[tuple[int, Episode]],
    settings: Explore,
    seed: str,
) -> list[Continuation]:
    """``settings.rollouts`` sampled continuations from after each step but the last of each failed episode.

    ``failed`` are (number, episode). The continuations are not scored. All of them advance together, so that
    their samples are drawn in one batch.
    """
    walker = Walker(world, instance)
    instruction = walker.start.instruction
    origins, paths = [], []
    for number, episode in failed:
        for shared in range(1, len(episode.steps)):
            start = _Path(episode.steps[:shared], episode.steps[shared].observation)
            origins += [(number, shared)] * settings.rollouts
            paths += [start] * settings.rollouts
    for depth in range(instance.goal.max_steps):
        going = [place for place, path in enumerate(paths) if path.end is None]
        if not going:
            break
        contexts = [context_at(instruction, paths[place].steps, paths[place].screen) for place in going]
        proposed = agent.propose(contexts, 1, settings.temperature, f"{seed}/continue/{depth}")
        for place, options in zip(going, proposed, strict=True):
            paths[place] = _follow(walker, paths[place], options)
    return [
        Continuation(
            number,
            shared,
            Episode(instance, instruction, path.steps, path.screen, path.end or End.STEP_LIMIT),
        )
        for (number, shared), path in zip(origins, paths, strict=True)
    ]


def _follow(walker: Walker, path: _Path, options: Sequence[Candidate]) -> _Path:
    if not options:
        return replace(path, end=End.INVALID)
    action = options[0].action
    screen = walker.walk(path.steps, action)
    steps = (*path.steps, Step(path.screen, action, tuple(options)))
    return _Path(steps, screen, end=walker.end(action, len(steps)))
