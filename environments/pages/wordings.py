"""Drawn things in words: what can be seen of them, and what singles one out among others."""

from __future__ import annotations

import random
from collections.abc import Sequence

from environments.pages.blocks import Thing

DRAWN = ("box", "figure", "icon")


def describe(thing: Thing) -> str:
    """All that can be seen of a thing but its text."""
    words = (
        "on" if thing.on else "",
        thing.size,
        thing.colour,
        thing.shape,
        "" if thing.sort == "figure" else thing.sort,
    )
    return " ".join(word for word in words if word)


def single(things: Sequence[Thing], chooser: random.Random) -> list[tuple[str, Thing]]:
    """What fits one of the things only, and that one: its size, colour and shape, or a part of them."""
    found = []
    for thing in things:
        fitting = [words for words in _wordings(thing) if sum(words in _wordings(other) for other in things) == 1]
        if fitting:
            found.append((chooser.choice(fitting), thing))
    return found


def _wordings(thing: Thing) -> list[str]:
    match thing.sort:
        case "figure":
            return [told for kind in kinds(thing) for told in facts(thing, kind)]
        case "box":
            return _joined((thing.size, thing.colour, "box"), (thing.colour, "box"), (thing.colour, "coloured box"),
                           ("box in", thing.colour))  # fmt: skip
    return [describe(thing)]


def kinds(figure: Thing) -> list[str]:
    """What a figure may be called: an item, its shape, or the sign that it is."""
    if figure.text:
        return ["item", "figure", figure.text, figure.shape, *(("number",) if figure.shape == "digit" else ())]
    return ["item", "figure", "shape", figure.shape, *(("rectangle",) if figure.shape == "square" else ())]


def facts(figure: Thing, kind: str) -> list[str]:
    """A kind of figure by itself, with the figure's colour, its size, and both."""
    return _joined((kind,), (figure.colour, kind), (figure.size, kind), (figure.size, figure.colour, kind))


def _joined(*parts: tuple[str, ...]) -> list[str]:
    """Each wording of several words, of which some may be missing."""
    return list(dict.fromkeys(" ".join(filter(None, words)) for words in parts))
