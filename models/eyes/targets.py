"""What the tower is taught first: which letters each patch shows, and which words each cell says.

The words are tokens of the language model, and a cell says them in the model's own input embeddings: so what the
eyes see stands before the language model as words do, and little is left to align.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from environments.pages.blocks import Thing
from environments.pages.page import random_page
from environments.pages.studio import Shot, Studio
from models.eyes.shape import CELLS, IMAGE_PX, PATCHES, Grid

LETTERS = "".join(map(chr, range(33, 127)))
SLOTS = 3  # letters told of a patch: it is 8 pixels wide
BLANK, OTHER = 0, len(LETTERS) + 1  # classes of a slot; letter n is class n + 1
WORDS = 6  # tokens told of a cell

_SAYS = {
    "button": " button", "link": " link", "textbox": " input", "password": " password", "checkbox": " check",
    "radio": " radio", "select": " select", "option": " option", "tab": " tab", "heading": " heading",
    "box": " box", "textarea": " input", "icon": " icon", "figure": " figure",
}  # fmt: skip


def pixels(png: bytes) -> Tensor:
    """A screenshot in the size in which the base's image processor hands it on: (3, side, side), 0 to 255."""
    image = Image.open(io.BytesIO(png)).convert("RGB").resize((IMAGE_PX, IMAGE_PX), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def letters(shot: Shot) -> Tensor:
    """The letters whose centres lie in each patch, in reading order: classes (patches, slots)."""
    grid, found = Grid(PATCHES), defaultdict[int, list[tuple[float, float, int]]](list)
    for text, centres in shot.texts:
        for letter, centre in zip(text, centres, strict=False):
            if centre is not None and (place := grid.place(*centre)) is not None:
                found[place].append((round(centre[1] / 6), centre[0], _letter(letter)))
    classes = torch.full((PATCHES**2, SLOTS), BLANK)
    for place, seen in found.items():
        told = [letter for _, _, letter in sorted(seen)[:SLOTS]]
        classes[place, : len(told)] = torch.tensor(told)
    return classes


def _letter(letter: str) -> int:
    return LETTERS.index(letter) + 1 if letter in LETTERS else OTHER


@dataclass
class Vocabulary:
    """The language model's tokens. ``tokenizer`` is its fast tokenizer."""

    tokenizer: Any
    _known: dict[str, int] = field(default_factory=dict)

    def pieces(self, text: str) -> list[tuple[int, int, int]]:
        """(token, start, stop) of the pieces of a text."""
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return [(token, *span) for token, span in zip(found["input_ids"], found["offset_mapping"], strict=True)]

    def token(self, word: str) -> int:
        """The first token of a word."""
        if word not in self._known:
            self._known[word] = self.tokenizer.encode(word, add_special_tokens=False)[0]
        return self._known[word]


def words(shot: Shot, things: Sequence[Thing], vocabulary: Vocabulary) -> Tensor:
    """The tokens that each cell says: (cells, words), -1 where there are fewer."""
    grid, said = Grid(CELLS), defaultdict[int, list[int]](list)
    for text, centres in shot.texts:
        for token, start, stop in vocabulary.pieces(text):
            seen = [centre for centre in centres[start:stop] if centre is not None]
            if seen and (place := grid.place(*np.mean(seen, axis=0))) is not None:
                said[place].append(token)
    for thing in things:
        if thing.mark in shot.boxes:
            _say(thing, shot.boxes[thing.mark], grid, said, vocabulary)
    table = torch.full((CELLS**2, WORDS), -1)
    for place, tokens in said.items():
        distinct = list(dict.fromkeys(tokens))[:WORDS]
        table[place, : len(distinct)] = torch.tensor(distinct)
    return table


def _say(
    thing: Thing,
    box: tuple[float, float, float, float],
    grid: Grid,
    said: dict[int, list[int]],
    vocabulary: Vocabulary,
) -> None:
    """A colour is said all over a thing; its sort, shape and state where its centre is."""
    left, top, width, height = box
    if thing.colour:
        for place in grid.within(box):
            said[place].append(vocabulary.token(f" {thing.colour}"))
    centre = grid.place(left + width / 2, top + height / 2)
    if centre is None:
        return
    for word in (_SAYS.get(thing.sort, ""), thing.shape and f" {thing.shape}", " on" if thing.on else ""):
        if word:
            said[centre].append(vocabulary.token(word))


class Readings(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Random pages from ``first`` on: (pixels, letters, words) of each. Endless but for ``count``."""

    def __init__(self, first: int, count: int, tokenizer: Any, lexicon: Sequence[str]) -> None:
        self._first, self._count = first, count
        self._vocabulary, self._lexicon = Vocabulary(tokenizer), lexicon
        self._studio: Studio | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        if self._studio is None:
            self._studio = Studio()
        page = random_page(self._first + index, self._lexicon)
        shot = self._studio.show(page)
        return pixels(shot.observation.screenshot), letters(shot), words(shot, page.things, self._vocabulary)
