"""What the elements say of pages that hide, switch off or draw their own controls, on pages made for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.browser.chromium import Browser, listed
from environments.types import Element


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("site"))
    yield browser
    browser.close()


def _shown(browser: Browser, body: str) -> list[tuple[str, str, list[str]]]:
    root = Path(browser._root.removeprefix("file://"))
    (root / "page.html").write_text(f"<!DOCTYPE html><body style='margin:0'>{body}</body>")
    browser.open("page.html")
    return [(element.kind, element.text, list(element.states)) for element in _found(browser)]


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


def test_what_takes_no_clicks_is_seen_all_the_same(browser: Browser) -> None:
    """A label that floats in its field, a button that is off, and a card that is one link; but not under a cover."""
    assert _shown(
        browser,
        """<style>.card { position: relative } a::after { content: ''; position: absolute; inset: 0 }</style>
        <div style="position:relative"><label style="position:absolute;pointer-events:none">Email</label><input></div>
        <button disabled style="pointer-events:none">Send</button>
        <div class=card style="display:contents">12 EUR</div><div class=card><i>A pen</i> <a href=#>Details</a></div>
        <div style="position:relative;height:40px"><button disabled style="pointer-events:none">no</button><i>gone</i>
          <p style="position:absolute;inset:0;margin:0;background:red"></p></div>""",
    ) == [
        ("text", "Email", []),
        ("textbox", "", []),
        ("button", "Send", ["disabled"]),
        ("text", "12 EUR", []),
        ("text", "A pen", []),
        ("link", "Details", []),
        ("image", "", []),
    ]


def test_what_is_placed_by_the_screen_or_the_page_is_not_cut_by_what_it_stands_in(browser: Browser) -> None:
    box = "<div style='overflow:hidden;height:20px{}'><p style='position:{};top:10px;margin:0'>far</p></div>"

    def bottom(outer: str, inner: str) -> int:
        _shown(browser, box.format(outer, inner))
        (text,) = _found(browser)
        return text.box[1] + text.box[3]

    assert bottom("", "fixed") == bottom("", "absolute") == bottom(";position:relative", "fixed") > 20
    assert bottom(";position:relative", "absolute") == bottom(";transform:scale(1)", "fixed") == 20


def test_texts_and_states_are_what_a_person_sees(browser: Browser) -> None:
    assert _shown(
        browser,
        """<input type=submit><input type=reset value=Clear><input type=image alt=Find width=9 height=9>
        <input type=checkbox aria-label="Select all"><label><input type=checkbox>all <i hidden>not</i></label>
        <button><i style="display:none">Loading...</i>Save<br>now</button>
        <a href=#><svg width=9 height=9 aria-label=x><style>.a { fill: red }</style><rect width=9 height=9 /></svg></a>
        <button aria-label=Close><i style="visibility:hidden">wait</i></button>
        <fieldset disabled><button>Pay</button></fieldset>""",
    ) == [
        ("button", "Submit", []),
        ("button", "Clear", []),
        ("button", "Find", []),
        ("checkbox", "Select all", []),
        ("checkbox", "all", []),
        ("button", "Save now", []),
        ("link", "", []),
        ("button", "Close", []),
        ("button", "Pay", ["disabled"]),
    ]


COMPONENT = """<x-app>Save</x-app><p style="height:3000px">light</p><script>
  document.adoptedStyleSheets = []; // as a page may
  customElements.define('x-app', class extends HTMLElement {
    constructor() {
      super();
      this.attachShadow({ mode: 'open' }).innerHTML = `<style>div { transition: margin 9s }</style>
        <div id=box style="height:90px;overflow:auto"><button><slot></slot></button><slot name=none>mine</slot>
        <select><option hidden>Choose</option><option>a</option><option disabled>b</option><option>c</option></select>
        <p style="height:900px"></p></div>`;
    }
  });
  const inside = (selector) => document.querySelector('x-app').shadowRoot.querySelector(selector);
</script>"""


def test_what_stands_in_a_component_is_listed_clicked_chosen_and_scrolled(browser: Browser) -> None:
    assert _shown(browser, COMPONENT) == [
        ("button", "Save", []),
        ("text", "mine", []),
        ("select", "Choose", []),
        ("text", "light", []),
    ]
    browser.evaluate("inside('button').onclick = () => { inside('div').style.marginLeft = '40px'; }; 0")
    browser.click(*_point(browser, "Save"))
    browser.pass_time(0)
    browser.screenshot()
    assert browser.evaluate("getComputedStyle(inside('div')).marginLeft") == "40px"
    assert _found(browser)[0].states == ("focus",)
    browser.click(*_point(browser, "Save"))
    browser.scroll(1)  # what lies under the mouse, which is on a text in a slot
    assert browser.evaluate("inside('div').scrollTop") > 0
    browser.scroll(-1)
    browser.click(*_point(browser, "Choose"))
    options = [element for element in _found(browser) if element.kind == "option"]
    assert [(option.text, option.box[3]) for option in options] == [("a", 14), ("b", 14), ("c", 14)]
    browser.click(*_point(browser, "c"))
    assert browser.evaluate("inside('select').value") == "c"


def _found(browser: Browser) -> tuple[Element, ...]:
    return listed(browser.evaluate("__ratchet.elements('.none')"))


def _point(browser: Browser, text: str) -> tuple[int, int]:
    return next(element.point for element in _found(browser) if element.text == text)
