"""What an engine remembers of the prompts it has read: their keys and values.

A later step's prompt begins with them up to the last picture (:mod:`models.prompts`) and goes on from there; the same
prompt, asked again, is there but for its last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from models.network import Network
from models.prompts import Context
from models.reading import Album, Prompt, grow, read, rows_of
from models.tree import ROOT, Forest, Run, Tree

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
    """Tokens up to the end of a picture or a prompt: keys and values (layers, 2, heads, tokens, width), and what was
    read next.
    """

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
        """The prompts of contexts; what is remembered of them is known to the forest.

        Where padding is not cheap each is computed by itself first: side by side all would take as long as the longest.
        """
        prompts = read(self._network, contexts, self._album)
        if not self._network.abreast and len(set(rows_of(prompts))) > 1:
            for prompt in prompts:
                self._learn(prompt)
        return self._plant(prompts)

    def keep(self, planted: Planted) -> None:
        """Remember prompts that have been computed."""
        if self.bytes > self._limit:
            self._album, self._segments, self._held = Album(), {}, 0
        self._remember(planted)

    @property
    def bytes(self) -> int:
        """What it holds: keys and values, and the features of pictures."""
        return self._held + self._album.nbytes

    def _learn(self, prompt: Prompt) -> None:
        if len(self._known(prompt)) < len(prompt.before):
            planted = self._plant([prompt])
            planted.forest.compute()
            self._remember(planted)

    def _plant(self, prompts: list[Prompt]) -> Planted:
        rows = rows_of(prompts)
        trees = [Tree() for _ in set(rows)]
        known: list[list[Tensor]] = [[] for _ in trees]
        for row, prompt in zip(rows, prompts, strict=True):
            known[row] += self._recall(trees[row], prompt)
        states = [torch.cat(found, dim=-2) if found else None for found in known]
        ends = [(row, grow(trees[row], prompt)) for row, prompt in zip(rows, prompts, strict=True)]
        return Planted(Forest(self._network, trees, self._album, states), prompts, ends)

    def _remember(self, planted: Planted) -> None:
        for prompt, (row, end) in zip(planted.prompts, planted.ends, strict=True):
            path, level = planted.forest.trees[row].path(end), self._segments
            for run in prompt.before:
                key = run.key
                if key not in level:
                    level[key] = Segment(planted.forest.states(row, path[: len(run)]))
                    self._held += level[key].states.nbytes
                path, level = path[len(run) :], level[key].following

    def _known(self, prompt: Prompt) -> list[tuple[Run, Segment]]:
        """What is remembered of a prompt."""
        level, found = self._segments, []
        for run in prompt.before:
            if (segment := level.get(run.key)) is None:
                break
            found.append((run, segment))
            level = segment.following
        return found

    def _recall(self, tree: Tree, prompt: Prompt) -> list[Tensor]:
        """Add to the tree what is remembered of a prompt. Returns the states of what was not in the tree before."""
        on, states = ROOT, []
        for run, segment in self._known(prompt):
            before = len(tree)
            on = tree.add(on, run)[-1]
            states.append(segment.states[..., before + len(run) - len(tree) :, :])
        return states
