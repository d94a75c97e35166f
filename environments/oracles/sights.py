"""Pages of coloured things and shapes, which no element names: they are seen in the screenshot."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor

from environments.oracles.turn import Turn, solves
from environments.types import Action, Element

_COLORS = ("aqua", "black", "blue", "green", "magenta", "red", "yellow")
_SHARES = {"rectangle": 1.0, "circle": np.pi / 4, "triangle": 0.5}  # of its box, that a shape fills
_LARGE_PX = 15  # between the heights of a small thing, 10 to 12, and of a large one, 20 to 23
_SAME = 40.0  # between two colours in RGB; edges, which fade into the white, differ by more
_ANSWERS = {"letter": "Letter", "digit": "Number", "rectangle": "Rectangle", "circle": "Circle", "triangle": "Triangle"}

Pixels = NDArray[np.float64]


@solves("click-color")
def _click_color(turn: Turn) -> Action | None:
    wanted = np.array(ImageColor.getrgb(turn.said(r"on the (\w+) colored")), float)
    screen = _screen(turn)
    boxes = sorted(turn.all("image"), key=lambda box: _distance(_centre(screen, box), wanted))
    return None if turn.taken else Action.click(boxes[0])


@solves("click-shape")
def _click_shape(turn: Turn) -> Action | None:
    meant = _described(turn, turn.said(r"Click on an? (.+)"))
    return None if turn.taken else Action.click(meant[0])


@solves("count-shape")
def _count_shape(turn: Turn) -> Action | None:
    return turn.click("button", str(len(_described(turn, turn.said(r"How many (.+)s are there")))))


@solves("identify-shape")
def _identify_shape(turn: Turn) -> Action | None:
    said = _words(_screen(turn), turn.elements[0])
    return turn.click("button", next(answer for word, answer in _ANSWERS.items() if word in said))


def _described(turn: Turn, description: str) -> list[Element]:
    """The shapes, letters and digits that a description such as ``large red circle`` is true of."""
    screen, wanted = _screen(turn), set(description.split())
    return [thing for thing in turn.all("image", "link") if wanted <= _words(screen, thing)]


def _words(screen: Pixels, thing: Element) -> set[str]:
    """Every word that a page may use for a thing."""
    size = "large" if thing.box[3] > _LARGE_PX else "small"
    if thing.kind == "image":
        sort = {"shape", _shape(screen, thing)}
    else:
        sort = {"digit" if thing.text.isdigit() else "letter", thing.text}
    return {"item", size, _color(screen, thing)} | sort


def _shape(screen: Pixels, thing: Element) -> str:
    """By how much of its box is as its centre is."""
    share = np.mean(_distance(_part(screen, thing), _centre(screen, thing)) < _SAME)
    return min(_SHARES, key=lambda shape: abs(_SHARES[shape] - share))


def _color(screen: Pixels, thing: Element) -> str:
    """By the pixel that is least white. A thin line mixes with the white, which changes how far it is from white, and
    not the way there. The outer rows are left out: a neighbour may reach into them.
    """
    margin = thing.box[3] // 8
    inks = 255.0 - _part(screen, thing)[margin : thing.box[3] - margin].reshape(-1, 3)
    ink = _way(inks[np.argmax(np.linalg.norm(inks, axis=1))])
    return max(_COLORS, key=lambda name: float(ink @ _way(255.0 - np.array(ImageColor.getrgb(name), float))))


def _way(color: Pixels) -> Pixels:
    return np.asarray(color / np.linalg.norm(color))


def _distance(colors: Pixels, color: Pixels) -> Any:
    """Of each of ``colors`` (..., 3) from one colour."""
    return np.linalg.norm(colors - color, axis=-1)


def _centre(screen: Pixels, thing: Element) -> Pixels:
    x, y = thing.point
    return np.asarray(screen[y, x])


def _part(screen: Pixels, thing: Element) -> Pixels:
    left, top, width, height = thing.box
    return screen[top : top + height, left : left + width]


def _screen(turn: Turn) -> Pixels:
    """The screenshot in RGB, 0 to 255, as (height, width, 3)."""
    return np.asarray(Image.open(io.BytesIO(turn.observation.screenshot)).convert("RGB"), float)
