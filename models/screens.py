"""The elements of a screen, read off its screenshot alone: for worlds that have no element list to give.

A spotter finds controls and lines of text, a speller reads each line, and what belongs together is put together, so
that a language model reads the lines it has learnt to read (screen parsing, as OmniParser does, arXiv:2408.00203).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from environments.types import Element, Observation
from models.captions import CAPTIONS, Residual
from models.checkpoint import put

_SPOTTER, _SPELLER = "spotter.safetensors", "speller.safetensors"
KINDS = {
    "controls": ("button", "textbox", "password", "textarea", "select", "checkbox", "radio", "slider", "image"),
    "lines": ("text", "link", "heading", "tab", "option"),
}
STATES = ("on", "focus")
STRIDE_PX = 4  # of the spotter's cells
_COARSEST_PX = 16
_FINE, _MIDDLE, _COARSE = 48, 96, 128  # channels at strides of 4, 8 and 16 pixels
SIGNS = "".join(map(chr, range(32, 127)))  # that can be spelt
LINE_PX = 24  # height that a line is scaled to
_NARROWEST_PX, _WIDEST_PX = 8, 640  # of a scaled line
_FAINT = 8.0  # of 255: nothing is written where no colour is further from the ground
_SURE = 0.5  # probability from which a thing is there, and a state is on
_SAME = 0.5  # shared area over joint area, from which two spots are one
_BESIDE_PX = 14  # at most, from a box to its label
_WRITTEN_ON = ("button", "textbox", "textarea", "select")
_TICKED = ("checkbox", "radio")
_REMEMBERED = 64  # screens

Box = tuple[float, float, float, float]  # left, top, width, height in pixels


@dataclass(frozen=True, slots=True)
class Spot:
    """A control or a line of text."""

    kind: str
    box: Box
    states: tuple[str, ...] = ()
    text: str = ""

    @property
    def centre(self) -> tuple[float, float]:
        """(x, y) in pixels."""
        left, top, width, height = self.box
        return left + width / 2, top + height / 2

    def holds(self, other: Spot) -> bool:
        """Whether the other's centre lies in this box."""
        (left, top, width, height), (x, y) = self.box, other.centre
        return left <= x <= left + width and top <= y <= top + height


class Spotter(nn.Module):
    """Says of each cell of a screen what has its centre near: of each group, the kind, the box and the states.

    A convolutional network that looks from coarse to fine (feature pyramid, arXiv:1612.03144), one spot a cell and
    group (FCOS, arXiv:1904.01355).
    """

    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.Sequential(
            nn.Conv2d(3, 32, 6, stride=2, padding=2), nn.GELU(), nn.Conv2d(32, _FINE, 4, stride=2, padding=1)
        )
        self.middle = nn.Sequential(_halved(_FINE, _MIDDLE), Residual(_MIDDLE), Residual(_MIDDLE))
        self.coarse = nn.Sequential(_halved(_MIDDLE, _COARSE), Residual(_COARSE), Residual(_COARSE))
        self.to_middle, self.to_fine = nn.Conv2d(_COARSE, _MIDDLE, 1), nn.Conv2d(_MIDDLE, _FINE, 1)
        self.again = Residual(_MIDDLE)
        self.heads = nn.ModuleDict({group: _head(len(kinds)) for group, kinds in KINDS.items()})

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        """For each group (screens, kinds + 4 + states, rows, columns) of screens (screens, 3, height, width) from 0 to
        255: logits of the kinds, the box as :func:`boxed` reads it, logits of the states.
        """
        fine = self.fine(_whole(pixels.float() / 127.5 - 1))
        middle = self.middle(fine)
        middle = self.again(middle + _doubled(self.to_middle(self.coarse(middle))))
        seen = fine + _doubled(self.to_fine(middle))
        return {group: head(seen) for group, head in self.heads.items()}

    @torch.inference_mode()
    def spots(self, screen: Image.Image) -> dict[str, list[Spot]]:
        """What is on a screen, by group, the surest first."""
        pixels = torch.from_numpy(np.array(screen)).permute(2, 0, 1)
        return {group: found_in(KINDS[group], found[0]) for group, found in self(pixels[None]).items()}


def _halved(before: int, after: int) -> nn.Module:
    return nn.Conv2d(before, after, 4, stride=2, padding=1)


def _head(kinds: int) -> nn.Module:
    last = nn.Conv2d(_FINE, kinds + 4 + len(STATES), 1)
    bias = torch.zeros(kinds + 4 + len(STATES))
    bias[:kinds] = -4.0  # most cells show nothing (focal loss, arXiv:1708.02002)
    last.bias = nn.Parameter(bias)
    return nn.Sequential(Residual(_FINE), last)


def _doubled(seen: Tensor) -> Tensor:
    return functional.interpolate(seen, scale_factor=2, mode="nearest")


def _whole(pixels: Tensor) -> Tensor:
    """Screens made larger, to whole cells of the coarsest grid."""
    height, width = pixels.shape[-2:]
    return functional.pad(pixels, (0, -width % _COARSEST_PX, 0, -height % _COARSEST_PX), mode="replicate")


def boxed(told: Tensor) -> Tensor:
    """Boxes (4, rows, columns) of what cells tell of them (4, rows, columns): the centre's way from the cell's, in
    cells, and the logarithms of width and height in cells.
    """
    rows, columns = torch.meshgrid(*(torch.arange(size) + 0.5 for size in told.shape[-2:]), indexing="ij")
    size = told[2:].exp()
    corner = torch.stack([columns, rows]).to(told) + told[:2] - size / 2
    return torch.cat([corner, size]) * STRIDE_PX


def found_in(kinds: Sequence[str], found: Tensor) -> list[Spot]:
    """The spots of a group that cells tell of (kinds + 4 + states, rows, columns), the surest first, each once."""
    chances, boxes = found[: len(kinds)].sigmoid(), boxed(found[len(kinds) : len(kinds) + 4])
    states = found[len(kinds) + 4 :].sigmoid()
    sure, best = chances.max(0)
    spots: list[Spot] = []
    cells = (sure > _SURE).nonzero().tolist()
    for row, column in sorted(cells, key=lambda cell: -float(sure[cell[0], cell[1]])):
        left, top, width, height = boxes[:, row, column].tolist()
        box = (left, top, width, height)
        if not any(_share(box, other.box) > _SAME for other in spots):
            on = tuple(name for name, chance in zip(STATES, states[:, row, column], strict=True) if chance > _SURE)
            spots.append(Spot(kinds[int(best[row, column])], box, on))
    return spots


def _share(one: Box, other: Box) -> float:
    """The area of both over that of either."""
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    both = max(0.0, width) * max(0.0, height)
    return both / (one[2] * one[3] + other[2] * other[3] - both)


def ink(screen: Image.Image, box: Box) -> Tensor:
    """How far each pixel of a line is from the line's ground, (LINE_PX, width) from 0 to 1, whatever the colours."""
    left, top, width, height = box
    scale = LINE_PX / max(1.0, height + 2)
    wide = min(max(round((width + 4) * scale), _NARROWEST_PX), _WIDEST_PX)
    around = (left - 2, top - 1, left + width + 2, top + height + 1)
    shown = screen.resize((wide, LINE_PX), Image.Resampling.BILINEAR, box=_inside(around, screen.size))
    pixels = np.asarray(shown, dtype=np.float32)
    apart = np.linalg.norm(pixels - np.median(pixels, axis=(0, 1)), axis=-1)
    most = float(apart.max())
    return torch.from_numpy(apart / most if most > _FAINT else np.zeros_like(apart))


def _inside(corners: Box, size: tuple[int, int]) -> Box:
    """What of left, top, right and bottom lies on the screen, a pixel at the least."""
    (left, top, right, bottom), (width, height) = corners, size
    left, top = min(max(left, 0), width - 1), min(max(top, 0), height - 1)
    return left, top, max(min(right, width), left + 1), max(min(bottom, height), top + 1)


class Speller(nn.Module):
    """Reads lines of text: convolutions that say a sign or none every two pixels (CTC, Graves et al. 2006)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.GELU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.GELU(), nn.MaxPool2d((2, 1)),
            nn.Conv2d(64, 96, 3, padding=1), nn.GELU(), nn.MaxPool2d((2, 1)),
        )  # fmt: skip
        width = 192
        self.along = nn.Sequential(
            nn.Conv1d(96 * LINE_PX // 8, width, 3, padding=1), nn.GroupNorm(8, width), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2), nn.GELU(),
            nn.Conv1d(width, 1 + len(SIGNS), 1),
        )  # fmt: skip

    def forward(self, lines: Tensor) -> Tensor:
        """Logits (lines, steps, 1 + signs), the first that of none, of the ink of lines (lines, LINE_PX, width)."""
        told: Tensor = self.along(self.body(lines[:, None]).flatten(1, 2))
        return told.transpose(1, 2)

    @torch.inference_mode()
    def texts(self, lines: Sequence[Tensor]) -> list[str]:
        """What lines of ink (LINE_PX, width) say.

        Each is read by itself: normalised over a batch's width, it would say something else beside a wider one.
        """
        return [_spelt(self(line[None]).argmax(-1)[0].tolist()) for line in lines]


def side_by_side(lines: Sequence[Tensor]) -> Tensor:
    """Lines of ink as one batch (lines, LINE_PX, width): the shorter ones end empty."""
    widest = max(line.shape[-1] for line in lines)
    return torch.stack([functional.pad(line, (0, widest - line.shape[-1])) for line in lines])


def _spelt(said: Sequence[int]) -> str:
    """Signs said again are one sign, unless none was said in between."""
    heard = [sign for before, sign in zip([0, *said], said, strict=False) if sign and sign != before]
    return "".join(SIGNS[sign - 1] for sign in heard).strip()


class ScreenParser:
    """Lists what is on a screenshot, in the order in which people read. The last screens are remembered."""

    def __init__(self, spotter: Spotter, speller: Speller) -> None:
        self.spotter, self.speller = spotter.eval(), speller.eval()
        self._listed = lru_cache(_REMEMBERED)(self._elements)

    def listed(self, observation: Observation) -> Observation:
        """The observation with a list of its elements: its own, or else what its screenshot shows."""
        shown = observation.screenshot
        return observation if observation.elements else Observation(shown, self._listed(shown))

    def _elements(self, screenshot: bytes) -> tuple[Element, ...]:
        screen = Image.open(io.BytesIO(screenshot)).convert("RGB")
        spots = self.spotter.spots(screen)
        lines = spots["lines"]
        texts = self.speller.texts([ink(screen, line.box) for line in lines])
        read = [replace(line, text=text) for line, text in zip(lines, texts, strict=True)]
        return tuple(map(_element, joined(spots["controls"], read)))

    def save(self, folder: Path) -> None:
        """Write it beside a base, in half precision; last what tells that it is there."""
        for network, name in ((self.speller, _SPELLER), (self.spotter, _SPOTTER)):
            put({key: weight.half() for key, weight in network.state_dict().items()}, folder / CAPTIONS / name)


def joined(controls: Sequence[Spot], lines: Sequence[Spot]) -> list[Spot]:
    """Controls with the lines on them and the labels beside them, and the other lines, row by row."""
    said: dict[int, list[str]] = {}
    alone: list[Spot] = []
    for line in in_rows(lines):
        owner = _owner(controls, line)
        if owner is None:
            alone.append(line)
        else:
            said.setdefault(owner, []).append(line.text)
    told = [replace(control, text=" ".join(said.get(place, []))) for place, control in enumerate(controls)]
    return in_rows([*told, *alone])


def _owner(controls: Sequence[Spot], line: Spot) -> int | None:
    """The place of the control that a line is written on, the smallest such, or whose label it is."""
    on = [place for place, one in enumerate(controls) if one.kind in _WRITTEN_ON and one.holds(line)]
    if on:
        return min(on, key=lambda place: controls[place].box[2] * controls[place].box[3])
    beside = {
        line.box[0] - (one.box[0] + one.box[2]): place
        for place, one in enumerate(controls)
        if one.kind in _TICKED and abs(one.centre[1] - line.centre[1]) < line.box[3] / 2
    }
    near = [gap for gap in beside if -_BESIDE_PX / 2 < gap < _BESIDE_PX]
    return beside[min(near, key=abs)] if near else None


def in_rows(spots: Sequence[Spot]) -> list[Spot]:
    """Spots from top to bottom, those whose centres a row's first one has beside it from left to right."""
    rows: list[list[Spot]] = []
    for spot in sorted(spots, key=lambda spot: spot.centre[1]):
        if rows and spot.centre[1] - rows[-1][0].centre[1] < min(spot.box[3], rows[-1][0].box[3]) / 2:
            rows[-1].append(spot)
        else:
            rows.append([spot])
    return [spot for row in rows for spot in sorted(row, key=lambda spot: spot.box[0])]


def _element(spot: Spot) -> Element:
    left, top, width, height = (round(size) for size in spot.box)
    return Element(spot.kind, spot.text, (left, top, max(1, width), max(1, height)), spot.states)


def load_parser(base: str) -> ScreenParser | None:
    """What comes with a base's folder; None where nothing does, as with bases from the hub, which see."""
    folder = Path(base) / CAPTIONS
    if not (folder / _SPOTTER).exists():
        return None
    parser = ScreenParser(Spotter(), Speller())
    for network, name in ((parser.spotter, _SPOTTER), (parser.speller, _SPELLER)):
        network.load_state_dict({key: weight.float() for key, weight in load_file(folder / name).items()})
    return parser
