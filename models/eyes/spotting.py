"""The training of what reads a screen's elements off its screenshot: random pages, with what stands where on them."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional

from environments.pages.page import random_page
from environments.pages.studio import Shot, Studio
from environments.types import Action
from models.checkpoint import put
from models.eyes.small import Pace, descend
from models.screens import KINDS, LINE_PX, SIGNS, STATES, STRIDE_PX, Box, Speller, Spot, Spotter, ink, side_by_side
from models.training import Report

PAGES = 500  # of a file
_BOARDS = 0.15  # share of them
_FOCUSED = 0.4  # share, on which one field has the focus, where there are fields
_TINT = 12.0  # at most, of each colour of a screen, of 255
_MOVED_PX, _GROWN = 1.5, 0.08  # at most, of a line's box
_FOCUSING = 2.0  # exponent of the focal loss
_BOX_WEIGHT, _STATE_WEIGHT = 1.0, 0.5
_NEAR = 8  # batches of lines of like width, that one is drawn from


def true_spots(shot: Shot) -> dict[str, list[Spot]]:
    """The controls and the lines of text of a page, by group. A line is of the kind of the element it is part of."""
    elements = shot.observation.elements
    controls = [Spot(one.kind, one.box, one.states) for one in elements if one.kind in KINDS["controls"]]
    lines = []
    for text, box in shot.lines:
        line = Spot("text", box, text=text)
        whole = [one for one in elements if one.kind in KINDS["lines"] and text and text in one.text]
        on = [one for one in whole if Spot(one.kind, one.box).holds(line)] or whole[:1]
        lines.append(Spot(on[0].kind, box, on[0].states, text=text) if on else line)
    return {"controls": controls, "lines": lines}


@dataclass(frozen=True, slots=True)
class Screens:
    """Screenshots (screens, 3, height, width) of 0 to 255 and the true spots of each, by group."""

    pixels: Tensor
    spots: Sequence[dict[str, list[Spot]]]

    def image(self, screen: int) -> Image.Image:
        """A screenshot as a picture."""
        return Image.fromarray(self.pixels[screen].permute(1, 2, 0).numpy())

    def lines(self) -> list[tuple[int, Spot]]:
        """All lines that can be spelt, each with the number of its screen."""
        return [
            (screen, line) for screen, spots in enumerate(self.spots) for line in spots["lines"]
            if line.text and set(line.text) <= set(SIGNS)
        ]  # fmt: skip


def draw(folder: Path, first_seed: int, files: int, lexicon: Sequence[str], report: Callable[[int], None]) -> Screens:
    """The screens of pages from a seed on, so many files of them, kept in ``folder``; ``report`` is told how many are.

    Raises:
        WorldError: the browser broke.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        file = folder / f"screens-{first_seed}-{number:03}.safetensors"
        if not file.exists():
            with closing(Studio()) as studio:
                shots = [_shot(studio, first_seed + PAGES * number + place, lexicon) for place in range(PAGES)]
            _write(file, shots)
        report(number + 1)
    return _read(sorted(folder.glob(f"screens-{first_seed}-*.safetensors"))[:files])


def _shot(studio: Studio, seed: int, lexicon: Sequence[str]) -> Shot:
    shot, chooser = studio.show(random_page(seed, lexicon, _BOARDS)), random.Random(f"{seed}/focus")
    fields = [one for one in shot.observation.elements if one.kind in ("textbox", "password")]
    if fields and chooser.random() < _FOCUSED:
        studio.browser.perform(Action.click(chooser.choice(fields)))
        return studio.shoot()
    return shot


def _write(file: Path, shots: Sequence[Shot]) -> None:
    pictures = [np.array(Image.open(io.BytesIO(shot.observation.screenshot)).convert("RGB")) for shot in shots]
    pixels = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous()
    found = [
        {
            group: [(one.kind, one.box, one.states, one.text) for one in spots]
            for group, spots in true_spots(shot).items()
        }
        for shot in shots
    ]
    put({"pixels": pixels}, file, {"spots": json.dumps(found)})


def _read(files: Sequence[Path]) -> Screens:
    pixels, spots = [], []
    for file in files:
        with safe_open(file, "pt") as stored:
            pixels.append(stored.get_tensor("pixels"))
            spots += [
                {
                    group: [Spot(kind, tuple(box), tuple(states), text=text) for kind, box, states, text in found]
                    for group, found in screen.items()
                }
                for screen in json.loads(stored.metadata()["spots"])
            ]
    return Screens(torch.cat(pixels), spots)


def targets(group: str, spots: Sequence[Spot], rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """What cells are to tell of a group: the number of the kind (rows, columns), -1 for nothing, and box and states
    (4 + states, rows, columns) as the spotter tells them.

    A spot is told by the cell of its centre and by those beside it whose centres lie in its box; where two meet, by
    that of the smaller one.
    """
    kinds = np.full((rows, columns), -1)
    told = np.zeros((4 + len(STATES), rows, columns), np.float32)
    for spot in sorted(spots, key=lambda spot: -spot.box[2] * spot.box[3]):
        (x, y), (_, _, width, height) = spot.centre, spot.box
        states = [float(name in spot.states) for name in STATES]
        size = [math.log(max(side, 1.0) / STRIDE_PX) for side in (width, height)]
        for row, column in _cells(spot, rows, columns):
            kinds[row, column] = KINDS[group].index(spot.kind)
            away = [x / STRIDE_PX - column - 0.5, y / STRIDE_PX - row - 0.5]
            told[:, row, column] = [*away, *size, *states]
    return torch.from_numpy(kinds), torch.from_numpy(told)


def _cells(spot: Spot, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    (x, y), (left, top, width, height) = spot.centre, spot.box
    at = int(y // STRIDE_PX), int(x // STRIDE_PX)
    for row in range(max(0, at[0] - 1), min(rows, at[0] + 2)):
        for column in range(max(0, at[1] - 1), min(columns, at[1] + 2)):
            here = (column + 0.5) * STRIDE_PX, (row + 0.5) * STRIDE_PX
            inside = left <= here[0] <= left + width and top <= here[1] <= top + height
            if inside or (row, column) == at:
                yield row, column


def teach_spotter(spotter: Spotter, screens: Screens, pace: Pace, scratch: Path, report: Report) -> list[float]:
    """Train the spotter; see :func:`models.eyes.small.descend`."""

    def loss_of(update: int) -> Tensor:
        drawn = torch.Generator().manual_seed(update)
        chosen = torch.randint(len(screens.spots), (pace.batch,), generator=drawn)
        tint = (torch.rand(pace.batch, 3, 1, 1, generator=drawn) * 2 - 1) * _TINT
        told = spotter((screens.pixels[chosen] + tint).clamp(0, 255))
        return sum(
            (_spotter_loss(group, found, [screens.spots[place][group] for place in chosen.tolist()])
             for group, found in told.items()), torch.zeros(())
        )  # fmt: skip

    return descend(spotter, pace, loss_of, scratch, report)


def _spotter_loss(group: str, found: Tensor, spots: Sequence[Sequence[Spot]]) -> Tensor:
    """The focal loss of the kinds (arXiv:1708.02002), and what boxes and states are off, a spot's cell on average."""
    count = len(KINDS[group])
    true = [targets(group, some, *found.shape[-2:]) for some in spots]
    kinds, told = torch.stack([kind for kind, _ in true]), torch.stack([rest for _, rest in true])
    there = kinds >= 0
    wanted = functional.one_hot(kinds.clamp(min=0), count).permute(0, 3, 1, 2) * there[:, None]
    missed = functional.binary_cross_entropy_with_logits(found[:, :count], wanted.float(), reduction="none")
    focal = (missed * (1 - (-missed).exp()) ** _FOCUSING).sum()
    rest, meant = found[:, count:].permute(0, 2, 3, 1)[there], told.permute(0, 2, 3, 1)[there]
    box = functional.smooth_l1_loss(rest[:, :4], meant[:, :4], beta=0.1, reduction="sum")
    state = functional.binary_cross_entropy_with_logits(rest[:, 4:], meant[:, 4:], reduction="sum")
    return (focal + _BOX_WEIGHT * box + _STATE_WEIGHT * state) / there.sum().clamp(min=1)


def teach_speller(speller: Speller, screens: Screens, pace: Pace, scratch: Path, report: Report) -> list[float]:
    """Train the speller; see :func:`models.eyes.small.descend`."""
    lines = sorted(screens.lines(), key=lambda one: one[1].box[2] / one[1].box[3])  # those of like width together

    def loss_of(update: int) -> Tensor:
        chooser = random.Random(f"{update}/lines")
        first = chooser.randrange(max(1, len(lines) - _NEAR * pace.batch))
        chosen = chooser.sample(lines[first : first + _NEAR * pace.batch], pace.batch)
        shown = [ink(screens.image(screen), _shaken(line.box, chooser)) for screen, line in chosen]
        return spelling_loss(speller(side_by_side(shown)), [line.text for _, line in chosen])

    return descend(speller, pace, loss_of, scratch, report)


def spelling_loss(logits: Tensor, texts: Sequence[str]) -> Tensor:
    """Minus the log-likelihood of the texts, a sign on average (CTC), of :class:`Speller`'s logits."""
    signs = [torch.tensor([1 + SIGNS.index(sign) for sign in text]) for text in texts]
    sizes = torch.tensor([len(text) for text in signs])
    steps = torch.full((len(texts),), logits.shape[1])
    chances = logits.log_softmax(-1).transpose(0, 1)
    return (
        functional.ctc_loss(chances, torch.cat(signs), steps, sizes, reduction="sum", zero_infinity=True) / sizes.sum()
    )


def _shaken(box: Box, chooser: random.Random) -> Box:
    left, top, width, height = box
    move = [chooser.uniform(-_MOVED_PX, _MOVED_PX) for _ in range(2)]
    grow = [1 + chooser.uniform(-_GROWN, _GROWN) for _ in range(2)]
    return left + move[0], top + move[1] * height / LINE_PX, width * grow[0], height * grow[1]


@torch.inference_mode()
def measure(spotter: Spotter, speller: Speller, screens: Screens) -> dict[str, list[bool]]:
    """How well screens are read: of each group, whether each true spot is found (a spot of its kind whose centre lies
    in its box) and whether each found one is true; of each line in its true box, whether it is spelt exactly.
    """
    counts: dict[str, list[bool]] = {}
    for place, spots in enumerate(screens.spots):
        for group, found in spotter.spots(screens.image(place)).items():
            true = spots[group]
            counts.setdefault(f"{group} found", []).extend(any(_same(one, other) for other in found) for one in true)
            counts.setdefault(f"{group} true", []).extend(any(_same(one, other) for one in true) for other in found)
    lines = screens.lines()
    told = [speller.texts([ink(screens.image(place), line.box)])[0] for place, line in lines]
    counts["lines spelt"] = [text == line.text for text, (_, line) in zip(told, lines, strict=True)]
    return counts


def _same(true: Spot, found: Spot) -> bool:
    return true.kind == found.kind and true.holds(found)
