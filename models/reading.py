"""Contexts as tokens: text, and the screenshots as a network sees them.

To read needs no device: what the vision tower makes of screenshots is asked for later, of all at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from models.engine import EngineError
from models.prompts import Context
from models.tree import ROOT, Run, Tree, text

if TYPE_CHECKING:
    from models.network import Network


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ``trunk`` is cut after each picture: that far, prompts of later steps are the same. The ``twig`` is not."""

    trunk: tuple[Run, ...]
    twig: Run

    @property
    def runs(self) -> tuple[Run, ...]:
        """All of it."""
        return *self.trunk, self.twig

    @property
    def before(self) -> tuple[Run, ...]:
        """All but its last token: what comes after a prompt is told from that token's hidden state."""
        return *self.trunk, self.twig[:-1]


@dataclass(slots=True)
class Album:
    """Screenshots: each is prepared once, as tokens, and seen once."""

    _pictures: dict[bytes, Run] = field(default_factory=dict)
    _unseen: dict[str, Mapping[str, Tensor]] = field(default_factory=dict)
    _features: dict[str, Tensor] = field(default_factory=dict)

    def pictures(self, network: Network, images: Sequence[bytes]) -> list[Run]:
        """The tokens that stand for screenshots (PNG), as they are where a prompt begins with one."""
        for png in images:
            if png not in self._pictures:
                self._pictures[png], inputs = _prepare(network, png)
                self._unseen[self._pictures[png].name] = inputs
        return [self._pictures[png] for png in images]

    def features(self, network: Network, names: Collection[str]) -> Mapping[str, Tensor]:
        """What the vision tower makes of pictures (patches, width), by name: of those with a patch, its tokens.

        A picture that is not asked for, since what is read of it is remembered, need not be seen.

        Raises:
            EngineError: when a picture has more or fewer features than patches among its tokens.
        """
        unseen = {name: self._unseen.pop(name) for name in names if name in self._unseen}
        if unseen:
            seen = dict(zip(unseen, network.see(list(unseen.values())), strict=True))
            self._check(network, seen)
            self._features |= seen
        return self._features

    def _check(self, network: Network, seen: Mapping[str, Tensor]) -> None:
        """Else a network would learn and judge on a part of what it sees, as Gemma 3, or on another picture's."""
        patches = {run.name: int((run.patches >= 0).sum()) for run in self._pictures.values()}
        for name, features in seen.items():
            if len(features) != patches[name]:
                raise EngineError(
                    f"{network.kind}: a screenshot has {len(features)} features, and in its tokens "
                    f"{network.placeholder} stands {patches[name]} times, which must be as often; "
                    "set base.agent and base.reward to other models, such as Qwen2.5-VL"
                )

    def cut_off(self, network: Network, names: Collection[str]) -> list[tuple[Tensor, Tensor]]:
        """See pictures, and keep their features apart from how they came about, where that is trained too.

        Returns:
            The features as they came about, each with what is kept of it: that gathers the gradient to hand on to them.
        """
        seen = {name: features for name, features in self.features(network, names).items() if features.grad_fn}
        kept = {name: features.detach().requires_grad_() for name, features in seen.items()}
        self._features |= kept
        return [(features, kept[name]) for name, features in seen.items()]

    @property
    def nbytes(self) -> int:
        """Of the features, and of what the vision tower is still to see."""
        unseen = [value for inputs in self._unseen.values() for value in inputs.values()]
        return sum(value.nbytes for value in [*self._features.values(), *unseen])


def _prepare(network: Network, png: bytes) -> tuple[Run, Mapping[str, Tensor]]:
    """A screenshot, and the vision tower's inputs."""
    inputs = network.picture(png)
    ids = inputs.pop("input_ids")[0]
    patch = (ids == network.patch).numpy()
    patches = np.where(patch, patch.cumsum() - 1, -1)
    name = hashlib.sha256(png).hexdigest()
    return Run(ids.numpy(), network.positions(ids, inputs).numpy(), patches, name), inputs


def read(network: Network, contexts: Sequence[Context], album: Album) -> list[Prompt]:
    """The prompts of contexts. Screenshots that the album lacks are put into it."""
    prompts = [network.prompt(context) for context in contexts]
    return [_lay(network, words, album.pictures(network, images)) for words, images in prompts]


def _lay(network: Network, words: str, pictures: Sequence[Run]) -> Prompt:
    """The tokens of a prompt: of its words, with a picture in each placeholder's place.

    Raises:
        EngineError: when the words have more or fewer placeholders than there are pictures.
    """
    ids = network.text_tokens(words)
    places = [place for place, token in enumerate(ids) if token == network.patch]
    if len(places) != len(pictures):
        raise EngineError(
            f"{network.kind}: a prompt has {len(pictures)} screenshots, and {network.placeholder} stands in it "
            f"{len(places)} times, which must be as often (for Aya Vision's, something else does); "
            "set base.agent and base.reward to other models, such as Qwen2.5-VL"
        )
    start, first, trunk = 0, 0, []
    for place, picture in zip(places, pictures, strict=True):
        trunk.append(_shown(text(ids[first:place], start, network.axes), picture, start + place - first))
        start, first = int(trunk[-1].positions[-1].max()) + 1, place + 1
    return Prompt(tuple(trunk), text(ids[first:], start, network.axes))


def _shown(before: Run, picture: Run, start: int) -> Run:
    """Text, and a picture that begins at a position."""
    return Run(
        np.concatenate([before.ids, picture.ids]),
        np.concatenate([before.positions, start + picture.positions]),
        np.concatenate([before.patches, picture.patches]),
        picture.name,
    )


def plant(prompts: Sequence[Prompt]) -> tuple[list[Tree], list[tuple[int, int]]]:
    """Trees of the prompts, one for all that begin alike, and where each prompt ends: (tree, place)."""
    rows = rows_of(prompts)
    trees = [Tree() for _ in set(rows)]
    return trees, [(row, grow(trees[row], prompt)) for row, prompt in zip(rows, prompts, strict=True)]


def grow(tree: Tree, prompt: Prompt) -> int:
    """Add a prompt to a tree. Returns the place of its end."""
    on = ROOT
    for run in prompt.runs:
        on = tree.add(on, run)[-1]
    return on


def rows_of(prompts: Sequence[Prompt]) -> list[int]:
    """The row of each prompt in a batch: those that begin with the same words and picture share one."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(prompt.trunk[0].key, len(numbers)) for prompt in prompts]
