"""Stage score: step and outcome rewards of every trajectory. What the search has scored already is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from environments.types import COMPLETE, Action, End, Episode
from models.engine import Source
from models.prompts import Context, context_at
from models.roles import load_reward_model
from tasks.files import ROUND, STATE
from tasks.params import Params
from tasks.records import Trajectory, read_trajectories
from tasks.search import Scorer, outcome_context
from tasks.stages import scratch
from tasks.workers import TRAJECTORIES, crew, hands, spread
from tasks.workers.serving import engines


def run(params: Params) -> None:
    """Score what is not scored yet. Writes ``data/round/scored``."""
    lacking = {one.episode.instance.name for one in _explored() if unscored(one.episode)}
    TRAJECTORIES.write(ROUND / "scored", _scored(params, lacking) if lacking else _explored())


def _scored(params: Params, lacking: Collection[str]) -> Iterator[Trajectory]:
    """All trajectories, those of the instances that are ``lacking`` something scored by workers."""
    units = [(name, list(group)) for name, group in _by_instance() if name in lacking]
    with (
        engines("score", params, [STATE / "reward"]) as source,
        crew(make_worker, (source,), hands(params)) as workers,
    ):
        made = spread("score", workers, units, scratch("score"), TRAJECTORIES)
    for name, group in _by_instance():
        yield from ((next(made) for _ in group) if name in lacking else group)


def _by_instance() -> Iterator[tuple[str, Iterator[Trajectory]]]:
    return groupby(_explored(), key=lambda trajectory: trajectory.episode.instance.name)


def _explored() -> Iterator[Trajectory]:
    return read_trajectories(ROUND / "explored")


def make_worker(source: Source) -> Callable[[Sequence[Trajectory]], list[Trajectory]]:
    """What scores the trajectories of one goal instance, with the champion reward model."""
    reward = load_reward_model(source, STATE / "reward")

    def score(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        judge = reward.fresh()
        return [replace(item, episode=score_episode(item.episode, judge)) for item in trajectories]

    return score


def unscored(episode: Episode) -> list[int]:
    """The steps that have no reward yet, and the number of all steps where the outcome has none.

    None of them where nothing was shown, or no end was reached.
    """
    if not episode.last.screenshot or episode.end is End.PRUNED:
        return []
    missing = [place for place, step in enumerate(episode.steps) if step.score is None]
    return missing + [len(episode.steps)] * (episode.outcome is None)


def score_episode(episode: Episode, judge: Scorer) -> Episode:
    """The episode with the rewards of its steps and its outcome filled in where they are missing, all asked at once."""
    missing, steps, outcome = unscored(episode), list(episode.steps), episode.outcome
    if not missing:
        return episode
    asked = [_question(episode, place) for place in missing]
    scores = judge.score([context for context, _ in asked], [[action] for _, action in asked])
    for place, (score,) in zip(missing, scores, strict=True):
        if place < len(steps):
            steps[place] = replace(steps[place], score=score)
        else:
            outcome = score
    return replace(episode, steps=tuple(steps), outcome=outcome)


def _question(episode: Episode, place: int) -> tuple[Context, Action]:
    if place == len(episode.steps):
        return outcome_context(episode), COMPLETE
    step = episode.steps[place]
    return context_at(episode.instruction, episode.steps[:place], step.observation), step.action
