"""The elements of a phone's screen, from the XML that uiautomator dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from environments.types import Element, WorldError

# The last part of a node's class, without the prefixes and suffixes of support libraries, and what the web worlds
# call such a thing. The first that matches counts.
_KINDS = (
    (r"AutoCompleteTextView|EditText", "textbox"),
    (r"CheckBox", "checkbox"),
    (r"RadioButton", "radio"),
    (r"Switch|ToggleButton", "switch"),
    (r"CheckedTextView", "option"),
    (r"Spinner", "select"),
    (r"SeekBar|Slider|RatingBar", "slider"),
    (r"ProgressBar", "progress"),
    (r"Button|Chip$", "button"),
    (r"Tab(View|Widget)?$", "tab"),
    (r"HorizontalScrollView|ViewPager", "pager"),
    (r"ListView|GridView|RecyclerView|ScrollView", "list"),
    (r"Image", "image"),
    (r"TextView", "text"),
)
_STATES = {"focused": "focus", "checked": "on", "selected": "selected", "scrollable": "scrollable"}
_ACTS = ("clickable", "long-clickable", "checkable", "scrollable")
_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")

_Rectangle = tuple[int, int, int, int]  # left, top, right, bottom in pixels


def elements(xml: str, size: tuple[int, int]) -> tuple[Element, ...]:
    """What is visible and says something or can be acted on, in tree order; ``size`` is the screen's, in pixels.

    A row that can be touched but shows only its children's words is left to them: a touch on them touches it.

    Raises:
        WorldError: when the XML is not uiautomator's.
    """
    try:
        root = ElementTree.fromstring(xml.encode())
    except ElementTree.ParseError as error:
        raise WorldError(f"the screen's tree is no XML: {error}; it begins {xml[:80]!r}") from error
    return tuple(found for node in root for found in _walk(node, (0, 0, *size)))


def _walk(node: ElementTree.Element, clip: _Rectangle) -> Iterator[Element]:
    visible = _cut(node, clip)
    if visible is None:
        return
    below = [found for child in node for found in _walk(child, visible)]
    if _counts(node, bool(below)):
        left, top, right, bottom = visible
        yield Element(_kind(node), _text(node), (left, top, right - left, bottom - top), tuple(_states(node)))
    yield from below


def _cut(node: ElementTree.Element, clip: _Rectangle) -> _Rectangle | None:
    """What of a node's box lies within its parent's; None when nothing does."""
    bounds = _BOUNDS.fullmatch(node.get("bounds", ""))
    if bounds is None:
        raise WorldError(f"the screen's tree has a {node.tag} without bounds: {node.attrib}")
    left, top, right, bottom = (int(edge) for edge in bounds.groups())
    cut = max(left, clip[0]), max(top, clip[1]), min(right, clip[2]), min(bottom, clip[3])
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else None


def _counts(node: ElementTree.Element, has_elements: bool) -> bool:
    if _words(node) or _is(node, "scrollable") or _kind(node) in ("textbox", "password", "slider"):
        return True
    return not has_elements and any(_is(node, name) for name in _ACTS)


def _kind(node: ElementTree.Element) -> str:
    if _is(node, "password"):
        return "password"
    name = node.get("class", "").rpartition(".")[2]
    for pattern, kind in _KINDS:
        if re.search(pattern, name):
            return kind
    if _is(node, "checkable"):
        return "checkbox"
    return "button" if _is(node, "clickable") else "text"


def _text(node: ElementTree.Element) -> str:
    """Its words; of what has none but can be acted on, its name within the app."""
    hollow = _kind(node) in ("textbox", "password")  # an empty field is empty, whatever its name
    return _words(node) or ("" if hollow else node.get("resource-id", "").rpartition("/")[2])


def _words(node: ElementTree.Element) -> str:
    return " ".join((node.get("text") or node.get("content-desc") or "").split())


def _states(node: ElementTree.Element) -> Iterator[str]:
    yield from (state for name, state in _STATES.items() if _is(node, name))
    if node.get("enabled") == "false":
        yield "disabled"


def _is(node: ElementTree.Element, name: str) -> bool:
    return node.get(name) == "true"
