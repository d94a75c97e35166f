"""What ``benchmarks.filters`` counts of each arm, on paths whose verdicts are known."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hand_built import MAIL, NAME, SUBMIT, click, trajectory, tried, typed
from small_round import params

from benchmarks.filters import arms, row_of
from tasks.curriculum.plan import Plan

path = partial(trajectory, instruction="Enter Ann and submit")
SHORT = path(click(NAME), typed("Ann"), click(SUBMIT), seed=1, outcome=0.9)
LONG = path(click(MAIL), click(NAME), typed("Ann"), click(SUBMIT), seed=1, place=1, outcome=0.95)
WRONG = path(click(SUBMIT), seed=2, outcome=0.3)
SLIP = path(click(MAIL), click(SUBMIT), seed=3, outcome=0.9, scores={0: 0.01, 1: 0.9})
HASTY = path(click(SUBMIT), seed=4, outcome=0.9, scores={0: 0.8}, candidates={0: (tried(click(NAME), 0.9),)}, shade=9)
EMPTY = trajectory(click(SUBMIT), instruction='Enter "Ann" and submit', seed=5, outcome=0.9, shade=20)
TRIED = [SHORT, LONG, WRONG, SLIP, HASTY, EMPTY]
VERDICTS = {one.id: one in (SHORT, LONG, SLIP) for one in TRIED}


@pytest.mark.parametrize(
    ("off", "paths", "wrong", "needless", "rows"),
    [
        ("none", 1, 0, 1, 5),  # LONG's four actions and `complete`; SHORT did without one of them
        ("accept", 2, 1, 1, 7),
        ("min_step", 2, 0, 1, 7),  # both begin alike, and a row is kept once
        ("quoted", 2, 1, 1, 7),
        ("hasty", 2, 1, 1, 7),
        ("best", 2, 0, 1, 9),
        ("max_per_goal", 1, 0, 1, 5),
    ],
)
def test_each_filter_lets_in_what_it_holds_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: str, paths: int, wrong: int, needless: int, rows: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Plan(1, []).write()
    arm = arms(params(filter={"accept": 0.85, "min_step": 0.1, "max_per_goal": 4}))[off]
    assert row_of(arm, TRIED, VERDICTS) == {
        "paths": paths,
        "judged": paths,
        "wrong": wrong,
        "needless": needless,
        "rows": rows,
    }


def test_of_more_paths_than_a_goal_may_give_the_surest_are_kept_unless_the_limit_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Plan(1, []).write()
    found = arms(params(filter={"accept": 0.85, "max_per_goal": 1}))
    other = path(click(SUBMIT), seed=4, outcome=0.88)
    assert found["none"].paths([SHORT, other]) == [SHORT]
    assert found["max_per_goal"].paths([SHORT, other]) == [SHORT, other]
