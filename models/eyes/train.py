"""The first training of the tower: to name the letters of random pages, then to say their words.

Letters come first, with two layers: the words of a vocabulary of 49,152 cannot be learnt before them, and their
gradients drown the others (docs/decisions/0013-eyes.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.checkpoint import resume, save
from models.eyes.shape import LAYERS
from models.eyes.sheets import Batch, Sheets
from models.eyes.targets import BLANK
from models.eyes.tower import Tower, letters_loss, optimizers, words_loss

SAVE_EVERY = 200  # updates between two checkpoints
_WARM_UP = 50  # updates
_MAX_NORM = 1.0


@dataclass(frozen=True, slots=True)
class Course:
    """``updates`` on ``batch`` parts of ``side`` patches a side, with the first ``layers`` of the tower.

    ``words`` is the weight of what cells say beside that of letters; ``rate`` the peak.
    """

    name: str
    updates: int
    batch: int
    side: int
    layers: int
    words: float
    rate: float


@dataclass(frozen=True, slots=True)
class Words:
    """The language model's input embeddings (tokens, width), and the token of an empty cell."""

    table: Tensor
    blank: int


Report = Callable[[int, float], None]


def teach(tower: Tower, sheets: Sheets, words: Words, course: Course, scratch: Path, report: Report) -> list[float]:
    """Train the tower in place; an interrupted training goes on from ``scratch``.

    ``report`` is called with (updates done, loss of the last). Returns the loss of every update.
    """
    weights = dict(tower.named_parameters())
    trained = optimizers(tower, course.rate)
    history = resume(scratch, weights, trained)
    for update in range(len(history), course.updates):
        _set_rate(trained, course, update)
        loss = _loss(tower, sheets.parts(course.batch, course.side, update), words, course, update)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(tower.parameters(), _MAX_NORM)
        for optimizer in trained:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        history.append(float(loss.item()))
        report(update + 1, history[-1])
        if (update + 1) % SAVE_EVERY == 0:
            save(scratch, weights, trained, history)
    return history


def _loss(tower: Tower, batch: Batch, words: Words, course: Course, update: int) -> Tensor:
    with torch.autocast(words.table.device.type, torch.bfloat16):
        named, said = tower(batch.pixels, batch.places, course.layers)
    loss = letters_loss(named, batch.letters)
    if not course.words:
        return loss
    drawn = torch.Generator().manual_seed(update)
    return loss + course.words * words_loss(said, batch.words, words.table, words.blank, drawn)


def _set_rate(trained: list[torch.optim.Optimizer], course: Course, update: int) -> None:
    """Linear warm-up, then a cosine down to 2 % of the peak."""
    falling = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * update / course.updates))
    for optimizer in trained:
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * falling * min(1.0, (update + 1) / _WARM_UP)


@torch.inference_mode()
def measure(tower: Tower, sheets: Sheets, words: Words, pages: int, layers: int = LAYERS) -> dict[str, float]:
    """How much is read of the first ``pages`` pages, whole, as shares.

    ``letters`` that are named; ``patches`` with letters, all of which are right; ``cells`` with words that say one of
    them before all others of the vocabulary.
    """
    counts = torch.zeros(3, 2)
    for page in range(pages):
        batch = sheets.whole([page])
        named, said = tower(batch.pixels, batch.places, layers)
        right, there = named.argmax(-1) == batch.letters, batch.letters != BLANK
        some = (batch.words >= 0).any(-1)
        first = (said[some] @ words.table.T).argmax(-1)
        hit = (batch.words[some] == first[:, None]).any(-1)
        for row, told in enumerate((right[there], right.all(-1)[there.any(-1)], hit)):
            counts[row] += torch.tensor([told.sum(), told.numel()])
    letters, patches, cells = (counts[:, 0] / counts[:, 1]).tolist()
    return {"letters": letters, "patches": patches, "cells": cells}
