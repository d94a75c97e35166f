"""Trees of tokens: what prompts and answers begin with alike is computed once.

A token hangs on another. It sees that one, all that one sees, and itself; its position goes on from there. So each
prompt and each answer is what it would be in a row of its own, and where they part they do not see each other.
A batch has a tree in each row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

if TYPE_CHECKING:
    from models.network import Network
    from models.reading import Album

ROOT = -1  # what the first tokens of a tree hang on


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Tokens that follow each other.

    ``positions`` are (tokens, axes), on the axes of the network's rotary positions. ``patches`` are the numbers of what
    stands in the tokens' places among the features of the picture ``name``, -1 for text.
    """

    ids: np.ndarray
    positions: np.ndarray
    patches: np.ndarray
    name: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> Run:
        return Run(self.ids[part], self.positions[part], self.patches[part], self.name)

    @property
    def key(self) -> tuple[str, bytes, bytes]:
        """The same for runs of the same tokens."""
        return self.name, self.ids.tobytes(), self.positions.tobytes()

    def shared(self, other: Run) -> int:
        """How many tokens both begin with alike."""
        count = min(len(self), len(other))
        same = self.ids[:count] == other.ids[:count]
        same &= (self.positions[:count] == other.positions[:count]).all(axis=1)
        same &= self.patches[:count] == other.patches[:count]
        if self.name != other.name:
            same &= self.patches[:count] < 0
        return count if same.all() else int(same.argmin())


def text(ids: Sequence[int], start: int, axes: int) -> Run:
    """A run of text that begins at a position."""
    positions = np.broadcast_to(np.arange(start, start + len(ids))[:, None], (len(ids), axes))
    return Run(np.array(ids, dtype=np.int64), positions, np.full(len(ids), -1))


class Piece(NamedTuple):
    """Tokens that were added to a tree at once, from the place ``start`` on; ``before`` are the places they all see."""

    start: int
    run: Run
    before: np.ndarray

    @property
    def end(self) -> int:
        """The place after the last of them."""
        return self.start + len(self.run)


_start = attrgetter("start")


class Tree:
    """Tokens in the order they were added."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._after: dict[int, list[int]] = {}  # where the pieces start that hang on a place

    def __len__(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    def add(self, on: int, run: Run) -> list[int]:
        """The places of a run of tokens that hangs on the token at ``on``; what is there already is not added again."""
        places: list[int] = []
        while len(run) and (found := self._follow(on, run)):
            places += found
            on, run = found[-1], run[len(found) :]
        if len(run):
            start = len(self)
            before = self.path(on) if on != ROOT else np.empty(0, dtype=np.int64)
            self.pieces.append(Piece(start, run, before))
            self._after.setdefault(on, []).append(start)
            places += range(start, start + len(run))
        return places

    def say(self, on: int, ids: Sequence[int]) -> list[int]:
        """The places of text that hangs on the token at ``on``."""
        piece = self._piece(on)
        position = piece.run.positions[on - piece.start]
        return self.add(on, text(ids, int(position.max()) + 1, len(position)))

    def since(self, place: int) -> list[Piece]:
        """The pieces that were added from a place on."""
        return self.pieces[bisect_left(self.pieces, place, key=_start) :]

    def path(self, place: int) -> np.ndarray:
        """The places of what the token at a place sees, itself the last."""
        piece = self._piece(place)
        return np.append(piece.before, np.arange(piece.start, place + 1))

    def _piece(self, place: int) -> Piece:
        return self.pieces[bisect_right(self.pieces, place, key=_start) - 1]

    def _follow(self, on: int, run: Run) -> range:
        """The places after ``on`` that a run has in common with the piece which goes on as it does, if one does."""
        ahead = list(self._after.get(on, ()))
        if on != ROOT and on + 1 < self._piece(on).end:
            ahead.append(on + 1)
        for first in ahead:
            piece = self._piece(first)
            if count := piece.run[first - piece.start :].shared(run):
                return range(first, first + count)
        return range(0)


@dataclass(frozen=True, slots=True)
class Layout:
    """What has been added to the trees of a forest, a row each, with padding: what is known before a device is asked.

    ``ids`` are (rows, width), ``positions`` the same, with the axes before it where there are several; ``unseen``
    (rows, 1, width, columns) is what each does not see; ``patches`` are (row, columns, name of the picture, numbers of
    its features).
    """

    ids: Tensor
    positions: Tensor
    unseen: Tensor
    patches: list[tuple[int, np.ndarray, str, np.ndarray]]


class Forest:
    """Trees as the rows of a batch, computed as they grow.

    Args:
        album: has the pictures in the trees.
        states: keys and values (layers, 2, heads, places, width) of the places that each tree begins with, where
            they are known already. Without it nothing is kept that the trees could grow on.
    """

    def __init__(
        self, network: Network, trees: Sequence[Tree], album: Album, states: Sequence[Tensor | None] | None = None
    ) -> None:
        self.trees = trees
        self._network, self._album = network, album
        self._cache = None if states is None else _cache(states)
        self._width = 0 if self._cache is None else self._cache.get_seq_length()
        known = [0 if found is None else found.shape[-2] for found in states or [None] * len(trees)]
        self._columns = [np.arange(self._width - count, self._width) for count in known]  # of the places laid out
        self._first = list(known)  # of the places laid out last
        self._layout: Layout | None = None
        self._hidden: Tensor

    def lay(self) -> None:
        """Lay out what has been added to the trees, so that there is less to do when it is computed."""
        self._layout = self._lay()

    @property
    def pictures(self) -> list[str]:
        """The names of the pictures in what is laid out."""
        return list(dict.fromkeys(name for _, _, name, _ in self._layout.patches)) if self._layout else []

    def compute(self) -> None:
        """Compute what has been added to the trees, or was laid out before."""
        layout, self._layout = self._layout or self._lay(), None
        self._hidden = self._network.hidden(
            inputs_embeds=self._embed(layout),
            attention_mask=self._mask(layout),
            position_ids=self._network.place(layout.positions),
            past_key_values=self._cache,
            use_cache=self._cache is not None,
        ).last_hidden_state

    def hidden(self, places: Sequence[tuple[int, int]]) -> Tensor:
        """Hidden states (places, width) of (row, place) among those computed last."""
        width = self._hidden.shape[1]
        flat = torch.tensor([row * width + place - self._first[row] for row, place in places], dtype=torch.long)
        # Not by indexing: of a place that is asked for twice, threads would add up the gradients in any order.
        return self._hidden.flatten(0, 1).index_select(0, flat.to(self._hidden.device))

    def states(self, row: int, places: np.ndarray) -> Tensor:
        """Keys and values (layers, 2, heads, places, width) of some places of a row."""
        columns = torch.as_tensor(self._columns[row][places], device=self._hidden.device)
        layers = self._cache.layers  # type: ignore[union-attr]
        return torch.stack([torch.stack([one.keys[row][:, columns], one.values[row][:, columns]]) for one in layers])

    def _lay(self) -> Layout:
        self._first = [len(columns) for columns in self._columns]
        counts = [len(tree) - first for tree, first in zip(self.trees, self._first, strict=True)]
        before, width = self._width, max(counts)
        self._width += width
        self._columns = [
            np.append(columns, before + np.arange(count)) for columns, count in zip(self._columns, counts, strict=True)
        ]
        axes = self.trees[0].pieces[0].run.positions.shape[1]
        ids = np.zeros((len(self.trees), width), dtype=np.int64)
        positions = np.zeros((axes, len(self.trees), width), dtype=np.int64)
        patches = []
        for row, (tree, first) in enumerate(zip(self.trees, self._first, strict=True)):
            for start, run, _ in tree.since(first):
                at = slice(start - first, start - first + len(run))
                ids[row, at], positions[:, row, at] = run.ids, run.positions.T
                (drawn,) = np.nonzero(run.patches >= 0)
                if len(drawn):
                    patches.append((row, at.start + drawn, run.name, run.patches[drawn]))
        placed = torch.from_numpy(positions if axes > 1 else positions[0])
        return Layout(torch.from_numpy(ids), placed, self._unseen(before, width), patches)

    def _unseen(self, before: int, width: int) -> Tensor:
        """See :class:`Layout`. Padding sees itself, so that no row is empty."""
        unseen = np.ones((len(self.trees), 1, width, before + width), dtype=bool)
        for row, (tree, first, columns) in enumerate(zip(self.trees, self._first, self._columns, strict=True)):
            for piece in tree.since(first):
                at = slice(piece.start - first, piece.end - first)
                own = slice(before + at.start, before + at.stop)
                unseen[row, 0, at, columns[piece.before]] = False
                unseen[row, 0, at, own] = ~np.tri(len(piece.run), dtype=bool)
            padding = np.arange(len(tree) - first, width)
            unseen[row, 0, padding, before + padding] = False
        return torch.from_numpy(unseen)

    def _embed(self, layout: Layout) -> Tensor:
        embedded = self._network.embed(layout.ids)
        if not layout.patches:
            return embedded
        features = self._album.features(self._network, dict.fromkeys(name for _, _, name, _ in layout.patches))
        rows = np.concatenate([np.full(len(columns), row) for row, columns, _, _ in layout.patches])
        columns = np.concatenate([columns for _, columns, _, _ in layout.patches])
        shown = [
            features[name][self._network.place(torch.from_numpy(numbers))] for _, _, name, numbers in layout.patches
        ]
        patches = torch.cat(shown).to(embedded)
        return embedded.index_put((torch.from_numpy(rows), torch.from_numpy(columns)), patches)

    def _mask(self, layout: Layout) -> Tensor:
        """What is added to the attention's logits (rows, 1, width, columns)."""
        dtype = self._network.model.dtype
        unseen = self._network.place(layout.unseen)
        return unseen.new_zeros(unseen.shape, dtype=dtype).masked_fill(unseen, torch.finfo(dtype).min)


def _cache(states: Sequence[Tensor | None]) -> Any:
    """A cache of rows that end together."""
    known = [found for found in states if found is not None]
    if not known:
        return DynamicCache()
    width = max(found.shape[-2] for found in known)
    rows = known[0].new_zeros(len(states), *known[0].shape[:-2], width, known[0].shape[-1])
    for row, found in enumerate(states):
        if found is not None:
            rows[row, ..., width - found.shape[-2] :, :] = found
    return DynamicCache([(rows[:, layer, 0], rows[:, layer, 1]) for layer in range(rows.shape[1])])
