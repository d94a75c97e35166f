"""BrowserGym's tree and words beside ours, on a page written by hand as its accessibility tree would come."""

from __future__ import annotations

from typing import Any

import pytest

from environments.browsergym import elements, spoken
from environments.types import Action, Element, Kind

SIZE = (500, 320)


def _node(number: int, role: str, name: str = "", bid: str = "", inside: tuple[int, ...] = (), **more: Any) -> Any:
    node = {"nodeId": str(number), "role": {"value": role}, "name": {"value": name}, "childIds": [*map(str, inside)]}
    return node | ({"browsergym_id": bid} if bid else {}) | more


def _known(*box: float, visibility: float = 1.0, clickable: bool = False) -> dict[str, Any]:
    return {"bbox": list(box), "visibility": visibility, "clickable": clickable}


def _is(**properties: object) -> list[dict[str, Any]]:
    return [{"name": name, "value": {"value": value}} for name, value in properties.items()]


NODES = [
    _node(1, "RootWebArea", "Shop", inside=(2, 9)),
    _node(2, "generic", bid="1", inside=(7, 3, 5, 8, 10, 11), ignored=True),
    _node(3, "paragraph", bid="2", inside=(4,)),
    _node(4, "StaticText", " Two  words ", inside=(14,)),
    _node(5, "button", "Submit", "3", inside=(6,)),
    _node(6, "StaticText", "Submit"),
    _node(7, "checkbox", "gift", "4", properties=_is(focusable=True, checked="true")),
    _node(8, "textbox", "Name", "5", value={"value": "Ann"}),
    _node(9, "button", "below the screen", "6"),
    _node(10, "generic", bid="7"),
    _node(11, "generic", bid="8", inside=(12,)),
    _node(12, "StaticText", "more"),
    _node(14, "InlineTextBox", "Two words"),
]
PROPERTIES = {
    "1": _known(0, 0, 500, 900, visibility=0.35),
    "2": _known(10, 20, 100.4, 12),
    "3": _known(10.5, 40, 60, 20, clickable=True),
    "4": _known(-4, 0, 12, 12),
    "5": _known(450, 60, 100, 20, visibility=0.5),
    "6": _known(10, 700, 60, 20, visibility=0.0),
    "7": _known(200, 80, 16, 16, clickable=True),
    "8": _known(200, 100, 40, 16, clickable=True),
}


def test_what_is_visible_is_listed_in_page_order() -> None:
    assert elements(NODES, PROPERTIES, "5", SIZE) == (
        Element("checkbox", "gift", (0, 0, 8, 12), ("on",)),
        Element("text", "Two words", (10, 20, 100, 12)),
        Element("button", "Submit", (10, 40, 60, 20)),
        Element("textbox", "Ann", (450, 60, 50, 20), ("focus",)),
        Element("image", "", (200, 80, 16, 16)),
        Element("link", "more", (200, 100, 40, 16)),
    )


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action.click(Element("button", "Go", (10, 20, 30, 10))), "mouse_click(25, 25)"),
        (Action(Kind.TYPE, text='it\'s "so" \\n'), r"""keyboard_type("it's \"so\" \\n")"""),
        (Action(Kind.PRESS, text="Enter"), 'keyboard_press("Enter")'),
        (Action(Kind.SCROLL, text="down"), "mouse_move(30, 40) scroll(0, 256)"),
        (Action(Kind.SCROLL, text="up"), "mouse_move(30, 40) scroll(0, -256)"),
        (Action(Kind.SCROLL, text="left"), "mouse_move(30, 40) scroll(-400, 0)"),
        (Action(Kind.SWIPE, (100, 50), ("image", ""), "left"), "mouse_drag_and_drop(100, 50, 0, 50)"),
        (
            Action(Kind.LONG_PRESS, (9, 8), ("link", "x")),
            "mouse_move(9, 8) mouse_down(9, 8) noop(1000) mouse_up(9, 8)",
        ),
        (Action(Kind.WAIT), "noop(1000)"),
    ],
)
def test_an_action_is_said_in_the_words_of_browsergym(action: Action, words: str) -> None:
    assert spoken(action, (30, 40), SIZE) == words
