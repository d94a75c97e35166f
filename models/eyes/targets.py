"""What the tower is taught: what things each cell shows, and where they are.

Things are told in the language model's own input embeddings of a few words (colours, shapes, icons, kinds, states), so
that what the eyes see stands before the language model as words do; a code of where the thing is comes on top.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from environments.browser.chromium import VIEWPORT_PX
from environments.pages.blocks import Thing
from environments.pages.figures import COLOURS, ICONS, SHAPES
from environments.pages.studio import Shot
from models.eyes.shape import CELLS, IMAGE_PX, Grid

SORTS = {
    "button": "button", "link": "link", "textbox": "input", "password": "password", "checkbox": "check",
    "radio": "radio", "select": "select", "option": "option", "tab": "tab", "heading": "heading",
    "box": "box", "textarea": "input", "icon": "icon", "figure": "figure",
}  # fmt: skip
GROUPS = {
    "colour": (*COLOURS,),
    "shape": (*SHAPES, "letter", "digit", *ICONS),
    "sort": (*dict.fromkeys(SORTS.values()),),
    "size": ("small", "large"),
    "state": ("on",),
}
FACTS = tuple(word for words in GROUPS.values() for word in words)  # what can be told of a thing
TOLD = 6  # facts told of a cell
NOWHERE = -1.0
_PITCHES_PX = (512.0, 256.0, 128.0, 64.0, 40.0, 24.0)  # wave lengths of the code of a place


def pixels(png: bytes) -> Tensor:
    """A screenshot in the size in which the base's image processor hands it on: (3, side, side), 0 to 255."""
    image = Image.open(io.BytesIO(png)).convert("RGB").resize((IMAGE_PX, IMAGE_PX), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def things(shot: Shot, seen: Sequence[Thing]) -> tuple[Tensor, Tensor]:
    """What each cell shows: facts (cells, told), -1 where there are fewer, and the centre (cells, 2) of its thing.

    A thing's colour is told by every cell it covers, all else by the cell of its centre. A cell with several centres
    tells the facts of all and the place of the last; one with none has no place.
    """
    grid, told = Grid(CELLS), defaultdict[int, dict[int, None]](dict)
    centres = torch.full((CELLS**2, 2), NOWHERE)
    for thing in seen:
        if thing.mark not in shot.boxes:
            continue
        box = shot.boxes[thing.mark]
        if thing.colour:
            for place in grid.within(box):
                told[place][FACTS.index(thing.colour)] = None
        x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
        if (centre := grid.place(x, y)) is not None:
            told[centre] |= dict.fromkeys(_facts(thing))
            centres[centre] = torch.tensor([x, y])
    facts = torch.full((CELLS**2, TOLD), -1)
    for place, found in told.items():
        chosen = list(found)[:TOLD]
        facts[place, : len(chosen)] = torch.tensor(chosen)
    return facts, centres


def _facts(thing: Thing) -> list[int]:
    words = (thing.colour, thing.shape, SORTS.get(thing.sort, ""), thing.size, "on" if thing.on else "")
    return [FACTS.index(word) for word in words if word]


def place_code(points: Tensor, width: int) -> Tensor:
    """A code (..., width) of length 1 for points (..., 2) in CSS pixels: the nearer two are, the more alike.

    Sines and cosines of both coordinates at several wave lengths, turned into ``width`` dimensions at random.
    """
    waves = 2 * math.pi / torch.tensor(_PITCHES_PX, device=points.device)
    angles = (points[..., None] * waves).flatten(-2)
    turns = torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(angles.shape[-1])
    drawn = torch.randn(width, turns.shape[-1], generator=torch.Generator().manual_seed(0))
    code: Tensor = turns @ torch.linalg.qr(drawn).Q.T.to(points.device)
    return code


def nearest_place(code: Tensor) -> Tensor:
    """The points (..., 2), on a raster of two pixels, whose codes fit best."""
    width, height = VIEWPORT_PX
    raster = torch.cartesian_prod(torch.arange(0, width, 2.0), torch.arange(0, height, 2.0)).to(code.device)
    return raster[(code @ place_code(raster, code.shape[-1]).T).argmax(-1)]
