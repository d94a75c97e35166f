"""The training loop: any weights down any loss, resumable to the same bytes; and that of both models."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from models.checkpoint import resume, save
from models.engine import MAX_ANSWER_TOKENS, MAX_UNQUOTED_TOKENS
from models.network import Network
from models.packing import Batch, Sample, lay, learn, loss
from models.prompts import opening
from models.tuning import trained

SAVE_EVERY = 8  # updates between two checkpoints
_WARM_UP, _FLOOR = 0.1, 0.05  # shares of the updates and of the peak rate
_MAX_NORM = 1.0
_LAYS_AHEAD = ("cuda",)
_LOG = logging.getLogger("ratchet")

Report = Callable[[int, float], None]


def multiplies_bfloat16(device: str) -> bool:
    """Whether products in bfloat16 are done by the device itself: where they are not, they take many times as long."""
    if device != "cpu":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    known = torch.cpu.get_capabilities()
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


@dataclass(frozen=True, slots=True)
class Descent:
    """A way down a loss, in ``updates`` steps of all ``optimizers``.

    The rates that the optimizers come with are the peaks: reached in ``warm_up`` updates, and left along a cosine that
    ends at the share ``floor`` of them (Loshchilov and Hutter 2017, equation 5). The gradient of all ``weights``, by
    name, is clipped to norm 1. ``held`` is a loss of what is not trained on, asked every ``save_every`` updates and at
    the end: when it rises, the training goes back to where it was last asked, and ends there (early stopping).
    """

    weights: Mapping[str, Tensor]
    optimizers: Sequence[Optimizer]
    updates: int
    warm_up: int
    floor: float
    save_every: int = SAVE_EVERY
    held: Callable[[], float] | None = None

    def run(self, loss: Callable[[int], Tensor], scratch: Path, report: Report) -> list[float]:
        """Train the weights in place; an interrupted training goes on from ``scratch``.

        Args:
            loss: the loss, a scalar, of an update, counted from 0: with a graph, or with its gradient in the weights
                already. It depends on the number and the weights alone, or
                a resumed training would end with other bytes.
            scratch: a folder for checkpoints, kept between attempts, empty at the first.
            report: called with (updates done, loss of the last).

        Returns:
            The loss of every update that the weights have behind them.

        Raises:
            FloatingPointError: when the loss is not finite.
        """
        history = resume(scratch, self.weights, self.optimizers)
        least = self.held() if self.held and history else math.inf
        for update in range(len(history), self.updates):
            history.append(self._update(loss, update))
            report(update + 1, history[-1])
            if update + 1 < self.updates and (update + 1) % self.save_every:
                continue
            if self.held and (found := self.held()) > least:
                return resume(scratch, self.weights, self.optimizers)
            least = found if self.held else least
            save(scratch, self.weights, self.optimizers, history)
        return history

    def _update(self, loss: Callable[[int], Tensor], update: int) -> float:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        value = loss(update)
        if not torch.isfinite(value):
            raise FloatingPointError(f"the loss of update {update + 1} is {value.item()}; lower the learning rate")
        if value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.weights.values(), _MAX_NORM)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = self._rate(group.setdefault("initial_lr", group["lr"]), update)
            optimizer.step()
        return float(value.item())

    def _rate(self, peak: float, update: int) -> float:
        if update < self.warm_up:
            return peak * (update + 1) / self.warm_up
        done = (update - self.warm_up) / max(1, self.updates - self.warm_up)
        return peak * (self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * done)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """``updates`` of ``batch_rows`` samples each; ``learning_rate`` is the peak; ``seed`` fixes the order."""

    updates: int
    batch_rows: int
    learning_rate: float
    seed: int


def train(
    network: Network,
    samples: Sequence[Sample],
    schedule: Schedule,
    scratch: Path,
    report: Report,
    held: Sequence[Sample] = (),
) -> list[float]:
    """Train what is trainable of the network in place, by AdamW; see :meth:`Descent.run`.

    Samples that are ``held`` back, if any, end it when their mean loss rises.

    Returns:
        The loss of every update that the weights have behind them.

    Raises:
        ValueError: when there are no samples.
        FloatingPointError: when the loss is not finite.
    """
    if not samples:
        raise ValueError("there are no rows to train on")
    _warn_of_what_is_never_said(network, samples)
    weights = trained(network)
    optimizer = AdamW(weights.values(), lr=schedule.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    warm_up = max(1, round(_WARM_UP * schedule.updates))
    batches = _batches(samples, network.screenshots, schedule)

    held_loss = partial(_mean_loss, network, held) if held else None
    descent = Descent(weights, [optimizer], schedule.updates, warm_up, _FLOOR, held=held_loss)
    return descend(network, descent, lambda update: batches[update], scratch, report)


def _warn_of_what_is_never_said(network: Network, samples: Sequence[Sample]) -> None:
    """Actions that are longer than an answer may be are taught in vain: an engine stops within them."""
    actions = [branch.tokens for sample in samples if not sample.among for branch in sample.branches]
    long = [tokens for tokens in actions if network.said(tokens) != network.text(tokens)]
    if long:
        longest, most = max(long, key=len), f"{MAX_ANSWER_TOKENS} tokens, {MAX_UNQUOTED_TOKENS} of them not in quotes"
        _LOG.warning(
            f"{len(long)} of {len(actions)} actions to learn are longer than an agent may say ({most}); "
            f"the longest, of {len(longest)}: {network.text(longest)}"
        )


def descend(
    network: Network, descent: Descent, samples: Callable[[int], Sequence[Sample]], scratch: Path, report: Report
) -> list[float]:
    """Train the network down the loss of the samples of each update; see :meth:`Descent.run`."""
    network.model.train()
    with laid_ahead(network, samples, descent.updates) as laid:
        history = descent.run(partial(_loss, network, laid), scratch, report)
    network.model.eval()
    return history


def _loss(network: Network, laid: Callable[[int], Batch], update: int) -> Tensor:
    batch = laid(update)
    with network.autocast():
        return learn(network, batch)


@contextmanager
def laid_ahead(
    network: Network, samples: Callable[[int], Sequence[Sample]], updates: int
) -> Iterator[Callable[[int], Batch]]:
    """What gives the batch of an update, if each is asked for in turn, from its samples.

    Where the network is on a device of its own, a thread lays the next batch out meanwhile. On a CPU there is nothing
    to gain: the cores are at work.
    """
    if network.model.device.type not in _LAYS_AHEAD:
        yield lambda update: lay(network, samples(update))
        return
    asked: dict[int, Future[Batch]] = {}
    with ThreadPoolExecutor(1) as thread:

        def laid(update: int) -> Batch:
            for each in range(update, min(update + 2, updates)):
                if each not in asked:
                    asked[each] = thread.submit(lambda number: lay(network, samples(number)), each)
            return asked.pop(update).result()

        yield laid


@torch.inference_mode()
def _mean_loss(network: Network, samples: Sequence[Sample]) -> float:
    with network.autocast():
        return fmean(float(loss(network, [sample])) for sample in samples)


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
