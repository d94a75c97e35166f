"""How hot to explore and what to accept, chosen anew each round: what is found and what is told apart stay in balance.

B-STaR (Zeng et al. 2024, section 4) chooses temperature and reward threshold of an iteration by its balance score:
many right answers of a query, and few wrong ones among them. It counts the right ones by known answers. Here nobody
may ask the world while learning, so their number is what the calibrated outcome rewards expect it to be.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from environments.types import End
from tasks.acceptance import Bar, rejections
from tasks.records import Trajectory

_FACTORS = (0.8, 1.0, 1.25)  # of the temperature, that the instances of a round are explored at in turn
_COOLEST, _HOTTEST = 0.1, 5.0
_ACCEPTS = tuple(step / 20 for step in range(10, 20))  # 0.5, 0.55, ..., 0.95


@dataclass(frozen=True, slots=True)
class Setting:
    """The sampling temperature, and the outcome reward from which a path counts as solved."""

    temperature: float
    accept: float

    @property
    def tried(self) -> list[float]:
        """The temperatures that a round tries, around this one."""
        around = (round(self.temperature * factor, 4) for factor in _FACTORS)
        return list(dict.fromkeys(min(max(one, _COOLEST), _HOTTEST) for one in around))


def balance(outcomes: Sequence[float], accept: float, wanted: int) -> float:
    """The balance score (B-STaR, equation 4) of one instance's distinct paths by their outcome rewards, 0..1.

    ``min(right / wanted, 1) * right / accepted``, where ``right`` are the accepted paths expected to be right.
    """
    accepted = [outcome for outcome in outcomes if outcome >= accept]
    right = sum(accepted)
    return min(right / wanted, 1.0) * right / len(accepted) if accepted else 0.0


def rebalanced(
    explored: Iterable[Trajectory], temperatures: Mapping[str, float], now: Setting, wanted: int, bar: Bar
) -> tuple[Setting, float]:
    """The setting of the next round, and its mean balance score in this one; ties go to what is nearest to ``now``.

    Args:
        explored: The scored trajectories of the round.
        temperatures: What each instance was explored at, by its name.
        now: The setting around which they were.
        wanted: The right paths wanted of an instance.
        bar: What a path must reach beside the threshold.
    """
    tried = list(explored)
    outcomes, broken = _outcomes(tried, replace(bar, outcome=0.0)), _broken(tried)
    instances: dict[float, list[list[float]]] = defaultdict(list)
    for name, temperature in temperatures.items():
        if name not in broken:
            instances[temperature].append(outcomes.get(name, []))
    if not instances:
        return now, 0.0
    scores = {
        Setting(temperature, accept): fmean(balance(one, accept, wanted) for one in found)
        for temperature, found in instances.items()
        for accept in sorted({*_ACCEPTS, now.accept})
    }

    def rank(setting: Setting) -> tuple[float, float, float]:
        away = abs(math.log(setting.temperature / now.temperature))
        return scores[setting], -away, -abs(setting.accept - now.accept)

    best = max(scores, key=rank)
    return best, scores[best]


def _broken(explored: Iterable[Trajectory]) -> set[str]:
    """The instances, by their names, whose world broke on every path: they say nothing about a setting."""
    ended: dict[str, set[End]] = defaultdict(set)
    for one in explored:
        ended[one.episode.instance.name].add(one.episode.end)
    return {name for name, ends in ended.items() if ends == {End.CRASHED}}


def _outcomes(tried: Sequence[Trajectory], bar: Bar) -> dict[str, list[float]]:
    """Of each instance by its name, the outcome rewards of its distinct paths: the highest, where some are the same."""
    found: dict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    reasons = rejections(tried, bar)
    for one in tried:
        outcome, taken = one.episode.outcome, tuple(str(step.action) for step in one.episode.acts)
        if outcome is not None and reasons[one.id] is None:
            paths = found[one.episode.instance.name]
            paths[taken] = max(outcome, paths.get(taken, 0.0))
    return {name: list(paths.values()) for name, paths in found.items()}
