"""The training of the small networks that read screens beside the tower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from models.training import Descent, Report

_WARM_UP, _FLOOR, _SAVE_EVERY = 50, 0.01, 100


@dataclass(frozen=True, slots=True)
class Pace:
    """``updates`` of ``batch`` crops, screens or lines each; ``rate`` is the peak."""

    updates: int
    batch: int
    rate: float


def descend(
    network: nn.Module, pace: Pace, loss: Callable[[int], Tensor], scratch: Path, report: Report
) -> list[float]:
    """Train all of a network in place; an interrupted training goes on from ``scratch``. Returns each update's loss."""
    weights = dict(network.named_parameters())
    optimizer = torch.optim.AdamW(weights.values(), lr=pace.rate, betas=(0.9, 0.98), weight_decay=0.05)
    return Descent(weights, [optimizer], pace.updates, _WARM_UP, _FLOOR, _SAVE_EVERY).run(loss, scratch, report)
