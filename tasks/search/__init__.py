"""Search in one goal instance: a beam, best-of-N, and rollouts that continue what failed, over the same two moves.

The agent proposes candidates, the reward model scores them, and a path takes one in the world (UI-Genie, section
3.4). A world is deterministic, so a path is re-entered by reset and replay.
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
    Observation,
    Step,
    World,
    WorldError,
    idle,
)
from models.prompts import Context, context_at, context_of
from tasks.params import Explore
from tasks.progress import log
from tasks.search.walker import Walker


class Proposer(Protocol):
    """What proposes actions (:class:`models.roles.Agent`, or any of one's own)."""

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        """Candidates for each context, most frequent first.

        ``likeliest``: one of the ``samples`` is what is answered at temperature 0.
        """
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
class Path:
    """Steps from the start, the screen after them, and why they ended if they have.

    ``value`` is the cumulative worth of a beam; ``count`` how many rollouts agree on this path so far.
    """

    steps: tuple[Step, ...]
    screen: Observation
    value: float = 0.0
    count: int = 1
    end: End | None = None


class Search:
    """One goal instance under search. ``seed`` names all draws: the same name, the same search.

    Raises:
        WorldError: the world cannot start.
    """

    def __init__(
        self, world: World, agent: Proposer, judge: Scorer, instance: Instance, settings: Explore, seed: str
    ) -> None:
        self.instance, self.settings = instance, settings
        self.walker = Walker(world, instance, settings.budget_steps, settings.budget_seconds)
        self.root = Path((), self.walker.start.observation)
        self._agent, self._judge, self._seed = agent, judge, seed

    def propose(self, paths: Sequence[Path], samples: int, draw: str, likeliest: bool = False) -> list[list[Candidate]]:
        """Candidates of each path from as many samples, the ``likeliest`` answer one of them if that is wanted."""
        contexts = [self._context(path) for path in paths]
        return self._agent.propose(contexts, samples, self.settings.temperature, f"{self._seed}/{draw}", likeliest)

    def candidates(self, paths: Sequence[Path], draw: str) -> list[list[Candidate]]:
        """What a beam considers of each path: ``settings.candidates`` answers, the likeliest and else samples.

        The samples of a long answer may all differ from it.
        """
        return self.propose(paths, self.settings.candidates, draw, likeliest=True)

    def score(self, paths: Sequence[Path], proposed: Sequence[list[Candidate]]) -> list[list[Candidate]]:
        """The candidates of each path with their rewards."""
        if not any(proposed):
            return list(proposed)
        contexts = [self._context(path) for path in paths]
        scores = self._judge.score(contexts, [[option.action for option in options] for options in proposed])
        return [
            [replace(option, score=score) for option, score in zip(options, row, strict=True)]
            for options, row in zip(proposed, scores, strict=True)
        ]

    def take(self, path: Path, chosen: Candidate, options: Sequence[Candidate], count: int = 1) -> Path:
        """The path one step on. A world that breaks under the step ends the path there, and no other."""
        try:
            screen = self.walker.walk(path.steps, path.screen, chosen.action)
        except WorldError as error:
            log.warning("%s: a path ends before %s: %s", self.instance.name, chosen.action, error)
            return replace(path, count=count, end=End.CRASHED)
        steps = (*path.steps, Step(path.screen, chosen.action, tuple(options), chosen.score))
        value = path.value + self.worth(chosen, options)
        return Path(steps, screen, value, count, self.walker.end(chosen.action, len(steps)))

    def worth(self, chosen: Candidate, options: Sequence[Candidate]) -> float:
        """What a beam gains by a candidate: its reward, and ``settings.prior`` times its share of what was sampled.

        The share is the agent's own estimate of how right it is (self-consistency: Wang et al. 2023), as much evidence
        as a young reward model has (docs/decisions/0019-the-agents-share.md).
        """
        share = chosen.count / sum(option.count for option in options)
        return (chosen.score or 0.0) + self.settings.prior * share

    def episode(self, path: Path) -> Episode:
        """The record of a path that has ended."""
        end = path.end or End.STEP_LIMIT
        return Episode(self.instance, self.walker.start.instruction, path.steps, path.screen, end)

    def episodes(self, paths: Sequence[Path]) -> list[Episode]:
        """The records of paths, with the outcome rewards of those that the search followed to an end."""
        ended = [self.episode(path) for path in paths if path.end is not End.PRUNED]
        outcomes = score_outcomes(self._judge, ended)
        judged = [replace(episode, outcome=outcome) for episode, outcome in zip(ended, outcomes, strict=True)]
        return judged + [self.episode(path) for path in paths if path.end is End.PRUNED]

    def _context(self, path: Path) -> Context:
        return context_at(self.walker.start.instruction, path.steps, path.screen)


def find(search: Search) -> list[Episode]:
    """The episodes of at most ``settings.paths`` paths with their outcome rewards, then those of pruned ones."""
    if search.settings.method == "beam":
        return search.episodes(beam(search))
    return search.episodes(rollouts(search, [replace(search.root, count=search.settings.paths)])[0])


def beam(search: Search) -> list[Path]:
    """The ``settings.paths`` paths with the highest cumulative worth, and those that were dropped for them.

    A path that has ended keeps its place.
    """
    live, ended, dropped = [search.root], list[Path](), list[Path]()
    while live:
        proposed = search.candidates(live, str(len(live[0].steps)))
        considered = search.score(live, proposed)
        ended += [replace(path, end=End.INVALID) for path, options in zip(live, considered, strict=True) if not options]
        places, left = search.settings.paths - len(ended), search.walker.left
        chosen = _best(search, live, considered, min(places, left))
        grown = [search.take(*choice) for choice in chosen]
        end = End.BUDGET if left < places else End.PRUNED
        dropped += _dropped(live, [path for path, _, _ in chosen], considered, end)
        live = [path for path in grown if path.end is None]
        ended += [path for path in grown if path.end is not None]
    return ended + dropped


def _dropped(
    live: Sequence[Path], extended: Sequence[Path], considered: Sequence[list[Candidate]], end: End
) -> list[Path]:
    """The paths that had somewhere to go and were not chosen: for better ones, or because the budget is spent."""
    left = [path for path, options in zip(live, considered, strict=True) if options and path not in extended]
    return [replace(path, end=end) for path in left]


def _best(
    search: Search, live: Sequence[Path], considered: Sequence[list[Candidate]], width: int
) -> list[tuple[Path, Candidate, list[Candidate]]]:
    """The ``width`` extensions with the highest cumulative worth; ties go to the more frequent.

    What changed nothing on the very same screen is not tried again while there is something else.
    """
    choices = [
        (path, option, options)
        for path, options in zip(live, considered, strict=True)
        for option in _untried(path, options)
    ]
    choices.sort(key=lambda choice: (-choice[0].value - search.worth(*choice[1:]), -choice[1].count))
    return choices[:width]


def _untried(path: Path, options: list[Candidate]) -> list[Candidate]:
    known = idle(path.steps, path.screen)
    return [one for one in options if one.action not in known] or options


def rollouts(search: Search, starts: Sequence[Path], draw: str = "") -> list[list[Path]]:
    """``count`` sampled rollouts from each start, none of them scored; those that agree are one path.

    All advance together, so that their samples are drawn in one batch.
    """
    found: list[list[Path]] = [[] for _ in starts]
    live = list(enumerate(starts))
    depth = 0
    while live:
        grown = _advance(search, live, f"{draw}{depth}")
        for start, path in grown:
            if path.end is not None:
                found[start].append(path)
        live = [(start, path) for start, path in grown if path.end is None]
        depth += 1
    return found


def _advance(search: Search, live: Sequence[tuple[int, Path]], draw: str) -> list[tuple[int, Path]]:
    """Each path one step on, parted where its rollouts differ. What the budget leaves no step for, ends."""
    if not search.walker.left:
        return [(start, replace(path, end=End.BUDGET)) for start, path in live]
    grown = []
    for (start, path), options in zip(live, _samples(search, [path for _, path in live], draw), strict=True):
        drawn = sum(option.count for option in options)
        if drawn < path.count:
            grown.append((start, replace(path, count=path.count - drawn, end=End.INVALID)))
        for option in options:
            if search.walker.left:
                grown.append((start, search.take(path, option, options, option.count)))
            else:
                grown.append((start, replace(path, count=option.count, end=End.BUDGET)))
    return grown


def _samples(search: Search, paths: Sequence[Path], draw: str) -> list[list[Candidate]]:
    """As many samples of each path's next action as rollouts agree on it."""
    found: dict[int, list[Candidate]] = {}
    for count in sorted({path.count for path in paths}):
        places = [place for place, path in enumerate(paths) if path.count == count]
        found |= zip(places, search.propose([paths[place] for place in places], count, f"{draw}/{count}"), strict=True)
    return [found[place] for place in range(len(paths))]


def roll_on(search: Search, failed: Sequence[tuple[int, Episode]]) -> list[Continuation]:
    """``settings.rollouts`` continuations from after each step but the last of each failed episode.

    ``failed`` are (number, episode). The continuations are not scored.
    """
    count = search.settings.rollouts
    if not count:
        return []
    places = [(number, episode, shared) for number, episode in failed for shared in range(1, len(episode.steps))]
    starts = [
        Path(episode.steps[:shared], episode.steps[shared].observation, count=count) for _, episode, shared in places
    ]
    return [
        Continuation(number, shared, search.episode(path))
        for (number, _, shared), paths in zip(places, rollouts(search, starts, "continue/"), strict=True)
        for path in paths
        for _ in range(path.count)
    ]


def score_outcomes(judge: Scorer, episodes: Sequence[Episode]) -> list[float]:
    """The outcome reward of each episode: the score of ``complete`` on its last screen."""
    contexts = [outcome_context(episode) for episode in episodes]
    return [row[0] for row in judge.score(contexts, [[COMPLETE]] * len(contexts))] if contexts else []


def outcome_context(episode: Episode) -> Context:
    """What is known when an episode is over."""
    return context_of(episode, len(episode.acts))
