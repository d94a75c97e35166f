"""Random pages drawn once and kept: what the tower reads, over and over, in parts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from environments.pages.page import random_page
from environments.pages.studio import Studio
from models.checkpoint import put
from models.eyes.shape import CELLS, PATCH_PX, PATCHES, SHUFFLE, scaled
from models.eyes.targets import TOLD, pixels, things

PAGES = 500  # of a sheet
BOARDS = 0.7  # share of them
_WORTH = 0.2  # share of cells that show something, from which a part of a page is sure to be read
_ELSE = 0.15  # chance of any other part


def draw(folder: Path, sheets: int, lexicon: Sequence[str], report: Callable[[int], None]) -> None:
    """Draw so many sheets of pages into ``folder``; those that are there stay. ``report`` is told how many are.

    Raises:
        WorldError: the browser broke.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [number for number in range(sheets) if not _file(folder, number).exists()]
    report(sheets - len(missing))
    if not missing:
        return
    with closing(Studio()) as studio:
        for done, number in enumerate(missing, sheets - len(missing) + 1):
            pages = [_page(studio, number * PAGES + place, lexicon) for place in range(PAGES)]
            columns = {name: torch.stack([page[name] for page in pages]) for name in pages[0]}
            put(columns, _file(folder, number))
            report(done)


def _file(folder: Path, number: int) -> Path:
    return folder / f"sheet-{number:03}.safetensors"


def _page(studio: Studio, seed: int, lexicon: Sequence[str]) -> dict[str, Tensor]:
    page = random_page(seed, lexicon, BOARDS)
    shot = studio.show(page)
    facts, centres = things(shot, page.things)
    return {
        "pixels": pixels(shot.observation.screenshot),
        "facts": facts.to(torch.int8),
        "centres": centres,
    }


@dataclass(frozen=True, slots=True)
class Batch:
    """Square parts of pages: pixels as the tower takes them (batch, 3, side, side), the numbers of their patches
    (batch, patches), facts (batch, cells, told) and centres (batch, cells, 2), see :mod:`models.eyes.targets`.
    """

    pixels: Tensor
    places: Tensor
    facts: Tensor
    centres: Tensor


class Sheets:
    """The sheets of a folder from ``first`` to before ``stop``, in memory; batches of them are put on ``device``."""

    def __init__(self, folder: Path, first: int, stop: int, device: str = "cpu") -> None:
        self._device = device
        sheets = [load_file(_file(folder, number)) for number in range(first, stop)]
        self._pixels = torch.cat([sheet["pixels"] for sheet in sheets])
        self._facts = torch.cat([sheet["facts"] for sheet in sheets]).view(-1, CELLS, CELLS, TOLD)
        self._centres = torch.cat([sheet["centres"] for sheet in sheets]).view(-1, CELLS, CELLS, 2)
        self._shows = (self._facts >= 0).any(-1).float()

    def __len__(self) -> int:
        return len(self._pixels)

    def whole(self, pages: Sequence[int]) -> Batch:
        """Whole pages."""
        return self._batch([(page, 0, 0) for page in pages], PATCHES)

    def parts(self, count: int, side: int, seed: int) -> Batch:
        """Random parts of ``side`` patches a side, mostly where something is: an even number, so that cells fit."""
        chooser = random.Random(seed)
        found: list[_Part] = []
        while len(found) < count:
            page = chooser.randrange(len(self))
            row, column = (chooser.randrange(0, PATCHES - side + 1, SHUFFLE) for _ in range(2))
            share = float(_cut(self._shows[page], row // SHUFFLE, column // SHUFFLE, side // SHUFFLE).mean())
            if share >= _WORTH or chooser.random() < _ELSE:
                found.append((page, row, column))
        return self._batch(found, side)

    def _batch(self, parts: Sequence[_Part], side: int) -> Batch:
        cells = side // SHUFFLE
        shown = [_cut(self._pixels[page].permute(1, 2, 0), row, column, side, PATCH_PX) for page, row, column in parts]
        places = [_cut(_NUMBERS, row, column, side) for _, row, column in parts]
        corners = [(page, row // SHUFFLE, column // SHUFFLE) for page, row, column in parts]
        facts = [_cut(self._facts[page], row, column, cells) for page, row, column in corners]
        centres = [_cut(self._centres[page], row, column, cells) for page, row, column in corners]
        columns = (
            scaled(torch.stack(shown).permute(0, 3, 1, 2)),
            torch.stack(places).flatten(1),
            torch.stack(facts).flatten(1, 2).long(),
            torch.stack(centres).flatten(1, 2),
        )
        return Batch(*(column.to(self._device) for column in columns))


_Part = tuple[int, int, int]  # page, first row and column of patches
_NUMBERS = torch.arange(PATCHES**2).view(PATCHES, PATCHES)


def _cut(table: Tensor, row: int, column: int, side: int, scale: int = 1) -> Tensor:
    """The square of a table (rows, columns, ...) that begins at a patch."""
    return table[row * scale : (row + side) * scale, column * scale : (column + side) * scale]
