"""What sets MiniWoB++ apart: two kinds of screen, pictures that a hover shows, pages whose verdict cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.wander import RandomAgent, goals
from environments.browser.chromium import VIEWPORT_PX
from environments.miniwob import MiniWoB, begins_in_place
from environments.miniwob.flight import SCREEN
from environments.types import Action, Element, Goal, Kind, Observation, Start, Step
from models.prompts import context_at


@pytest.fixture(scope="module")
def world() -> Iterator[MiniWoB]:
    world = MiniWoB()
    yield world
    world.close()


def _goal(page: str) -> Goal:
    return Goal(page.lower(), "environments.miniwob:MiniWoB", page, 1, 9)


def _find(seen: Observation, kind: str, text: str = "") -> list[Element]:
    return [element for element in seen.elements if element.kind == kind and text in element.text]


@pytest.mark.parametrize("site", ["AA", "Alaska", "Alaska-auto"])
def test_an_airlines_site_opens_with_its_own_screen_and_offers_its_airports(world: MiniWoB, site: str) -> None:
    assert world.reset(_goal("click-test"), 0).observation.size == VIEWPORT_PX
    seen = world.reset(_goal(f"flight.{site}"), 0).observation
    assert seen.size == (SCREEN.width, SCREEN.height)
    world.step(Action.click(_find(seen, "textbox")[1]))
    seen = world.step(Action(Kind.TYPE, text="Boston"))
    seen = world.step(Action(Kind.WAIT))
    assert any("BOS" in element.text and "MA" in element.text for element in seen.elements)
    assert world.reset(_goal("click-test"), 0).observation.size == VIEWPORT_PX


def test_the_first_click_on_an_icon_that_changes_under_the_mouse_hits_it(world: MiniWoB) -> None:
    seen = world.reset(_goal("social-media"), 1).observation
    seen = world.step(Action.click(_find(seen, "image", "more")[0]))
    assert "Share via DM" in {element.text for element in seen.elements}


def test_form_sequence_2_takes_the_wrong_radio_button(world: MiniWoB) -> None:
    start = world.reset(_goal("form-sequence-2"), 0)
    nth, number, box = (start.instruction.split()[at] for at in (2, 9, 12))
    wrong = int(nth[0]) % 3
    seen = world.step(Action.click(_find(start.observation, "radio")[wrong]))
    world.step(Action.click(_find(seen, "textbox")[int(box[0]) - 1]))
    seen = world.step(Action(Kind.TYPE, text=number.strip('"')))
    world.step(Action.click(_find(seen, "button", "Submit")[0]))
    assert world.ended
    assert world.verdict()


def test_circle_center_pays_no_click_in_full(world: MiniWoB) -> None:
    seen = world.reset(_goal("circle-center"), 0).observation
    [circle] = _find(seen, "image")
    x, y = circle.point
    for shift_x in (-1, 0, 1):
        for shift_y in (-1, 0, 1):
            world.reset(_goal("circle-center"), 0)
            near = Element("image", circle.text, (x + shift_x, y + shift_y, 0, 0))
            seen = world.step(Action.click(near))
            world.step(Action.click(_find(seen, "button", "Submit")[0]))
            assert world.ended
            assert not world.verdict()


def test_a_page_that_is_open_begins_in_place_unless_it_keeps_something(world: MiniWoB) -> None:
    for page, in_place in (("click-button", True), ("click-pie", False)):
        world.reset(_goal(page), 0)
        world._browser.evaluate("window.marked = true")  # type: ignore[union-attr]
        world.reset(_goal(page), 1)
        assert world._browser.evaluate("window.marked === true") == in_place  # type: ignore[union-attr]


@pytest.mark.parametrize("page", ["click-tab", "enter-text", "login-user", "choose-list", "click-shape"])
def test_an_episode_begun_in_place_has_the_bytes_of_one_on_a_loaded_page(world: MiniWoB, page: str) -> None:
    _assert_same_in_place(world, page, range(3))


@pytest.mark.slow
@pytest.mark.parametrize("page", [goal.page for goal in goals().values() if begins_in_place(goal.page)])
def test_every_page_that_may_begin_in_place_does_so_exactly(world: MiniWoB, page: str) -> None:
    _assert_same_in_place(world, page, range(20, 23))


def _assert_same_in_place(world: MiniWoB, page: str, seeds: range) -> None:
    """Random episodes on a page loaded anew for each, and again on one that is loaded once, in another order."""
    loaded = {}
    for seed in seeds:
        world.reset(_goal("click-pie"), 0)  # elsewhere
        loaded[seed] = _wander(world, page, seed)
    world.reset(_goal("click-pie"), 0)
    for seed in (*reversed(seeds), *seeds):  # all but the first begin in place
        assert _wander(world, page, seed) == loaded[seed], seed


def _wander(world: MiniWoB, page: str, seed: int) -> tuple[Start, list[Observation], bool]:
    """The screens of a random episode and its verdict."""
    goal, agent = _goal(page), RandomAgent()
    start = world.reset(goal, seed)
    steps: list[Step] = []
    screens = [start.observation]
    while not world.ended and len(steps) < goal.max_steps:
        context = context_at(start.instruction, steps, screens[-1])
        [[option]] = agent.propose([context], 1, 1.0, str(seed))
        steps.append(Step(screens[-1], option.action))
        screens.append(world.step(option.action))
    return start, screens, world.verdict()
