"""The monitors of a round against hand-computed values, and the alarms by their limits."""

from __future__ import annotations

from typing import Any

import pytest
from hand_built import COMPLETE, MAIL, NAME, SUBMIT, click, trajectory

from environments.types import End
from tasks.metrics import Judgement
from tasks.monitors import accepted_wrong, exploration, raised, separation, slope, watch
from tasks.params import Limits
from tasks.records import Origin

T, F = True, False
NO_LIMITS: dict[str, float | None] = dict.fromkeys(Limits.model_fields)


def _path(seed: int, *actions: Any, outcome: float = 0.9, **about: Any) -> Any:
    return trajectory(*actions, COMPLETE, seed=seed, outcome=outcome, **about)


def test_exploration_by_hand() -> None:
    """Instance 0: 3 of 4 paths solved, in two ways; 1: none of 2; 2: 1 of 1. Pruned and crashed ones say nothing."""
    explored = [
        *[_path(0, click(NAME), click(SUBMIT), place=place) for place in (0, 1)],
        _path(0, click(MAIL), place=2),
        _path(0, click(MAIL), outcome=0.2, place=3),
        *[_path(1, click(MAIL), outcome=0.4, place=place) for place in (0, 1)],
        _path(2, click(SUBMIT)),
        trajectory(click(NAME), seed=3, end=End.PRUNED, outcome=None),
        trajectory(click(NAME), seed=3, end=End.CRASHED, outcome=None, place=1),
        _path(1, click(NAME), origin=Origin.CONTINUATION, place=2),
    ]
    found = exploration(explored, accept=0.5)
    assert found["pass_1"] == pytest.approx((3 / 4 + 0 + 1) / 3)
    assert found["pass_k"] == pytest.approx(2 / 3)
    assert found["diversity"] == (2 + 1) / 2
    assert exploration([], accept=0.5) == {"pass_1": None, "pass_k": None, "diversity": None}


def test_separation_by_hand() -> None:
    assert separation([T, T, F, F], [0.9, 0.7, 0.6, 0.2]) == pytest.approx(0.4)
    assert separation([T, T], [0.9, 0.7]) is None


def test_accepted_wrong_by_hand() -> None:
    """Three are accepted, one of them wrong."""
    assert accepted_wrong([T, T, F, F, T], [0.9, 0.5, 0.5, 0.4, 0.1]) == pytest.approx(1 / 3)
    assert accepted_wrong([T, F], [0.4, 0.1]) is None


def test_slope_by_hand() -> None:
    assert slope([0.1, 0.2, 0.3]) == pytest.approx(0.1)
    assert slope([0.4, 0.2, 0.3]) == pytest.approx(-0.05)
    assert slope([0.4]) is None


def _outcome(label: bool, champion: float, challenger: float, source: Any = "live") -> Judgement:
    return Judgement(
        id="t#1", query="outcome", source=source, kind="complete", label=label, champion=champion, challenger=challenger
    )


def test_the_judges_are_watched_on_live_outcomes_alone() -> None:
    """The champion accepts one right and one wrong path, the challenger the right one."""
    judged = [_outcome(T, 0.8, 0.9), _outcome(F, 0.6, 0.3), _outcome(F, 0.9, 0.9, source="pairs")]
    monitors = watch([], judged, 0.5, history=[0.1, 0.3])
    assert monitors["champion"] == {
        "separation": pytest.approx(0.2),
        "accepted_wrong": 0.5,
        "wrong_slope": pytest.approx(0.2),
    }
    assert monitors["challenger"] == {
        "separation": pytest.approx(0.6),
        "accepted_wrong": 0,
        "wrong_slope": pytest.approx(-0.05),
    }


def test_alarms_name_the_figure_the_model_and_the_limit() -> None:
    monitors = {
        "explored": {"pass_1": 0.1, "pass_k": 0.2, "diversity": None},
        "champion": {"separation": 0.1, "accepted_wrong": 0.5, "wrong_slope": None},
        "challenger": {"separation": -0.1, "accepted_wrong": 0.6, "wrong_slope": 0.05},
    }
    limits = Limits(pass_k=0.3, diversity=1.5, separation=0.0, accepted_wrong=0.5, wrong_slope=0.1)
    assert raised(monitors, limits) == {
        "agent": ["alarm: pass_k of exploration is 0.200, below 0.3"],
        "reward": [
            "alarm: separation of the challenger is -0.100, below 0.0",
            "alarm: accepted_wrong of the challenger is 0.600, above 0.5",
        ],
    }
    assert raised(monitors, Limits(**NO_LIMITS)) == {"agent": [], "reward": []}
