"""Scores set right after training: temperature (Guo et al. 2017, section 4.2) and Platt scaling (Platt 1999).

Both are fitted on one half of the goal instances and reported on the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.calibration import Scale, fitted
from tasks.audit.figures import Judged


def halves(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Cases of every other goal instance, and the rest: each goal's instances are spread over both."""
    names = sorted({item.case.instance for item in judged})
    first = set(names[::2])
    return [item for item in judged if item.case.instance in first], [
        item for item in judged if item.case.instance not in first
    ]


def platt(judged: Sequence[Judged]) -> Scale:
    """The likeliest slope and offset: a logistic regression on the log-odds, with the prior of training."""
    return _fit(judged, shifted=True)


def temperature(judged: Sequence[Judged]) -> Scale:
    """The likeliest slope, 1/temperature, with the prior of training."""
    return _fit(judged, shifted=False)


def _fit(judged: Sequence[Judged], shifted: bool) -> Scale:
    scores, labels = [item.score for item in judged], [item.case.label for item in judged]
    return fitted(scores, labels, [1.0] * len(judged), shifted)
