"""The alignment: the language model learns, by lessons and trials on random pages, to see, act and judge.

Trained is a LoRA of all layers of the language model; tower and connector stay as they are
(docs/decisions/0021-what-is-drawn-is-said-in-the-list.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file

from models.base import ADAPTER, EYES
from models.eyes.drawn import Drawn
from models.network import Network, load_base
from models.packing import Sample, imitation, judgement
from models.training import Descent, Report, descend, multiplies_bfloat16
from models.tuning import Tuning, save_tuned, trained, tunable

_WARM_UP, _FLOOR, _SAVE_EVERY = 0.04, 0.02, 20


@dataclass(frozen=True, slots=True)
class Alignment:
    """``updates`` of so many lessons and trials each, with a LoRA of ``rank``; ``rate`` is the peak."""

    updates: int
    lessons: int
    trials: int
    rank: int
    rate: float


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


def align(
    network: Network, drawn: Callable[[int], Drawn], alignment: Alignment, scratch: Path, report: Report
) -> list[float]:
    """Train the network's adapter in place, by what is drawn for each update; an interrupted training goes on from
    ``scratch``.

    Returns the loss of every update.
    """
    weights = trained(network)
    optimizer = torch.optim.AdamW(weights.values(), lr=alignment.rate, betas=(0.9, 0.98), weight_decay=0.01)

    warm_up = max(1, round(_WARM_UP * alignment.updates))
    descent = Descent(weights, [optimizer], alignment.updates, warm_up, _FLOOR, _SAVE_EVERY)
    return descend(network, descent, lambda update: _samples(network, drawn(update)), scratch, report)


def _samples(network: Network, shown: Drawn) -> list[Sample]:
    answered = [(one.context, one.answer) for one in shown.lessons]
    answered += [(one.context, one.answer) for one in shown.trials if one.answer]
    samples = [imitation(network, context, answer) for context, answer in answered]
    return samples + [judgement(network, one.context, one.labelled, 1.0) for one in shown.trials]
