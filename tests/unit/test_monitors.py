"""The monitors of a round against hand-computed values, and the alarms by their limits."""

from __future__ import annotations

from typing import Any

import pytest
from hand_built import COMPLETE, MAIL, NAME, SUBMIT, click, trajectory

from tasks.acceptance import Bar
from tasks.evidence.metrics import Judgement
from tasks.evidence.monitors import exploration, in_doubt, judging, raised, separation, separation_doubt, slope, watch
from tasks.params import Limits
from tasks.records import Origin

T, F = True, False
NO_LIMITS: dict[str, float | None] = dict.fromkeys(Limits.model_fields)


def _path(seed: int, *actions: Any, outcome: float = 0.9, **about: Any) -> Any:
    return trajectory(*actions, COMPLETE, seed=seed, outcome=outcome, **about)


def test_exploration_by_hand() -> None:
    """Instance 0: 3 of 4 paths right, in two ways; 1: none of 2; 2: 1 of 1. What the world did not judge says nothing.

    Six of the seven are accepted, and three of these are wrong; one that is right is not.
    """
    right = [
        *[_path(0, click(NAME), click(SUBMIT), place=place) for place in (0, 1)],
        _path(0, click(MAIL), outcome=0.3, place=2),
        _path(2, click(SUBMIT)),
    ]
    wrong = [_path(0, click(MAIL), place=3), _path(1, click(MAIL), place=0), _path(1, click(MAIL), place=1)]
    unjudged = _path(3, click(NAME))
    verdicts = {**{one.id: True for one in right}, **{one.id: False for one in wrong}}
    found = exploration([*right, *wrong, unjudged], verdicts, bar=Bar(0.5))
    assert found["pass_1"] == pytest.approx((3 / 4 + 0 + 1) / 3)
    assert found["pass_k"] == pytest.approx(2 / 3)
    assert found["diversity"] == (2 + 1) / 2
    assert found["accepted"] == 6 / 7
    assert found["accepted_wrong"] == 3 / 6
    assert found["accepted_wrong_low"] == pytest.approx(0.1876, abs=1e-4)
    assert set(exploration([], {}, bar=Bar(0.5)).values()) == {None}


def test_a_continuation_counts_among_what_was_accepted_and_not_as_found_by_the_search() -> None:
    searched = _path(0, click(MAIL), outcome=0.2)
    continued = _path(0, click(NAME), place=1, origin=Origin.CONTINUATION, parent=searched.id)
    found = exploration([searched, continued], {searched.id: False, continued.id: False}, bar=Bar(0.5))
    assert (found["pass_1"], found["pass_k"], found["accepted"], found["accepted_wrong"]) == (0, 0, 1 / 2, 1)
    found = exploration([searched, continued], {searched.id: False, continued.id: True}, bar=Bar(0.5))
    assert (found["pass_k"], found["accepted_wrong"]) == (0, 0)


def test_separation_by_hand() -> None:
    assert separation([T, T, F, F], [0.9, 0.7, 0.6, 0.2]) == pytest.approx(0.4)
    assert separation([T, T], [0.9, 0.7]) is None


def test_the_doubt_of_a_separation_by_hand() -> None:
    """Variances of 0.02 and 0.08, two of each: 1.96 sqrt(0.01 + 0.04)."""
    assert separation_doubt([T, T, F, F], [0.9, 0.7, 0.6, 0.2]) == pytest.approx(1.959964 * 0.05**0.5)
    assert separation_doubt([T, F, F], [0.9, 0.6, 0.2]) is None
    labels, scores = [T, T, F, F], [0.9, 0.7, 0.6, 0.2]
    found = judging(labels, scores, [])
    assert found["separation_high"] == pytest.approx(0.4 + 1.959964 * 0.05**0.5)


def test_slope_by_hand() -> None:
    assert slope([0.1, 0.2, 0.3]) == pytest.approx(0.1)
    assert slope([0.4, 0.2, 0.3]) == pytest.approx(-0.05)
    assert slope([0.4]) is None


def test_a_sudden_rise_is_steep_however_long_nothing_was_wrong() -> None:
    """Over four rounds: 0, 0, 0 and 1."""
    found = judging([F, F, F], [0.9, 0.9, 0.9], history=[0.0] * 30)
    assert found["wrong_slope"] == pytest.approx(0.3)


def _outcome(label: bool, champion: float, challenger: float, source: Any = "live") -> Judgement:
    return Judgement(
        id="t#1", query="outcome", source=source, kind="complete", label=label, champion=champion, challenger=challenger
    )


def test_the_judges_are_watched_on_live_outcomes_alone() -> None:
    """The champion accepts one right and one wrong path, the challenger the right one."""
    judged = [_outcome(T, 0.8, 0.9), _outcome(F, 0.6, 0.3), _outcome(F, 0.9, 0.9, source="pairs")]
    monitors = watch([], {}, judged, 0.5, history=[0.1, 0.3])
    assert monitors["champion"] == {
        "separation": pytest.approx(0.2),
        "separation_high": None,
        "accepted_wrong": 0.5,
        "accepted_wrong_low": pytest.approx(0.0945, abs=1e-4),
        "wrong_slope": pytest.approx(0.2),
        "wrong_slope_low": pytest.approx(-0.0027, abs=1e-4),
    }
    assert monitors["challenger"] == {
        "separation": pytest.approx(0.6),
        "separation_high": None,
        "accepted_wrong": 0,
        "accepted_wrong_low": 0,
        "wrong_slope": pytest.approx(-0.05),
        "wrong_slope_low": pytest.approx(-0.05),
        "distance": pytest.approx(0.4 / 3),
    }


def test_alarms_name_the_figure_the_model_and_the_limit() -> None:
    monitors = {
        "explored": {"pass_1": 0.1, "pass_k": 0.1, "pass_k_high": 0.2, "diversity": None},
        "agent": {"kl": 0.25},
        "champion": {"separation_high": 0.1, "accepted_wrong_low": 0.5, "wrong_slope_low": None},
        "challenger": {"separation_high": -0.1, "accepted_wrong_low": 0.6, "wrong_slope_low": 0.05},
    }
    limits = Limits(
        pass_k=0.3, diversity=1.5, separation=0.0, accepted_wrong=0.5, wrong_slope=0.1, distance=0.5, kl=0.2
    )
    assert raised(monitors, limits) == {
        "agent": [
            "alarm: pass_k_high of exploration is 0.200, below 0.3",
            "alarm: kl of the challenger agent is 0.250, above 0.2",
        ],
        "reward": [
            "alarm: separation_high of the challenger is -0.100, below 0.0",
            "alarm: accepted_wrong_low of the challenger is 0.600, above 0.5",
        ],
    }
    assert raised(monitors, Limits(**NO_LIMITS)) == {"agent": [], "reward": []}


def test_what_exploration_accepted_wrongly_puts_the_reward_model_in_doubt_and_stops_both() -> None:
    explored = {"pass_k_high": 0.9, "diversity": 2.0, "accepted_wrong_low": 0.8}
    monitors = {"explored": explored, "agent": {}, "champion": {"accepted_wrong_low": 0.3}, "challenger": {}}
    limits = Limits(**NO_LIMITS | {"pass_k": 0.1, "diversity": 1.5, "accepted_wrong": 0.5})
    alarm = "alarm: accepted_wrong_low of exploration is 0.800, above 0.5"
    assert in_doubt(monitors, limits) == {"agent": [], "reward": [alarm]}
    assert raised(monitors, limits) == {"agent": [alarm], "reward": []}
