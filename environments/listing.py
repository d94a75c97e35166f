"""How much of a screen is listed: a prompt must hold it, whatever an app or a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from environments.types import Element

LONGEST_TEXT = 80  # characters of an element's text
MOST_ELEMENTS = 200  # on a screen


def cut(found: Sequence[Element]) -> tuple[Element, ...]:
    """At most :data:`MOST_ELEMENTS`, in their order, with at most :data:`LONGEST_TEXT` characters of each text.

    Texts, which nobody clicks, give way to the others.
    """
    kept = sorted(range(len(found)), key=lambda place: (found[place].kind == "text", place))[:MOST_ELEMENTS]
    return tuple(replace(found[place], text=found[place].text[:LONGEST_TEXT]) for place in sorted(kept))
