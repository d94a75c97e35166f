"""B-STaR's balance: what a round tries, and what the next one is to explore with."""

from __future__ import annotations

import pytest
from hand_built import MAIL, POST, SUBMIT, click, trajectory
from hypothesis import given
from hypothesis import strategies as st

from environments.types import End
from tasks.acceptance import Bar
from tasks.curriculum.balance import Setting, balance, rebalanced

NOW = Setting(2.0, 0.85)
SCORES = st.lists(st.floats(0, 1), max_size=8)


@pytest.mark.parametrize(
    ("accept", "wanted", "expected"),
    [
        (0.5, 1, 1.0 * 1.5 / 2),  # two accepted, 1.5 of them right by expectation, more than wanted
        (0.8, 1, 0.9 * 0.9 / 1),
        (0.5, 2, (1.5 / 2) * 1.5 / 2),
        (0.8, 2, (0.9 / 2) * 0.9 / 1),
        (0.95, 1, 0.0),  # nothing is accepted
    ],
)
def test_the_score_weighs_how_many_are_right_by_how_many_of_the_accepted_are(
    accept: float, wanted: int, expected: float
) -> None:
    assert balance([0.9, 0.6, 0.2], accept, wanted) == pytest.approx(expected)


@given(SCORES, st.floats(0, 1), st.integers(1, 4))
def test_the_score_is_a_share(outcomes: list[float], accept: float, wanted: int) -> None:
    assert 0.0 <= balance(outcomes, accept, wanted) <= 1.0


def test_temperatures_are_tried_around_the_present_one_and_within_bounds() -> None:
    assert NOW.tried == [1.6, 2.0, 2.5]
    assert Setting(5.0, 0.5).tried == [4.0, 5.0]
    assert Setting(0.1, 0.5).tried == [0.1, 0.125]


def test_the_temperature_at_which_most_is_found_is_next() -> None:
    """Of the hotter instance two different paths are surely right, of the others one."""
    explored = [
        trajectory(click(SUBMIT), seed=1, outcome=0.9),
        trajectory(click(SUBMIT), seed=2, outcome=0.9),
        trajectory(click(SUBMIT), seed=3, outcome=0.9),
        trajectory(click(MAIL), click(SUBMIT), seed=3, place=1, outcome=0.9),
    ]
    temperatures = {"form/1": 1.6, "form/2": 2.0, "form/3": 2.5}
    setting, score = rebalanced(explored, temperatures, NOW, wanted=2, bar=Bar(0.0))
    assert setting == Setting(2.5, 0.85)
    assert score == pytest.approx((1.8 / 2) * 1.8 / 2)


def test_the_threshold_goes_where_enough_is_accepted_and_little_of_it_is_wrong() -> None:
    explored = [
        trajectory(click(SUBMIT), seed=1, outcome=0.9),
        trajectory(click(MAIL), seed=1, place=1, outcome=0.52),
        trajectory(click(POST), seed=1, place=2, outcome=0.1),
    ]
    found, score = rebalanced(explored, {"form/1": 2.0}, Setting(2.0, 0.95), wanted=1, bar=Bar(0.0))
    assert found == Setting(2.0, 0.9)  # of the thresholds that accept one path alone, the nearest to the present one
    assert score == pytest.approx(0.9 * 0.9)  # both: 1.42 / 2


def test_a_path_found_twice_counts_once_and_what_came_to_no_end_not_at_all() -> None:
    twice = [trajectory(click(SUBMIT), seed=1, place=place, outcome=outcome) for place, outcome in ((0, 0.9), (1, 0.8))]
    pruned = trajectory(click(MAIL), seed=1, place=2, outcome=None, end=End.PRUNED)
    broken = trajectory(click(POST), seed=1, place=3, outcome=0.95, end=End.CRASHED)
    _, score = rebalanced([*twice, pruned, broken], {"form/1": 2.0}, NOW, wanted=2, bar=Bar(0.0))
    assert score == pytest.approx((0.9 / 2) * 0.9)


def test_where_nothing_was_found_it_stays_as_it_is() -> None:
    setting, score = rebalanced([], {"form/1": 1.6, "form/2": 2.0, "form/3": 2.5}, NOW, wanted=1, bar=Bar(0.0))
    assert (setting, score) == (NOW, 0.0)


def test_an_instance_whose_world_broke_says_nothing_about_its_temperature() -> None:
    broken = trajectory(click(MAIL), seed=1, outcome=0.1, end=End.CRASHED)
    solved = trajectory(click(SUBMIT), seed=2, outcome=0.9)
    temperatures = {"form/1": 2.5, "form/2": 2.5}
    _, score = rebalanced([broken, solved], temperatures, NOW, wanted=1, bar=Bar(0.0))
    assert score == pytest.approx(0.9 * 0.9)
    assert rebalanced([broken], {"form/1": 2.5}, NOW, wanted=1, bar=Bar(0.0)) == (NOW, 0.0)
