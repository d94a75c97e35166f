"""Rows under an instruction in which another name stands."""

from __future__ import annotations

import pytest
from hand_built import (
    COMPLETE,
    FORM,
    MAIL,
    NAME,
    POST,
    SUBMIT,
    click,
    demonstration,
    trajectory,
    tried,
    typed,
)

from environments.types import Action, Element
from tasks.acceptance import Bar
from tasks.generators import Generator
from tasks.records import Trajectory
from tasks.reward_data import reward_rows
from tasks.reward_data.edit import edited


def rows(path: Trajectory, seed: int = 0) -> list[tuple[int, Action, bool, str]]:
    return [(item.step, item.action, item.label, item.other_goal) for item in edited(path, seed, Bar(0.5, 0.5))]


def test_another_box_is_asked_for_instead() -> None:
    """Of the two boxes; the button has no other of its kind, so it is not edited."""
    path = demonstration(click(MAIL), click(SUBMIT), instruction="Tick Mail and click Submit.")
    asked = "Tick Post and click Submit."
    assert rows(path) == [
        (0, click(MAIL), False, asked),
        (0, click(POST), True, asked),
        (2, COMPLETE, False, asked),
    ]


def test_another_text_is_asked_for_instead() -> None:
    path = demonstration(click(NAME), typed("Ann"), click(SUBMIT))
    asked = 'Enter "nnA" and submit'
    assert rows(path) == [(1, typed("Ann"), False, asked), (1, typed("nnA"), True, asked), (3, COMPLETE, False, asked)]


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("Tick the first box", "it is not named"),
        ("Tick Mailbox", "it is part of a longer word"),
        ("Tick Mail, for Mail is dear", "it is named twice"),
        ("Tick Mail, not Post", "the other one is named too"),
    ],
)
def test_where_nothing_can_be_swapped_there_is_no_row(instruction: str, why: str) -> None:
    assert rows(demonstration(click(MAIL), click(SUBMIT), instruction=instruction)) == [], why


def test_a_name_that_two_have_cannot_be_asked_for() -> None:
    twin = Element("checkbox", "Post", (90, 80, 12, 12))
    path = demonstration(click(MAIL), instruction="Tick Mail", elements=(*FORM, twin))
    assert rows(path) == []


def test_a_name_pressed_twice_is_edited_once() -> None:
    path = demonstration(click(MAIL), click(MAIL), instruction="Tick Mail")
    assert [step for step, *_ in rows(path)] == [0, 0, 2]


@pytest.mark.parametrize(("score", "taught"), [(0.1, []), (0.6, [0, 0, 2])])
def test_a_slip_is_edited_no_more_than_it_is_imitated(score: float, taught: list[int]) -> None:
    options = {0: (tried(click(MAIL), score), tried(click(NAME), 0.9))}
    path = trajectory(click(MAIL), click(NAME), instruction="Tick Mail", candidates=options, scores={0: score})
    assert [step for step, *_ in rows(path)] == taught


def test_they_are_rows_like_any_other_and_can_be_switched_off() -> None:
    path = demonstration(click(MAIL), click(SUBMIT), instruction="Tick Mail and click Submit.")
    made = reward_rows([path], bar=Bar(0.5), max_negatives=3, seed=0)
    assert [(row.step, row.action, row.label) for row in made if row.generator == Generator.EDITED] == [
        (0, str(click(MAIL)), False),
        (0, str(click(POST)), True),
        (2, "complete", False),
    ]
    without = reward_rows([path], bar=Bar(0.5), max_negatives=3, seed=0, without=[Generator.EDITED])
    assert {row.instruction for row in without} == {path.episode.instruction}
