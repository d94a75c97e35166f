"""How well a judge's scores tell right from wrong: classification, calibration, ranking, false accepts.

Intervals are 95 % bootstrap intervals that draw goal instances, not cases: cases of one instance are alike. A figure
that is not defined is None. Cases of which a judge cannot say anything (NaN) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.audit.cases import Case
from tasks.evidence.metrics import ACCEPT
from tasks.evidence.statistics import (
    Floats,
    auc,
    bootstrap_interval,
    calibration_error,
    classification,
    false_accept_rate,
)

SEED = 0
DRAWS = 500
_BINS = ((1, "0-1"), (2, "2"), (4, "3-4"), (8, "5-8"), (math.inf, "9+"))  # trajectory lengths, by their upper ends


@dataclass(frozen=True, slots=True)
class Judged:
    """A case and a judge's score of it."""

    case: Case
    score: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Cases as columns: ``labels`` and ``scores`` (cases), and the ``choices`` they ask for (choices, 3)."""

    labels: NDArray[np.bool_]
    scores: Floats
    choices: Floats


class Choice(NamedTuple):
    """What came of choosing the best-scored of a group: shares that are right.

    ``chosen`` of those with the highest score (a tie is drawn by lot), ``mean`` of a blind draw, ``bound`` 1 where
    any is right. A case counts as often as it was drawn.
    """

    chosen: float
    mean: float
    bound: float


def figures(judged: Sequence[Judged]) -> dict[str, Any]:
    """The figures of cases of one part and query; None where nothing was judged.

    ``f1``, ``precision``, ``recall`` and ``false_accept`` are at the threshold of 0.5; ``ece`` is the expected
    calibration error in 10 bins; ``top1`` how often the best-scored of a group is right, among groups with right
    and wrong ones; ``lift`` as :func:`lift` says. Each has its interval in ``low`` and ``high``.
    """
    said = [item for item in judged if not math.isnan(item.score)]
    found: dict[str, Any] = {"n": len(said), "positives": sum(item.case.label for item in said)}
    return found | {name: _with_interval(said, statistic) for name, statistic in STATISTICS.items()}


def sample(judged: Sequence[Judged]) -> Sample:
    """The columns of some cases. Groups of one ask for no choice."""
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        groups.setdefault(item.case.group, []).append(item)
    made = [_choice(group) for group in groups.values() if sum(item.case.count for item in group) > 1]
    return Sample(
        np.array([item.case.label for item in judged], dtype=bool),
        np.array([item.score for item in judged], dtype=float),
        np.array(made, dtype=float).reshape(-1, len(Choice._fields)),
    )


def lift(choices: Floats) -> float | None:
    """How far choosing goes from a blind draw to the oracle bound: (chosen - mean) / (bound - mean), over all choices.

    1 is as good as always choosing a right one where there is one, 0 as good as blind, below 0 worse.
    """
    chosen, mean, bound = choices.sum(axis=0).tolist()
    return (chosen - mean) / (bound - mean) if bound > mean else None


def top1(choices: Floats) -> float | None:
    """Share of the choices where the chosen is right, among those where it matters."""
    matters = choices[(choices[:, 1] > 0) & (choices[:, 1] < 1)]
    return float(matters[:, 0].mean()) if len(matters) else None


def false_accepts(judged: Iterable[Judged], key: Callable[[Case], str]) -> dict[str, dict[str, Any]]:
    """The false-accept rate of each kind of case that ``key`` names, and how many wrong cases it is of."""
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        if not item.case.label and not math.isnan(item.score):
            groups.setdefault(key(item.case), []).append(item)
    return {
        name: {"n": len(group), **_with_interval(group, STATISTICS["false_accept"])}
        for name, group in sorted(groups.items())
    }


def length_bin(case: Case) -> str:
    """How long the case's trajectory is, in actions."""
    return next(name for most, name in _BINS if case.length <= most)


Statistic = Callable[[Sample], float | None]
STATISTICS: dict[str, Statistic] = {
    "f1": lambda of: classification(of.labels, of.scores, ACCEPT).f1,
    "precision": lambda of: classification(of.labels, of.scores, ACCEPT).precision,
    "recall": lambda of: classification(of.labels, of.scores, ACCEPT).recall,
    "false_accept": lambda of: false_accept_rate(of.labels, of.scores, ACCEPT),
    "auc": lambda of: auc(of.labels, of.scores),
    "ece": lambda of: calibration_error(of.labels, of.scores),
    "top1": lambda of: top1(of.choices),
    "lift": lambda of: lift(of.choices),
}


def _with_interval(judged: Sequence[Judged], statistic: Statistic) -> dict[str, float | None]:
    instances: dict[str, list[Judged]] = {}
    for item in judged:
        instances.setdefault(item.case.instance, []).append(item)
    samples = [sample(group) for group in instances.values()]

    @cache  # few instances are drawn in few ways
    def of(places: tuple[int, ...]) -> float | None:
        return statistic(_together([samples[place] for place in places]))

    rows = np.arange(len(samples), dtype=float)
    interval = bootstrap_interval(rows, lambda drawn: of(tuple(np.sort(drawn).astype(int).tolist())), SEED, DRAWS)
    low, high = interval or (None, None)
    return {"value": statistic(sample(judged)), "low": low, "high": high}


def _together(samples: Sequence[Sample]) -> Sample:
    return Sample(
        np.concatenate([item.labels for item in samples]),
        np.concatenate([item.scores for item in samples]),
        np.concatenate([item.choices for item in samples]),
    )


def _choice(group: Sequence[Judged]) -> Choice:
    best = max(item.score for item in group)
    return Choice(
        chosen=_share([item for item in group if item.score == best]),
        mean=_share(group),
        bound=float(any(item.case.label for item in group)),
    )


def _share(group: Sequence[Judged]) -> float:
    """The share of draws that are right."""
    return sum(item.case.count for item in group if item.case.label) / sum(item.case.count for item in group)
