"""Stage ``propose``: the goal instances of a round, from the goal files and the curriculum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from environments.registry import load_goals
from environments.types import Goal
from tasks.curriculum import Curriculum
from tasks.errors import ParamsError
from tasks.files import ROUND, STATE, write_json
from tasks.params import Params

SEEDS_A_ROUND = 10_000  # round n has the seeds from n * 10,000 on; those below 10,000 are the demonstrations'


def run(params: Params) -> None:
    """Write ``data/round/instances.json``: ``{"round": n, "instances": [{"goal": id, "seed": int}, ...]}``.

    Raises:
        ParamsError: when the round would need seeds that it must not use.
    """
    goals = easy_enough(load_goals(Path(params.goals)), params.propose.hardest_tier)
    curriculum = Curriculum.read(STATE / "curriculum.json")
    counts = curriculum.apportion(goals, params.propose.per_goal * len(goals), params.propose.opening)
    seeds = fresh_seeds(curriculum.round, sum(counts.values()), params)
    instances = [{"goal": goal, "seed": seed} for goal, seed in zip(_repeat(counts), seeds, strict=True)]
    write_json(ROUND / "instances.json", {"round": curriculum.round, "instances": instances})


def easy_enough(goals: Mapping[str, Goal], hardest: int | None) -> dict[str, Goal]:
    """The goals of tier ``hardest`` and below, all of them if it is None.

    Raises:
        ParamsError: when there are none.
    """
    kept = {name: goal for name, goal in goals.items() if hardest is None or goal.tier <= hardest}
    if not kept:
        lowest = min(goal.tier for goal in goals.values())
        raise ParamsError(
            f"hardest_tier = {hardest}: the lowest tier of the goals is {lowest}; raise it in params.yaml"
        )
    return kept


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
