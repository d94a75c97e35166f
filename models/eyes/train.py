"""The first training of the tower: to say what things there are on random pages, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.eyes.sheets import Batch, Sheets
from models.eyes.targets import FACTS, GROUPS, NOWHERE, nearest_place
from models.eyes.tower import Meanings, Tower, optimizers, things_loss
from models.training import Descent, Report, multiplies_bfloat16

SAVE_EVERY = 50  # updates between two checkpoints
_WARM_UP = 30  # updates
_FLOOR = 0.02


@dataclass(frozen=True, slots=True)
class Course:
    """``updates`` on ``batch`` parts of ``side`` patches a side; ``rate`` is the peak."""

    name: str
    updates: int
    batch: int
    side: int
    rate: float


_CHOICES = {name: words for name, words in GROUPS.items() if len(words) > 1}


def teach(
    tower: Tower, sheets: Sheets, meanings: Meanings, course: Course, scratch: Path, report: Report
) -> list[float]:
    """Train the tower in place; an interrupted training goes on from ``scratch``. Returns the loss of every update."""

    def loss_of(update: int) -> Tensor:
        return _loss(tower, sheets.parts(course.batch, course.side, update), meanings)

    descent = Descent(
        dict(tower.named_parameters()), optimizers(tower, course.rate), course.updates, _WARM_UP, _FLOOR, SAVE_EVERY
    )
    return descent.run(loss_of, scratch, report)


def _loss(tower: Tower, batch: Batch, meanings: Meanings) -> Tensor:
    device = meanings.facts.device.type
    with torch.autocast(device, torch.bfloat16, multiplies_bfloat16(device)):
        said = tower(batch.pixels, batch.places)
    return things_loss(said, batch.facts, batch.centres, meanings)


@torch.inference_mode()
def measure(tower: Tower, sheets: Sheets, meanings: Meanings, pages: int) -> dict[str, float]:
    """How much is seen of the first ``pages`` pages, whole, as shares.

    For each group of facts, the cells that tell one of them and say it before the others
    of the group; ``places`` of things that are told to within eight pixels.
    """
    counts: dict[str, list[Tensor]] = {}
    for page in range(pages):
        batch = sheets.whole([page])
        said = tower(batch.pixels, batch.places)
        for name, words in _CHOICES.items():
            counts.setdefault(name, []).append(_told(meanings.chances(said), batch.facts, words))
        placed = batch.centres[..., 0] >= 0
        code = said[placed].float() - meanings.of(batch.facts, torch.full_like(batch.centres, NOWHERE))[placed]
        off = (nearest_place(code) - batch.centres[placed]).norm(dim=-1)
        counts.setdefault("places", []).append(off < 8)
    return {name: float(torch.cat(found).float().mean()) for name, found in counts.items()}


def _told(chances: Tensor, facts: Tensor, words: Sequence[str]) -> Tensor:
    """Of the cells that tell a fact of a group: whether they say one of theirs before the others of the group."""
    first, stop = FACTS.index(words[0]), FACTS.index(words[0]) + len(words)
    within = (facts >= first) & (facts < stop)
    best = first + chances[..., first:stop].argmax(-1, keepdim=True)
    return ((facts == best) & within).any(-1)[within.any(-1)]
