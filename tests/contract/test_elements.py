"""What the elements say of pages that hide, switch off or draw their own controls, on pages made for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.browser.chromium import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("site"))
    yield browser
    browser.close()


def _shown(browser: Browser, body: str) -> list[tuple[str, str, list[str]]]:
    root = Path(browser._root.removeprefix("file://"))
    (root / "page.html").write_text(f"<!DOCTYPE html><body style='margin:0'>{body}</body>")
    browser.open("page.html")
    return [(kind, text, states) for kind, text, _, states in browser.evaluate("__ratchet.elements('.none')")]


def test_a_control_that_is_switched_off_says_so(browser: Browser) -> None:
    assert _shown(browser, "<button disabled>Agree</button><button>Cancel</button>") == [
        ("button", "Agree", ["disabled"]),
        ("button", "Cancel", []),
    ]


@pytest.mark.parametrize(
    "hiding", ["opacity:0", "visibility:hidden", "position:absolute;left:-99px", "position:absolute;clip:rect(0,0,0,0)"]
)
def test_the_label_of_a_box_that_is_not_drawn_stands_for_it(browser: Browser, hiding: str) -> None:
    body = f"<input type=checkbox id=box checked style='{hiding}'><label for=box>One-way</label>"
    assert _shown(browser, body) == [("checkbox", "One-way", ["on"])]


def test_a_blank_thing_to_click_is_shown(browser: Browser) -> None:
    card = "<div class='card' style='height:20px;background:red;{}'><span style='font-size:0'>7</span></div>"
    assert _shown(browser, card.format("cursor:pointer")) == [("image", "card", [])]
    assert _shown(browser, card.format("")) == []


def test_a_drawing_without_a_label_is_not_named(browser: Browser) -> None:
    """A drawing's tag is its shape, and telling the shape is what an agent's eyes are for."""
    shapes = "<circle cx=9 cy=9 r=9 /><rect class=tile x=20 width=9 height=9 /><path aria-label=Arrow d='M40 0h9v9z'/>"
    assert _shown(browser, f"<svg>{shapes}</svg><canvas width=9 height=9></canvas>") == [
        ("image", "", []),
        ("image", "tile", []),
        ("image", "Arrow", []),
        ("image", "", []),
    ]
