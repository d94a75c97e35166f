"""The training loop of both models: AdamW on the adapter, cosine learning rate, resumable to the same bytes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.checkpoint import resume, save
from models.network import Network
from models.packing import Sample, loss
from models.prompts import opening

SAVE_EVERY = 8  # updates between two checkpoints
_WARM_UP = 0.1  # share of the updates
_MAX_NORM = 1.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """``updates`` of ``batch_rows`` samples each; ``learning_rate`` is the peak; ``seed`` fixes the order."""

    updates: int
    batch_rows: int
    learning_rate: float
    seed: int


Report = Callable[[int, float], None]


def train(
    network: Network, samples: Sequence[Sample], schedule: Schedule, scratch: Path, report: Report
) -> list[float]:
    """Train the network's adapter in place; an interrupted training goes on from ``scratch``.

    Args:
        scratch: a folder for checkpoints, kept between attempts, empty at the first.
        report: called with (updates done, loss of the last).

    Returns:
        The loss of every update.

    Raises:
        ValueError: when there are no samples.
        FloatingPointError: when the loss is not finite.
    """
    if not samples:
        raise ValueError("there are no rows to train on")
    weights = {name: weight for name, weight in network.model.named_parameters() if weight.requires_grad}
    optimizer = torch.optim.AdamW(weights.values(), betas=(0.9, 0.98), weight_decay=0.01)
    history = resume(scratch, weights, [optimizer])
    network.model.train()
    for update, batch in enumerate(_batches(samples, network.screenshots, schedule)):
        if update < len(history):
            continue
        history.append(_update(network, batch, weights, optimizer, _rate(update, schedule)))
        report(update + 1, history[-1])
        if (update + 1) % SAVE_EVERY == 0:
            save(scratch, weights, [optimizer], history)
    network.model.eval()
    return history


def _update(
    network: Network,
    batch: Sequence[Sample],
    weights: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    rate: float,
) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    value = loss(network, batch)
    if not torch.isfinite(value):
        raise FloatingPointError(f"the loss is {value.item()}; lower the learning rate in params.yaml")
    value.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(weights.values(), _MAX_NORM)
    optimizer.step()
    return float(value.item())


def _rate(update: int, schedule: Schedule) -> float:
    """Linear warm-up, then a cosine down to 5 % of the peak."""
    warm_up = max(1, round(_WARM_UP * schedule.updates))
    if update < warm_up:
        return schedule.learning_rate * (update + 1) / warm_up
    done = (update - warm_up) / max(1, schedule.updates - warm_up)
    return schedule.learning_rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def _batches(samples: Sequence[Sample], screenshots: int, schedule: Schedule) -> list[list[Sample]]:
    """As many batches as updates: shuffled passes over the samples.

    Samples whose prompts begin alike stay together, for they are packed (:mod:`models.packing`); beside them lie
    those of like length.
    """
    chooser = random.Random(schedule.seed)
    alike: dict[tuple[str, bytes], list[Sample]] = {}
    for sample in samples:
        alike.setdefault(opening(sample.context, screenshots), []).append(sample)
    groups = list(alike.values())
    batches: list[list[Sample]] = []
    while len(batches) < schedule.updates:
        shuffled = chooser.sample(groups, len(groups))
        order = [sample for group in sorted(shuffled, key=lambda group: max(map(_length, group))) for sample in group]
        rows = [order[start : start + schedule.batch_rows] for start in range(0, len(order), schedule.batch_rows)]
        batches += chooser.sample(rows, len(rows))
    return batches[: schedule.updates]


def _length(sample: Sample) -> int:
    """Roughly how long a sample is, in tokens: enough to put like with like."""
    context = sample.context
    text = sum(len(element.line) for element in context.observation.elements) + len(context.instruction)
    return text // 3 + 12 * len(context.history) + sum(len(branch.tokens) for branch in sample.branches)
