"""Colours, shapes and icons, as SVG."""

from __future__ import annotations

import math

COLOURS = {
    "red": "#e00000", "green": "#008a00", "blue": "#0000e0", "yellow": "#ffee00", "orange": "#ff9900",
    "purple": "#800090", "pink": "#ff8fc0", "cyan": "#00e8f0", "magenta": "#f000f0", "brown": "#8b4513",
    "black": "#000000", "white": "#ffffff", "gray": "#888888", "lime": "#40ff20", "navy": "#000070",
    "aqua": "#20f0ff", "olive": "#808000", "maroon": "#800000", "teal": "#008080",
}  # fmt: skip
ICONS = {
    "close": "M4 4L16 16M16 4L4 16",
    "add": "M10 3V17M3 10H17",
    "remove": "M3 10H17",
    "confirm": "M3 10L8 16L17 4",
    "menu": "M3 5H17M3 10H17M3 15H17",
    "search": "M8 3A5 5 0 1 0 8 13A5 5 0 1 0 8 3M12 12L17 17",
    "delete": "M4 6H16M6 6L7 17H13L14 6M8 6V3H12V6",
    "favorite": "M10 2L12 8H18L13 12L15 18L10 14L5 18L7 12L2 8H8Z",
    "next": "M7 3L14 10L7 17",
    "back": "M13 3L6 10L13 17",
    "upload": "M10 17V4M5 9L10 4L15 9",
    "download": "M10 3V16M5 11L10 16L15 11",
    "home": "M3 10L10 3L17 10M5 9V17H15V9",
    "mail": "M2 5H18V15H2ZM2 5L10 11L18 5",
    "play": "M5 3L16 10L5 17Z",
    "pause": "M6 3V17M14 3V17",
    "edit": "M3 17L5 12L14 3L17 6L8 15Z",
    "share": "M5 10L15 4M5 10L15 16",
    "reply": "M8 4L3 9L8 14M3 9H13Q17 9 17 16",
    "lock": "M5 9H15V17H5ZM7 9V6Q7 3 10 3Q13 3 13 6V9",
}


def _corners(count: int, inner: float = 1.0) -> str:
    """The points of a regular polygon in a box of 100, every second one drawn in by ``inner``."""
    places = []
    for corner in range(count):
        reach = 48 * (inner if corner % 2 else 1.0)
        angle = 2 * math.pi * corner / count - math.pi / 2
        places.append(f"{50 + reach * math.cos(angle):.1f},{50 + reach * math.sin(angle):.1f}")
    return f'<polygon points="{" ".join(places)}"/>'


SHAPES = {
    "circle": '<circle cx="50" cy="50" r="48"/>',
    "square": '<rect x="4" y="4" width="92" height="92"/>',
    "rectangle": '<rect x="1" y="22" width="98" height="56"/>',
    "triangle": '<polygon points="50,4 98,94 2,94"/>',
    "star": _corners(10, inner=0.42),
    "diamond": _corners(4),
    "hexagon": _corners(6),
    "oval": '<ellipse cx="50" cy="50" rx="49" ry="30"/>',
    "cross": '<path d="M36 2H64V36H98V64H64V98H36V64H2V36H36Z"/>',
    "arrow": '<path d="M2 36H54V10L98 50L54 90V64H2Z"/>',
    "ring": '<path fill-rule="evenodd" d="M50 2a48 48 0 1 0 .1 0zM50 28a22 22 0 1 1 -.1 0z"/>',
    "heart": '<path d="M50 94L8 50A24 24 0 0 1 50 22A24 24 0 0 1 92 50Z"/>',
}


def shape(name: str, colour: str, size_px: int, attributes: str = "") -> str:
    """A filled shape in a square of ``size_px``."""
    return (
        f'<svg {attributes} width="{size_px}" height="{size_px}" viewBox="0 0 100 100" '
        f'fill="{COLOURS[colour]}">{SHAPES[name]}</svg>'
    )


def icon(name: str, size_px: int, attributes: str = "", called: str = "") -> str:
    """An icon drawn in lines of the text's colour, in a square of ``size_px``; at times ``called`` something."""
    label = f'aria-label="{called}" pointer-events="bounding-box"' if called else ""
    return (
        f'<svg {attributes} width="{size_px}" height="{size_px}" viewBox="0 0 20 20" fill="none" '
        f'stroke="currentColor" stroke-width="2"><path {label} d="{ICONS[name]}"/></svg>'
    )
