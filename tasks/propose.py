"""Stage ``propose``: the goal instances of a round, from the goal files, the curriculum and what was solved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from environments.registry import load_goals
from environments.types import Goal
from tasks.curriculum import Curriculum, easy_enough
from tasks.curriculum.balance import Setting
from tasks.curriculum.plan import Plan, Proposal
from tasks.curriculum.proposers import Asked, Composed, Proposer, Recombined, new_goals
from tasks.errors import ParamsError
from tasks.files import STATE
from tasks.params import Params
from tasks.records import AgentRow, Trajectory, read_rows, read_trajectories

SEEDS_A_ROUND = 10_000  # round n has the seeds from n * 10,000 on; those below 10,000 are the demonstrations'


def run(params: Params) -> None:
    """Write ``data/round/instances.json`` (:mod:`tasks.curriculum.plan`).

    Those that ask for something new have the seed of the instance on whose screens it is. Where exploration is
    rebalanced, the temperatures to try go round in turn.

    Raises:
        ParamsError: when the round would need seeds that it must not use.
    """
    settings = params.propose
    goals = easy_enough(load_goals(Path(params.goals)), settings.hardest_tier)
    curriculum = Curriculum.read(STATE / "curriculum.json")
    total = settings.per_goal * len(goals)
    new = _new_goals(goals, curriculum, min(round(settings.new * total), total - len(goals)), params)
    counts = curriculum.apportion(goals, total - len(new), settings.opening)
    seeds = fresh_seeds(curriculum.round, sum(counts.values()), params)
    own = [Proposal(goal, seed) for goal, seed in zip(_repeat(counts), seeds, strict=True)]
    _plan(curriculum, [*own, *new], params).write()


def setting_of(curriculum: Curriculum, params: Params) -> Setting:
    """How a round explores: as the curriculum says, or where nothing was found out yet, the parameters."""
    return curriculum.setting or Setting(params.explore.temperature, params.filter.accept)


def _plan(curriculum: Curriculum, proposals: list[Proposal], params: Params) -> Plan:
    if params.explore.balance is None:
        return Plan(curriculum.round, proposals)
    setting = setting_of(curriculum, params)
    hot = [
        replace(one, temperature=temperature) for one, temperature in zip(proposals, cycle(setting.tried), strict=False)
    ]
    return Plan(curriculum.round, hot, setting.accept)


def _new_goals(goals: Mapping[str, Goal], curriculum: Curriculum, count: int, params: Params) -> list[Proposal]:
    """New goals from what the corpus has solved."""
    if count == 0:
        return []
    weights = {goal: curriculum.weight(goal) for goal in goals}
    known, seed = list(solved(STATE / "corpus")), f"{params.seed}/{curriculum.round}"
    return new_goals(known, _proposer(params, known, seed), count, weights, seed)


def _proposer(params: Params, known: Sequence[Trajectory], seed: str) -> Proposer:
    match params.propose.proposer:
        case "recombine":
            return Recombined(seed)
        case "compose":
            return Composed(known, seed)
        case model:
            return Asked(model)


def solved(corpus: Path) -> Iterator[Trajectory]:
    """The trajectories of a corpus that the agent learns from."""
    for part in sorted(corpus.iterdir()):
        learnt = {row.trajectory for row in read_rows(part / "agent_rows.parquet", AgentRow)}
        yield from (one for one in read_trajectories(part) if one.id in learnt and one.episode.acts)


def fresh_seeds(number: int, count: int, params: Params) -> range:
    """``count`` seeds of round ``number``: of no other round, no demonstration, not held out.

    Raises:
        ParamsError: when there are not that many, or they would reach the held-out ones.
    """
    first = number * SEEDS_A_ROUND
    if count > SEEDS_A_ROUND:
        raise ParamsError(
            f"propose.per_goal = {params.propose.per_goal}: {count} instances, and a round has "
            f"{SEEDS_A_ROUND} seeds; lower it in params.yaml"
        )
    if first + SEEDS_A_ROUND > params.evaluate.first_seed:
        raise ParamsError(
            f"round {number}: its seeds {first}..{first + SEEDS_A_ROUND - 1} reach the held-out ones, from "
            f"evaluate.first_seed = {params.evaluate.first_seed} on; raise it in params.yaml"
        )
    return range(first, first + count)


def _repeat(counts: dict[str, int]) -> Iterator[str]:
    for goal, count in counts.items():
        yield from [goal] * count
