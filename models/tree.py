"""Trees of tokens: what prompts and answers begin with alike is computed once.

A token hangs on another. It sees that one, all that one sees, and itself; its position goes on from there. So each
prompt and each answer is what it would be in a row of its own, and where they part they do not see each other.
A batch has a tree in each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

if TYPE_CHECKING:
    from models.network import Network

ROOT = -1  # what the first tokens of a tree hang on


class Token(NamedTuple):
    """A token, its position on each axis of the network's rotary positions, and the patch that stands in its place.

    ``patch`` is (name of the picture, number of its feature), None for text.
    """

    id: int
    position: tuple[int, ...]
    patch: tuple[str, int] | None = None

    def then(self, ids: Iterable[int]) -> list[Token]:
        """Text that follows this token."""
        first = max(self.position) + 1
        return [Token(token, (first + place,) * len(self.position)) for place, token in enumerate(ids)]


class Tree:
    """Tokens in the order they were added; ``paths`` are the places of what each sees, itself the last."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.paths: list[np.ndarray] = []
        self._next: dict[tuple[int, Token], int] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, on: int, tokens: Sequence[Token]) -> list[int]:
        """The places of a run of tokens that hangs on the token at ``on``; what is there already is not added again."""
        places = []
        for token in tokens:
            place = self._next.setdefault((on, token), len(self.tokens))
            if place == len(self.tokens):
                before = self.paths[on] if on != ROOT else np.empty(0, dtype=np.int64)
                self.tokens.append(token)
                self.paths.append(np.append(before, place))
            places.append(place)
            on = place
        return places

    def say(self, on: int, ids: Sequence[int]) -> list[int]:
        """The places of text that hangs on the token at ``on``."""
        return self.add(on, self.tokens[on].then(ids))


class Forest:
    """Trees as the rows of a batch, computed as they grow.

    Args:
        features: of each picture in the trees (patches, width), by name.
        states: keys and values (layers, 2, heads, places, width) of the places that each tree begins with, where
            they are known already. Without it nothing is kept that the trees could grow on.
    """

    def __init__(
        self,
        network: Network,
        trees: Sequence[Tree],
        features: Mapping[str, Tensor],
        states: Sequence[Tensor | None] | None = None,
    ) -> None:
        self.trees = trees
        self._network, self._features = network, features
        self._cache = None if states is None else _cache(states)
        self._width = 0 if self._cache is None else self._cache.get_seq_length()
        known = [0 if found is None else found.shape[-2] for found in states or [None] * len(trees)]
        self._columns = [np.arange(self._width - count, self._width) for count in known]  # of the places computed
        self._first = list(known)  # of the places computed last
        self._hidden: Tensor

    def compute(self) -> None:
        """Compute what has been added to the trees."""
        self._first = [len(columns) for columns in self._columns]
        fresh = [tree.tokens[first:] for tree, first in zip(self.trees, self._first, strict=True)]
        before, width = self._width, max(map(len, fresh))
        self._width += width
        self._columns = [
            np.append(columns, before + np.arange(len(tokens)))
            for columns, tokens in zip(self._columns, fresh, strict=True)
        ]
        self._hidden = self._network.hidden(
            inputs_embeds=self._embed(fresh, width),
            attention_mask=self._network.place(self._mask(before, width)),
            position_ids=self._positions(fresh, width),
            past_key_values=self._cache,
            use_cache=self._cache is not None,
        ).last_hidden_state

    def hidden(self, places: Sequence[tuple[int, int]]) -> Tensor:
        """Hidden states (places, width) of (row, place) among those computed last."""
        columns = [place - self._first[row] for row, place in places]
        return self._hidden[[row for row, _ in places], columns]

    def states(self, row: int, places: np.ndarray) -> Tensor:
        """Keys and values (layers, 2, heads, places, width) of some places of a row."""
        columns = torch.as_tensor(self._columns[row][places], device=self._hidden.device)
        layers = self._cache.layers  # type: ignore[union-attr]
        return torch.stack([torch.stack([one.keys[row][:, columns], one.values[row][:, columns]]) for one in layers])

    def _embed(self, fresh: Sequence[Sequence[Token]], width: int) -> Tensor:
        ids = [[*(token.id for token in tokens), *[0] * (width - len(tokens))] for tokens in fresh]
        embedded = self._network.embed(torch.tensor(ids))
        spots = [
            (row, column, *token.patch)
            for row, tokens in enumerate(fresh)
            for column, token in enumerate(tokens)
            if token.patch is not None
        ]
        if not spots:
            return embedded
        rows, columns, names, numbers = zip(*spots, strict=True)
        shown, first, count = dict.fromkeys(names), {}, 0
        for name in shown:
            first[name] = count
            count += len(self._features[name])
        patches = torch.cat([self._features[name] for name in shown]).to(embedded)
        wanted = [first[name] + number for name, number in zip(names, numbers, strict=True)]
        return embedded.index_put((torch.tensor(rows), torch.tensor(columns)), patches[wanted])

    def _mask(self, before: int, width: int) -> Tensor:
        """What the new places do not see (rows, 1, width, columns); padding sees itself, so that no row is empty."""
        hidden = np.ones((len(self.trees), 1, width, before + width), dtype=bool)
        for row, (tree, first, columns) in enumerate(zip(self.trees, self._first, self._columns, strict=True)):
            for query, path in enumerate(tree.paths[first:]):
                hidden[row, 0, query, columns[path]] = False
            padding = np.arange(len(tree) - first, width)
            hidden[row, 0, padding, before + padding] = False
        lowest = torch.finfo(self._network.model.dtype).min
        return torch.zeros(hidden.shape).masked_fill(torch.from_numpy(hidden), lowest)

    def _positions(self, fresh: Sequence[Sequence[Token]], width: int) -> Tensor:
        """Position ids: (rows, width), with the axes before it where there are several."""
        axes = len(self.trees[0].tokens[0].position)
        rows = [[*(token.position for token in tokens), *[(0,) * axes] * (width - len(tokens))] for tokens in fresh]
        positions = torch.tensor(rows).permute(2, 0, 1)
        return self._network.place(positions if axes > 1 else positions[0])


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
