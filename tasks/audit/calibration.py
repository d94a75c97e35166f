"""Scores set right after training: temperature (Guo et al. 2017, section 4.2) and Platt scaling (Platt 1999).

Both are fitted on one half of the goal instances and reported on the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from models.calibration import Scale, log_odds
from tasks.audit.figures import Judged


def halves(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Cases of every other goal instance, and the rest: each goal's instances are spread over both."""
    names = sorted({item.case.instance for item in judged})
    first = set(names[::2])
    return [item for item in judged if item.case.instance in first], [
        item for item in judged if item.case.instance not in first
    ]


def platt(judged: Sequence[Judged]) -> Scale:
    """The slope and offset with the highest likelihood of the labels (a logistic regression on the log-odds)."""
    slope, offset = _fit(judged, [1.0, 0.0])
    return Scale(slope, offset)


def temperature(judged: Sequence[Judged]) -> Scale:
    """The slope, 1/temperature, with the highest likelihood of the labels."""
    (slope,) = _fit(judged, [1.0])
    return Scale(slope, 0.0)


def _fit(judged: Sequence[Judged], start: list[float]) -> list[float]:
    odds = log_odds(np.array([item.score for item in judged]))
    inputs = np.column_stack([odds, np.ones_like(odds)])[:, : len(start)]
    signs = np.array([1.0 if item.case.label else -1.0 for item in judged])

    def loss(weights: np.ndarray) -> float:
        return float(np.logaddexp(0, -signs * (inputs @ weights)).mean())

    return [float(weight) for weight in minimize(loss, np.array(start), method="BFGS").x]
