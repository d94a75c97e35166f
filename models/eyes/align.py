"""The alignment: the language model learns, by lessons and trials on random pages, to see, act and judge.

Trained is a LoRA of all layers of the language model; tower and connector stay as they are
(docs/decisions/0021-what-is-drawn-is-said-in-the-list.md).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor

from environments.pages.page import random_page
from environments.pages.studio import Studio
from models.base import ADAPTER, EYES
from models.eyes.lessons import Lesson, Scene, lesson
from models.eyes.trials import Trial, trials_of
from models.network import Network, load_base
from models.packing import imitation, judgement, loss
from models.training import Descent, Report, multiplies_bfloat16
from models.tuning import Tuning, save_tuned, trained, tunable

Taken = TypeVar("Taken")
ALIGN_SEED = 10**9  # pages from here on are those of the alignment
HELD_SEED = 2 * 10**9  # and from here on those that nothing is trained on
_TRIALS = 500  # from this page of an update on, those of its trials
_WARM_UP, _FLOOR, _SAVE_EVERY = 12, 0.02, 20


@dataclass(frozen=True, slots=True)
class Alignment:
    """``updates`` of so many lessons and trials each, with a LoRA of ``rank``; ``rate`` is the peak."""

    updates: int
    lessons: int
    trials: int
    rank: int
    rate: float


@dataclass(frozen=True, slots=True)
class Worksheet:
    """Lessons and trials, on pages that are drawn as they are asked for."""

    studio: Studio
    lexicon: Sequence[str]

    def lessons(self, seed: int) -> Iterator[Lesson]:
        """Lessons without end, each on a page of its own, from the page of a seed on."""
        while True:
            page = random_page(seed, self.lexicon)
            found = lesson(Scene(page, self.studio.show(page), random.Random(f"{seed}/lesson")))
            seed += 1
            if found is not None:
                yield found

    def trials(self, seed: int) -> Iterator[Trial]:
        """Trials without end, those of a page after those of another, from that of a seed on."""
        while True:
            yield from trials_of(self.studio, seed, self.lexicon)
            seed += 1


def alignable(base: str, alignment: Alignment) -> Network:
    """The base ready to be aligned, in bfloat16 where the machine multiplies it: what is trained is kept in float32."""
    dtype = "bfloat16" if multiplies_bfloat16("cuda" if torch.cuda.is_available() else "cpu") else "float32"
    return tunable(load_base(base, dtype, 0), Tuning("lora", alignment.rank, 2 * alignment.rank, 0), seed=0)


def ship(network: Network, folder: Path) -> None:
    """Write tower, connector and the language model's LoRA in bfloat16, as :func:`models.base.build` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    body = network.model.get_base_model().model
    eyes = {f"{part}.{name}": weight for part in ("vision_model", "connector")
            for name, weight in getattr(body, part).state_dict().items()}  # fmt: skip
    save_file({name: weight.bfloat16().contiguous() for name, weight in eyes.items()}, folder / EYES)
    for weight in network.model.parameters():
        weight.data = weight.data.bfloat16()
    save_tuned(network, folder / ADAPTER)


def align(network: Network, worksheet: Worksheet, alignment: Alignment, scratch: Path, report: Report) -> list[float]:
    """Train the network's adapter in place; an interrupted training goes on from ``scratch``.

    Returns the loss of every update.
    """
    weights = trained(network)
    optimizer = torch.optim.AdamW(weights.values(), lr=alignment.rate, betas=(0.9, 0.98), weight_decay=0.01)

    def loss_of(update: int) -> Tensor:
        page = ALIGN_SEED + update * 1000
        trials = _take(worksheet.trials(page + _TRIALS), alignment.trials)
        lessons = _take(worksheet.lessons(page), alignment.lessons)
        answered = [(one.context, one.answer) for one in lessons]
        answered += [(one.context, one.answer) for one in trials if one.answer]
        samples = [imitation(network, context, answer) for context, answer in answered]
        samples += [judgement(network, one.context, one.labelled, 1.0) for one in trials]
        with network.autocast():
            return loss(network, samples)

    network.model.train()
    descent = Descent(weights, [optimizer], alignment.updates, _WARM_UP, _FLOOR, _SAVE_EVERY)
    history = descent.run(loss_of, scratch, report)
    network.model.eval()
    return history


def _take(source: Iterator[Taken], count: int) -> list[Taken]:
    return [found for found, _ in zip(source, range(count), strict=False)]
