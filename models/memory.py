"""What an engine remembers of the prompts it has read: their keys and values, up to the last picture of each.

A later step's prompt begins with them (:mod:`models.prompts`) and goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from models.network import Network
from models.prompts import Context
from models.reading import Album, Prompt, grow, read, rows_of
from models.tree import ROOT, Forest, Tree

_Key = tuple[str, bytes, bytes]  # of a run

MEMORY_BYTES = 2**29


@dataclass(frozen=True, slots=True)
class Planted:
    """Prompts as trees, not computed yet; ``ends`` are where each of them ends: (row, place)."""

    forest: Forest
    prompts: list[Prompt]
    ends: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens up to the end of a picture: keys and values (layers, 2, heads, tokens, width), and what was read next."""

    states: Tensor
    following: dict[_Key, Segment] = field(default_factory=dict)


class Memory:
    """Of one network. It forgets all when it holds more than ``limit`` bytes, which changes nothing but the time."""

    def __init__(self, network: Network, limit: int = MEMORY_BYTES) -> None:
        self._network, self._limit = network, limit
        self._album = Album()
        self._segments: dict[_Key, Segment] = {}
        self._held = 0

    def plant(self, contexts: Sequence[Context]) -> Planted:
        """The prompts of contexts; what is remembered of them is known to the forest."""
        prompts = read(self._network, contexts, self._album)
        rows = rows_of(prompts)
        trees = [Tree() for _ in set(rows)]
        known: list[list[Tensor]] = [[] for _ in trees]
        for row, prompt in zip(rows, prompts, strict=True):
            known[row] += self._recall(trees[row], prompt)
        states = [torch.cat(found, dim=-2) if found else None for found in known]
        ends = [(row, grow(trees[row], prompt)) for row, prompt in zip(rows, prompts, strict=True)]
        return Planted(Forest(self._network, trees, self._album, states), prompts, ends)

    def keep(self, planted: Planted) -> None:
        """Remember the trunks of prompts that have been computed."""
        if self.bytes > self._limit:
            self._album, self._segments, self._held = Album(), {}, 0
        for prompt, (row, end) in zip(planted.prompts, planted.ends, strict=True):
            path, level = planted.forest.trees[row].path(end), self._segments
            for run in prompt.trunk:
                key = run.key
                if key not in level:
                    level[key] = Segment(planted.forest.states(row, path[: len(run)]))
                    self._held += level[key].states.nbytes
                path, level = path[len(run) :], level[key].following

    @property
    def bytes(self) -> int:
        """What it holds: keys and values, and the features of pictures."""
        return self._held + self._album.nbytes

    def _recall(self, tree: Tree, prompt: Prompt) -> list[Tensor]:
        """Add to the tree what is remembered of a prompt. Returns the states of what was not in the tree before."""
        on, level, states = ROOT, self._segments, []
        for run in prompt.trunk:
            if (segment := level.get(run.key)) is None:
                break
            before = len(tree)
            on = tree.add(on, run)[-1]
            states.append(segment.states[..., before + len(run) - len(tree) :, :])
            level = segment.following
        return states
