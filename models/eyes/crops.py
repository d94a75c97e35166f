"""The training of what captions drawn elements: crops of random pages, each with what it shows."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from environments.pages.blocks import Thing
from environments.pages.figures import COLOURS, ICONS, SHAPES
from environments.pages.page import random_page
from environments.pages.studio import Shot, Studio
from environments.types import Element
from models.captions import Captioner, crop, describable
from models.checkpoint import put
from models.eyes.small import Pace, descend
from models.training import Report, multiplies_bfloat16

_ALIASES = {"cyan": "aqua"}  # two names of one colour
GROUPS = {
    "size": ("small", "large"),
    "colour": tuple(dict.fromkeys(_ALIASES.get(colour, colour) for colour in COLOURS)),
    "look": (*SHAPES, "letter", "digit", "box", *(f"{icon} icon" for icon in ICONS)),
}
BOARDS = 0.8  # share of the pages
_MOVED_PX, _GROWN = 1.5, 0.1  # at most, of a box, so that no place and size is learnt by heart
_TINT = 16.0  # at most, of each colour of a crop, of 255


@dataclass(frozen=True, slots=True)
class Crops:
    """Crops (crops, 3, side, side) of 0 to 255, their boxes' sizes (crops, 2), and the number in each group of the word
    that is true of it (crops, groups), from 1; 0 for none.
    """

    pixels: Tensor
    sizes: Tensor
    words: Tensor

    def __getitem__(self, chosen: Tensor) -> Crops:
        return Crops(self.pixels[chosen], self.sizes[chosen], self.words[chosen])


def cut(file: Path, first_seed: int, crops: int, lexicon: Sequence[str]) -> Crops:
    """So many crops of pages from a seed on, kept in ``file``.

    Raises:
        WorldError: the browser broke.
    """
    if not file.exists():
        with closing(Studio()) as studio:
            found = [one for one, _ in zip(_cut(studio, first_seed, lexicon), range(crops), strict=False)]
        pixels, sizes, words = (torch.stack(column) for column in zip(*found, strict=True))
        put({"pixels": pixels, "sizes": sizes, "words": words}, file)
    return Crops(**load_file(file))


def _cut(studio: Studio, first_seed: int, lexicon: Sequence[str]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    for seed in count(first_seed):
        page, chooser = random_page(seed, lexicon, BOARDS), random.Random(seed)
        shot = studio.show(page)
        screen = Image.open(io.BytesIO(shot.observation.screenshot)).convert("RGB")
        for element, words in labelled(shot, page.things):
            box = _shaken(element.box, chooser)
            yield crop(screen, box), torch.tensor(element.box[2:], dtype=torch.float32), torch.tensor(words)


def _shaken(box: tuple[int, int, int, int], chooser: random.Random) -> tuple[float, float, float, float]:
    left, top = (at + chooser.uniform(-_MOVED_PX, _MOVED_PX) for at in box[:2])
    width, height = (size * (1 + chooser.uniform(-_GROWN, _GROWN)) for size in box[2:])
    return left, top, width, height


def labelled(shot: Shot, things: Sequence[Thing]) -> Iterator[tuple[Element, list[int]]]:
    """The elements that are captioned and what is true of them: nothing, where no thing is drawn there.

    A sign that is part of a text is none of them: only the page's author knows what it is.
    """
    known = {shot.element(thing.mark): thing for thing in things if thing.sort in ("figure", "icon", "box")}
    for element in shot.observation.elements:
        if describable(element) and (element in known or element.kind == "image"):
            yield element, _numbers(known.get(element))


def _numbers(thing: Thing | None) -> list[int]:
    if thing is None:
        return [0] * len(GROUPS)
    look = {"icon": f"{thing.shape} icon", "box": "box"}.get(thing.sort, thing.shape)
    true = (thing.size, _ALIASES.get(thing.colour, thing.colour), look)
    return [1 + words.index(word) if word else 0 for word, words in zip(true, GROUPS.values(), strict=True)]


def teach(captioner: Captioner, crops: Crops, pace: Pace, scratch: Path, report: Report) -> list[float]:
    """Train the captioner; see :func:`models.eyes.small.descend`."""

    def loss_of(update: int) -> Tensor:
        drawn = torch.Generator().manual_seed(update)
        chosen = crops[torch.randint(len(crops.pixels), (pace.batch,), generator=drawn)]
        tint = (torch.rand(pace.batch, 3, 1, 1, generator=drawn) * 2 - 1) * _TINT
        with torch.autocast("cpu", torch.bfloat16, multiplies_bfloat16("cpu")):
            logits = captioner((chosen.pixels + tint).clamp(0, 255), chosen.sizes)
        return _loss(logits, chosen.words)

    return descend(captioner, pace, loss_of, scratch, report)


def _loss(logits: dict[str, Tensor], words: Tensor) -> Tensor:
    groups = zip(logits.values(), words.unbind(-1), strict=True)
    return torch.stack([functional.cross_entropy(found.float(), true) for found, true in groups]).sum()


@torch.inference_mode()
def measure(captioner: Captioner, crops: Crops) -> dict[str, float]:
    """The share of crops of which the likeliest word of each group, or none, is the true one."""
    logits = captioner(crops.pixels, crops.sizes)
    return {
        name: float((found.argmax(-1) == true).float().mean())
        for (name, found), true in zip(logits.items(), crops.words.unbind(-1), strict=True)
    }
