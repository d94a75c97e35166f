"""What the reward model is tried with, and what is learnt where it is fooled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_built import COMPLETE, MAIL, NAME, POST, SUBMIT, click, demonstration, typed

from environments.types import Element
from models.prompts import context_of
from tasks.attack import MOST, Assault, draw, options, rows_of

PATH = demonstration(click(NAME), typed("Ann"), click(SUBMIT))


def test_every_action_that_is_known_to_be_wrong_is_tried() -> None:
    right, *wrong = options(PATH, 0)
    assert right == click(NAME)
    assert set(wrong) >= {COMPLETE, click(SUBMIT), click(MAIL), click(POST), typed("Ann"), typed("submit")}
    assert right not in wrong
    assert len(set(wrong)) == len(wrong)


def test_on_a_full_screen_the_most_tempting_are_tried() -> None:
    """Links beside a button: the other buttons come first."""
    links = tuple(Element("link", f"l{place}", (5, 5 * place, 30, 4)) for place in range(30))
    buttons = tuple(Element("button", f"b{place}", (90, 12 * place, 30, 10)) for place in range(4))
    tried = options(demonstration(click(buttons[0]), instruction="Go on", elements=(*links, *buttons)), 0)
    assert len(tried) == 1 + MOST
    assert tried[1] == COMPLETE
    assert {click(button) for button in buttons} <= set(tried)


def test_what_may_be_done_in_any_order_is_not_tried() -> None:
    both = demonstration(click(MAIL), click(POST), click(SUBMIT))
    assert click(POST) not in options(both, 0)
    assert click(SUBMIT) in options(both, 0)


def test_at_the_end_to_stop_is_right_and_to_go_on_is_wrong() -> None:
    right, *wrong = options(PATH, 3)
    assert right == COMPLETE
    assert set(wrong) == {click(SUBMIT), click(NAME), click(MAIL), click(POST)}


def test_the_model_is_shown_what_had_been_done_and_the_screen() -> None:
    shown = context_of(PATH.episode, 3)
    assert [str(action) for _, action in shown.history] == [
        'click textbox "" 70,40',
        'type "Ann"',
        'click button "Submit" 50,130',
    ]
    assert shown.observation == PATH.episode.last
    assert context_of(PATH.episode, 0).observation == PATH.episode.steps[0].observation


@pytest.mark.parametrize(
    ("scores", "liked"),
    [
        ((0.9, 0.1, 0.2), []),
        ((0.9, 0.1, 0.6), ["b"]),  # liked, though the right one is liked more
        ((0.3, 0.1, 0.3), ["b"]),  # scored as high as the right one
        ((0.3, 0.8, 0.9), ["b", "a"]),
    ],
)
def test_a_wrong_action_is_liked_by_itself_or_beside_the_right_one(scores: tuple[float, ...], liked: list[str]) -> None:
    assert Assault("t", 0, ("right", "a", "b"), scores).liked == liked


def test_the_rows_are_the_right_action_and_the_best_liked_wrong_ones() -> None:
    tried = tuple(map(str, options(PATH, 0)))
    scores = [0.4] + [0.1] * (len(tried) - 1)
    scores[tried.index("complete")], scores[tried.index(str(click(POST)))] = 0.9, 0.95
    rows = list(rows_of(PATH, Assault(PATH.id, 0, tried, tuple(scores)), per_step=1))
    assert [(row.action, row.label, row.generator) for row in rows] == [
        (str(click(NAME)), True, "attack"),
        (str(click(POST)), False, "attack"),
    ]
    assert {row.trajectory for row in rows} == {PATH.id}
    assert list(rows_of(PATH, Assault(PATH.id, 0, tried, (0.9, *[0.1] * (len(tried) - 1))), per_step=1)) == []


def test_so_many_steps_are_drawn_each_once_and_the_same_again() -> None:
    others = [replace(PATH, id=f"other/{number}") for number in range(3)]
    drawn = draw(others, 5, seed="1")
    places = [(one.id, step) for one, steps in drawn for step in steps]
    assert len(places) == len(set(places)) == 5
    assert drawn == draw(others, 5, seed="1")
    assert drawn != draw(others, 5, seed="2")
    assert sum(len(steps) for _, steps in draw(others, 99, seed="1")) == 12
    assert draw(others, 0, seed="1") == []
