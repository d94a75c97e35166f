"""Stage score: step and outcome rewards of every trajectory. What the search has scored already is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from environments.types import COMPLETE, End, Episode
from models.engine import Source
from models.prompts import context_at
from models.roles import load_reward_model
from tasks.files import ROUND, STATE
from tasks.params import Params
from tasks.records import Trajectory, read_trajectories
from tasks.search import Scorer, outcome_context
from tasks.serving import engines
from tasks.stages import scratch
from tasks.workers import TRAJECTORIES, Crew, spread


def run(params: Params) -> None:
    """Score what is not scored yet. Writes ``data/round/scored``."""
    groups = groupby(read_trajectories(ROUND / "explored"), key=lambda trajectory: trajectory.episode.instance.name)
    units = [(name.replace("/", "-"), list(group)) for name, group in groups]
    with engines("score", params, [STATE / "reward"]) as source:
        crew = Crew(make_worker, (source,), params.numerics.threads)
        TRAJECTORIES.write(ROUND / "scored", spread("score", crew, units, scratch("score"), TRAJECTORIES))


def make_worker(source: Source) -> Callable[[Sequence[Trajectory]], list[Trajectory]]:
    """What scores the trajectories of one goal instance, with the champion reward model."""
    reward = load_reward_model(source, STATE / "reward")

    def score(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        judge = reward.fresh()
        return [replace(item, episode=score_episode(item.episode, judge)) for item in trajectories]

    return score


def score_episode(episode: Episode, judge: Scorer) -> Episode:
    """The episode with the rewards of its steps and its outcome filled in where they are missing, all asked at once."""
    if not episode.last.screenshot or episode.end is End.PRUNED:  # nothing was shown, or no end was reached
        return episode
    missing = [place for place, step in enumerate(episode.steps) if step.score is None]
    steps = list(episode.steps)
    contexts = [context_at(episode.instruction, steps[:place], steps[place].observation) for place in missing]
    actions = [[steps[place].action] for place in missing]
    if episode.outcome is None:
        contexts.append(outcome_context(episode))
        actions.append([COMPLETE])
    if not contexts:
        return episode
    scores = [score for (score,) in judge.score(contexts, actions)]
    for place, score in zip(missing, scores, strict=False):
        steps[place] = replace(steps[place], score=score)
    outcome = scores[-1] if episode.outcome is None else episode.outcome
    return replace(episode, steps=tuple(steps), outcome=outcome)
