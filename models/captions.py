"""What drawn things look like, in words that are read off the screenshot: what an element list cannot name.

A list says what is written and what can be pressed, and of a shape, an icon or a patch of colour only where it is. A
small network looks at each of those alone, and its words stand before the element's line, ``small red circle image ""
40,60``, so that a language model that has learnt to read lists can find what is drawn (as OmniParser does with icons,
arXiv:2408.00203).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from environments.types import Element, Observation
from models.checkpoint import put

CAPTIONS = "captions"  # a folder of a base: among its files, servers would take the weights for the model's own
_FILE = "captioner.safetensors"
SIDE_PX = 32  # that a crop is scaled to
_AROUND, _MARGIN_PX = 0.1, 2  # of a box, that is shown with it on each side
_SURE = 0.5  # probability from which a word is said
_WIDTHS = (48, 96, 192)
_REMEMBERED = 64  # screens


def describable(element: Element) -> bool:
    """Whether an element is drawn, or a single sign, which may be a figure."""
    return element.kind == "image" or len(element.text) == 1


def crop(screen: Image.Image, box: tuple[float, float, float, float]) -> Tensor:
    """The square about a box (left, top, width, height) of a screenshot, scaled: (3, side, side), 0 to 255."""
    left, top, width, height = box
    reach = max(width, height) * (0.5 + _AROUND) + _MARGIN_PX
    x, y = left + width / 2, top + height / 2
    corners = (round(x - reach), round(y - reach), round(x + reach), round(y + reach))
    shown = screen.crop(corners).resize((SIDE_PX, SIDE_PX), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(shown)).permute(2, 0, 1)


class Residual(nn.Module):
    """Two convolutions whose sum with the input is passed on (He et al. 2016)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norm = nn.GroupNorm(8, width)

    def forward(self, seen: Tensor) -> Tensor:
        """Of the shape that comes in: (batch, width, rows, columns)."""
        again: Tensor = self.second(functional.gelu(self.first(self.norm(seen))))
        return seen + again


class Captioner(nn.Module):
    """Says at most one of the words of each group of a thing: ``groups`` are the words by the group's name, in order.

    Size is told from the box beside the picture of it.
    """

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.groups = {name: tuple(words) for name, words in groups.items()}
        layers: list[nn.Module] = []
        for before, width in zip((3, *_WIDTHS), _WIDTHS, strict=False):
            layers += [nn.Conv2d(before, width, 4, stride=2, padding=1), Residual(width)]
        self.body = nn.Sequential(*layers)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(4 * _WIDTHS[-1] + 2, 1 + len(words)) for name, words in self.groups.items()}
        )
        self._told = lru_cache(_REMEMBERED)(self._captions)

    def forward(self, crops: Tensor, sizes: Tensor) -> dict[str, Tensor]:
        """Logits (things, 1 + words) of each group, the first that of none, of crops (things, 3, side, side) from 0 to
        255 and the boxes' width and height (things, 2) in pixels.
        """
        seen = functional.adaptive_avg_pool2d(self.body(crops.float() / 127.5 - 1), 2).flatten(1)
        both = torch.cat([seen.float(), sizes / 20 - 1], dim=-1)
        return {name: head(both) for name, head in self.heads.items()}

    @torch.inference_mode()
    def captions(self, observation: Observation) -> tuple[str, ...]:
        """A caption for each element, empty where there is nothing to say. The last screens are remembered."""
        return self._told(observation)

    def _captions(self, observation: Observation) -> tuple[str, ...]:
        drawn = [place for place, element in enumerate(observation.elements) if describable(element)]
        captions = [""] * len(observation.elements)
        if drawn:
            screen = Image.open(io.BytesIO(observation.screenshot)).convert("RGB")
            boxes = [observation.elements[place].box for place in drawn]
            crops = torch.stack([crop(screen, box) for box in boxes])
            sizes = torch.tensor([box[2:] for box in boxes], dtype=torch.float32)
            for place, words in zip(drawn, self._words(self(crops, sizes)), strict=True):
                captions[place] = " ".join(words)
        return tuple(captions)

    def _words(self, logits: Mapping[str, Tensor]) -> list[list[str]]:
        """The words of each thing that are surer than :data:`_SURE`."""
        said: list[list[str]] = [[] for _ in next(iter(logits.values()))]
        for name, words in self.groups.items():
            sure, best = logits[name].softmax(-1).max(-1)
            for thing, word in enumerate(best.tolist()):
                if word and sure[thing] > _SURE:
                    said[thing].append(words[word - 1])
        return said

    def save(self, folder: Path) -> None:
        """Write it beside a base, in half precision."""
        weights = {name: weight.half() for name, weight in self.state_dict().items()}
        put(weights, folder / CAPTIONS / _FILE, {"groups": json.dumps(self.groups)})


def load_captioner(base: str) -> Captioner | None:
    """What comes with a base's folder; None where nothing does, as with bases from the hub, which see."""
    file = Path(base) / CAPTIONS / _FILE
    if not file.exists():
        return None
    with safe_open(file, "pt") as stored:
        captioner = Captioner(json.loads(stored.metadata()["groups"]))
    captioner.load_state_dict({name: weight.float() for name, weight in load_file(file).items()})
    return captioner.eval()
