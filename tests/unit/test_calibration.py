"""Scores set right by rows that nothing was trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.types import COMPLETE, Action, Kind
from models.calibration import AS_IT_IS, Calibration, Scale, fitted, read_calibration
from models.prompts import Context
from models.roles import RewardModel

TYPED = Action(Kind.TYPE, text="x")


def odds(score: float) -> float:
    return math.log(score / (1 - score))


def test_a_scale_by_hand() -> None:
    """Log-odds of 0.8 are log 4: twice them, less log 4, are log 4 again; half of them are log 2, of 2/3."""
    assert Scale(2, -math.log(4)).apply(0.8) == pytest.approx(0.8)
    assert Scale(0.5, 0).apply(0.8) == pytest.approx(2 / 3)
    assert AS_IT_IS.apply(0.8) == pytest.approx(0.8)


def test_what_is_liked_too_much_is_set_right() -> None:
    """Wrong ends at .75 to .9 and right ones at .9 to .99: the score of 0.5 comes to lie between them."""
    wrong, right = [0.0, 0.01, 0.75, 0.8, 0.85, 0.88], [0.9, 0.93, 0.95, 0.97, 0.98, 0.99]
    found = fitted([*wrong, *right], [False] * 6 + [True] * 6, [1.0] * 12)
    assert found.apply(0.8) < 0.5 < found.apply(0.97)
    assert found.slope > 0.5


def test_the_likeliest_offset_is_that_of_the_weighed_share() -> None:
    """Scores that say nothing: three parts right and one wrong, which the prior draws a little to a half."""
    found = fitted([0.5, 0.5], [True, False], [3.0, 1.0])
    assert found.slope == pytest.approx(1.0)
    share = found.apply(0.5)
    # at the optimum the slope of the loss, share - 3/4, is that of the prior, -2 * 0.01 * offset
    assert share - 0.75 == pytest.approx(-0.02 * found.offset, abs=1e-4)


def test_one_label_alone_changes_nothing() -> None:
    assert fitted([0.2, 0.9], [True, True], [1.0, 1.0]) == AS_IT_IS


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=12))
def test_the_order_of_scores_stays(pairs: list[tuple[float, bool]]) -> None:
    scale = fitted([score for score, _ in pairs], [label for _, label in pairs], [1.0] * len(pairs))
    raw = sorted(score for score, _ in pairs)
    set_right = [scale.apply(score) for score in raw]
    assert set_right == sorted(set_right)
    assert all(0 <= score <= 1 for score in set_right)


class Fixed:
    """An engine that scores everything 0.8."""

    def fresh(self) -> Fixed:
        return self

    def sample(self, *_: object) -> list[object]:
        return []

    def score(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        return [[0.8 for _ in row] for row in answers]


def test_outcomes_and_steps_have_scales_of_their_own(tmp_path: Path) -> None:
    kept = Calibration(step=Scale(1, 0), outcome=Scale(1, -odds(0.8)))
    kept.write(tmp_path)
    assert read_calibration(tmp_path) == kept
    model = RewardModel(Fixed(), read_calibration(tmp_path))  # type: ignore[arg-type]
    assert model.fresh().score([], [[TYPED, COMPLETE]]) == [[pytest.approx(0.8), pytest.approx(0.5)]]


def test_a_checkpoint_without_one_is_taken_as_it_is(tmp_path: Path) -> None:
    assert read_calibration(tmp_path) == Calibration()
