"""What was made for a finger, done with a mouse: long presses, swipes and sideways scrolls in a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from environments.browser.chromium import VIEWPORT_PX, WAIT_MS, Browser
from environments.miniwob import MiniWoB
from environments.types import Action, Goal, Kind, swipe_end

Open = Callable[[str], Browser]


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens a page with the given body."""
    root = tmp_path_factory.mktemp("site")
    with closing(Browser(root)) as browser:

        def open_page(body: str) -> Browser:
            (root / "page.html").write_text(f"<!DOCTYPE html><body style='margin:0'>{body}</body>")
            browser.open("page.html")
            return browser

        yield open_page


WATCHED = """<div id="box" style="width:160px;height:100px;background:tan"></div><script>
  window.log = [];
  for (const name of ['mousedown', 'mousemove', 'mouseup', 'click'])
    box.addEventListener(name, (e) => log.push([name, e.clientX, e.clientY, e.buttons, performance.now()]));
</script>"""


def test_a_long_press_lets_the_pages_time_pass_and_is_a_click_in_the_end(show: Open) -> None:
    browser = show(WATCHED)
    before = browser.evaluate("performance.now()")
    browser.drag((50, 40), (50, 40), WAIT_MS)
    log = browser.evaluate("log")
    assert [event[0] for event in log if event[0] != "mousemove"] == ["mousedown", "mouseup", "click"]
    times = {name: time - before for name, _, _, _, time in log}
    assert (times["mousedown"], times["mouseup"]) == (0, WAIT_MS)


def test_a_drag_moves_with_the_button_down(show: Open) -> None:
    browser = show(WATCHED)
    browser.drag((50, 40), (114, 40), 0)
    log = [event[:4] for event in browser.evaluate("log")]
    assert ["mousedown", 50, 40, 1] in log
    assert log.index(["mousemove", 114, 40, 1]) < log.index(["mouseup", 114, 40, 0])


def test_a_slider_follows_and_what_can_be_dragged_away_does_not_hang_the_page(show: Open) -> None:
    browser = show("""<input id="slider" type="range" style="margin:0;width:160px;display:block">
      <div draggable="true" style="height:40px;background:tan">take me</div><p style="margin:0">some text</p>""")
    browser.drag((80, 8), (144, 8), 0)
    browser.pass_time(400)
    assert int(browser.evaluate("slider.value")) > 80
    for start in ((20, 40), (20, 65)):  # what can be dragged, and text
        browser.drag(start, swipe_end(start, "right", VIEWPORT_PX), 0)
        browser.pass_time(400)
        assert browser.screenshot()
        browser.drag(start, start, WAIT_MS)
        browser.pass_time(400)
        assert browser.screenshot()
    browser.click(20, 65)
    assert browser.evaluate("1 + 1") == 2


def test_a_sideways_scroll_moves_what_is_wide(show: Open) -> None:
    browser = show("""<div id="tall" style="height:60px;overflow-y:scroll"><div style="height:900px">tall</div></div>
      <div id="wide" style="height:60px;overflow-x:scroll"><div style="width:900px">wide</div></div>""")
    browser.scroll(1, across=True)
    assert browser.evaluate("[tall.scrollTop, wide.scrollLeft]") == [0, 128]
    browser.scroll(1)
    browser.scroll(-1, across=True)
    assert browser.evaluate("[tall.scrollTop > 0, wide.scrollLeft]") == [True, 0]


def test_a_page_takes_every_kind_of_touch() -> None:
    with closing(MiniWoB()) as world:
        start = world.reset(Goal("a", "", "click-button", 1, 9), 7)
        wanted = start.instruction.split('"')[1]
        button = next(element for element in start.observation.elements if element.text == wanted)
        for way in ("left", "right"):
            assert world.step(Action(Kind.SCROLL, text=way)).elements == start.observation.elements
        corner = Action(Kind.SWIPE, (2, 205), ("text", ""), "up")  # on nothing
        assert world.step(corner).elements == start.observation.elements
        world.step(Action(Kind.LONG_PRESS, button.point, (button.kind, button.text)))
        assert world.ended
        assert world.verdict()
