"""Reward rows from trajectories: what the reward model learns, and from which evidence.

Evidence is the best solved path of a goal instance (the world says so of demonstrations, the reward model of the
others), what became of a failed path's continuations, or a rule. One module a source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from tasks.acceptance import Bar, best
from tasks.generators import Generator
from tasks.records import RewardRow, Trajectory
from tasks.reward_data.balance import choose
from tasks.reward_data.continuation import continued
from tasks.reward_data.corruption import endings
from tasks.reward_data.draft import Draft
from tasks.reward_data.edit import edited
from tasks.reward_data.rule import executed, proposed
from tasks.reward_data.unquoted import unquoted
from tasks.reward_data.variation import varied

__all__ = ["Generator", "reward_rows"]


def reward_rows(
    trajectories: Iterable[Trajectory],
    *,
    bar: Bar,
    max_negatives: int,
    seed: int,
    without: Collection[Generator] = (),
) -> list[RewardRow]:
    """The reward rows of some trajectories (UI-Genie 3.3 and 3.4), sorted by trajectory and step.

    The same trajectories give the same rows, in whatever order they come. No two rows show the same prompt;
    where generators contradict each other about one, there is no row for it. A step has at most
    ``max_negatives`` negatives. The share of positives is within 0.3..0.7, overall and of each kind of action
    (of `complete`: a third to two thirds), wherever both labels occur.

    Args:
        trajectories: Demonstrations, search paths and continuations, all of them that there are.
        bar: What a path must reach to count as solved.
        max_negatives: The negatives of a step, at most.
        seed: Fixes which other goal a `complete` is shown with.
        without: The generators that are switched off.
    """
    ordered = sorted(trajectories, key=lambda trajectory: trajectory.id)
    drafted = _drafts(ordered, bar, max_negatives, seed)
    drafts = choose((item for item in drafted if item.generator not in without), max_negatives)
    drafts.sort(key=lambda item: (item.trajectory.id, item.step))
    rows = []
    numbers: Counter[tuple[str, int]] = Counter()
    for item in drafts:
        place = item.trajectory.id, item.step
        rows.append(item.row(numbers[place]))
        numbers[place] += 1
    return rows


def _drafts(trajectories: list[Trajectory], bar: Bar, max_negatives: int, seed: int) -> Iterator[Draft]:
    instructions = _instructions(trajectories)
    yield from continued(trajectories, bar)
    for trajectory in trajectories:
        yield from varied(trajectory)
        if bar.quoted:
            yield from unquoted(trajectory)
    for trajectory in best(trajectories, bar):
        yield from proposed(trajectory, bar)
        yield from executed(trajectory, bar, max_negatives)
        yield from endings(trajectory, instructions, max_negatives, seed)
        yield from edited(trajectory, seed, bar)


def _instructions(trajectories: list[Trajectory]) -> dict[str, list[str]]:
    """Of each goal by its id, sorted. An episode that crashed at its start has none."""
    episodes = [item.episode for item in trajectories if item.episode.instruction]
    pairs = sorted({(episode.instance.goal.id, episode.instruction) for episode in episodes})
    return {goal: [instruction for _, instruction in group] for goal, group in groupby(pairs, itemgetter(0))}
