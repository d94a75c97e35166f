"""Scores set right after training, so that 0.5 is where the evidence tips: Platt scaling (Platt 1999)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from environments.types import Action, Kind

FILE = "calibration.json"  # of a checkpoint
_NEAREST = 1e-6  # to 0 and 1, that a score may be
_PRIOR = 0.01  # weight of the square of how far slope and offset are from 1 and 0: what a few rows tell is little
_FLATTEST = 0.1  # slope: what is ranked by a score stays ranked so


@dataclass(frozen=True, slots=True)
class Scale:
    """What becomes of a score's log-odds x: ``slope`` x + ``offset``."""

    slope: float
    offset: float

    def apply(self, score: float) -> float:
        """The score set right, 0..1."""
        return 1 / (1 + math.exp(-self.slope * float(log_odds(np.array(score))) - self.offset))


AS_IT_IS = Scale(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a reward model's scores of steps, and of outcomes, are set right."""

    step: Scale = AS_IT_IS
    outcome: Scale = AS_IT_IS

    def of(self, action: Action) -> Scale:
        """That of an action's score; of ``complete``, the outcome's."""
        return self.outcome if action.kind is Kind.COMPLETE else self.step

    def write(self, folder: Path) -> None:
        """Put it beside a checkpoint."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n")


def read_calibration(folder: Path) -> Calibration:
    """That of a checkpoint; none where it has none."""
    if not (folder / FILE).exists():
        return Calibration()
    return Calibration(**{name: Scale(**scale) for name, scale in json.loads((folder / FILE).read_text()).items()})


def fitted(scores: Sequence[float], labels: Sequence[bool], weights: Sequence[float], shifted: bool = True) -> Scale:
    """The likeliest scale of weighed labels, with an offset if ``shifted``; as it is, where one label is missing."""
    from scipy.optimize import minimize  # slow to import, and needed by training alone

    if len(set(labels)) < 2:
        return AS_IT_IS
    odds, share = log_odds(np.array(scores)), np.array(weights) / np.sum(weights)
    signs = np.where(np.array(labels), 1.0, -1.0)

    def loss(scale: np.ndarray) -> float:
        slope, offset = scale
        prior = _PRIOR * ((slope - 1) ** 2 + offset**2)
        return float((np.logaddexp(0, -signs * (slope * odds + offset)) * share).sum() + prior)

    bounds = [(_FLATTEST, None), (None, None) if shifted else (0.0, 0.0)]
    slope, offset = minimize(loss, np.array([1.0, 0.0]), method="L-BFGS-B", bounds=bounds).x
    return Scale(round(float(slope), 6), round(float(offset), 6))


def log_odds(scores: np.ndarray) -> np.ndarray:
    """log(p / (1 - p)) of scores, which are kept a little from 0 and 1."""
    clipped = np.clip(scores, _NEAREST, 1 - _NEAREST)
    found: np.ndarray = np.log(clipped / (1 - clipped))
    return found
