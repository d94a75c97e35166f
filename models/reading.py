"""Contexts as tokens: text, and the screenshots as a network sees them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from models.prompts import Context
from models.tree import ROOT, Token, Tree

if TYPE_CHECKING:
    from models.network import Network

Run = tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot: the tokens that stand for it, their positions from where it begins, and its features.

    ``features`` (patches, width) are what the vision tower makes of it, for those of the tokens that have a patch.
    """

    name: str
    tokens: Run
    features: Tensor

    def at(self, start: int) -> Run:
        """Its tokens in a prompt in which it begins at position ``start``."""
        return tuple(
            Token(token.id, tuple(start + axis for axis in token.position), token.patch) for token in self.tokens
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ``trunk`` is cut after each picture: that far, prompts of later steps are the same. The ``twig`` is not."""

    trunk: tuple[Run, ...]
    twig: Run

    @property
    def tokens(self) -> Run:
        """All of it."""
        return (*(token for run in self.trunk for token in run), *self.twig)


def read(network: Network, contexts: Sequence[Context], album: dict[bytes, Picture]) -> list[Prompt]:
    """The prompts of contexts. Screenshots (PNG) that the album lacks are seen, all at once, and put into it."""
    prompts = [network.prompt(context) for context in contexts]
    new = [png for png in dict.fromkeys(png for _, images in prompts for png in images) if png not in album]
    album |= zip(new, look(network, new), strict=True)
    return [_lay(network, text, [album[png] for png in images]) for text, images in prompts]


def look(network: Network, images: Sequence[bytes]) -> list[Picture]:
    """Screenshots (PNG) as the network sees them, each encoded once."""
    inputs = [network.picture(png) for png in images]
    ids = [found.pop("input_ids")[0] for found in inputs]
    pictures = []
    for png, tokens, found, seen in zip(images, ids, inputs, network.see(inputs), strict=True):
        name, number, marked = hashlib.sha256(png).hexdigest(), 0, []
        for token, position in zip(tokens.tolist(), network.positions(tokens, found).tolist(), strict=True):
            patch = (name, number) if token == network.patch else None
            number += patch is not None
            marked.append(Token(token, tuple(position), patch))
        pictures.append(Picture(name, tuple(marked), seen))
    return pictures


def features(album: Mapping[bytes, Picture]) -> dict[str, Tensor]:
    """The features of an album's pictures, by name."""
    return {picture.name: picture.features for picture in album.values()}


def _lay(network: Network, text: str, pictures: Sequence[Picture]) -> Prompt:
    """The tokens of a prompt: of its text, with a picture in each placeholder's place.

    Raises:
        ValueError: when the text has more or fewer placeholders than there are pictures.
    """
    ids = network.text_tokens(text)
    places = [place for place, token in enumerate(ids) if token == network.patch]
    start, first, trunk = 0, 0, []
    for place, picture in zip(places, pictures, strict=True):
        words = _words(ids[first:place], start, network.axes)
        shown = picture.at(start + len(words))
        trunk.append((*words, *shown))
        start, first = max(shown[-1].position) + 1, place + 1
    return Prompt(tuple(trunk), _words(ids[first:], start, network.axes))


def _words(ids: Sequence[int], start: int, axes: int) -> Run:
    return tuple(Token(token, (start + place,) * axes) for place, token in enumerate(ids))


def plant(prompts: Sequence[Prompt]) -> tuple[list[Tree], list[tuple[int, int]]]:
    """Trees of the prompts, one for all that begin alike, and where each prompt ends: (tree, place)."""
    rows = rows_of(prompts)
    trees = [Tree() for _ in set(rows)]
    return trees, [(row, trees[row].add(ROOT, prompt.tokens)[-1]) for row, prompt in zip(rows, prompts, strict=True)]


def rows_of(prompts: Sequence[Prompt]) -> list[int]:
    """The row of each prompt in a batch: those that begin with the same words and picture share one."""
    numbers: dict[Run, int] = {}
    return [numbers.setdefault(prompt.trunk[0], len(numbers)) for prompt in prompts]
