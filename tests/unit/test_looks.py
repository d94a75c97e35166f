"""How the instances of a look are shared out, and which looks an agent's success is of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_round import params

from tasks.evidence.looks import ALIKE, Verdict, alike, most, pairs_by_look, shares
from tasks.evidence.metrics import summarise

GOALS = ["one", "two", "three", "four"]


def _verdict(goal: str, champion: bool, challenger: bool, look: int = 1, seed: int = 0) -> Verdict:
    return Verdict(look=look, goal=goal, tier=1, seed=seed, champion=champion, challenger=challenger)


def test_the_first_looks_play_each_goal_alike() -> None:
    assert shares(GOALS, [_verdict("one", True, False)], ALIKE, 3) == dict.fromkeys(GOALS, 3)


def test_later_looks_go_to_the_goals_at_which_the_agents_have_differed() -> None:
    """Weights 1, 1/2, 1, 1/2 of 8 instances: 2.67, 1.33, 2.67, 1.33, the two that are left to the largest rests."""
    seen = [_verdict("one", True, False), _verdict("three", False, True), _verdict("two", False, False)]
    assert shares(GOALS, seen, ALIKE + 1, 2) == {"one": 3, "two": 1, "three": 3, "four": 1}


def test_who_was_better_there_does_not_matter() -> None:
    """Else a goal that the challenger happened to win would get more, and equal agents would not win by a fair coin."""
    won, lost = ([_verdict("two", old, not old)] for old in (False, True))
    assert shares(GOALS, won, ALIKE + 1, 5) == shares(GOALS, lost, ALIKE + 1, 5)


def test_agents_that_never_differed_are_looked_at_evenly() -> None:
    seen = [_verdict(goal, True, True) for goal in GOALS]
    assert shares(GOALS, seen, ALIKE + 1, 2) == dict.fromkeys(GOALS, 2)


@given(st.lists(st.sampled_from(range(30)), max_size=30), st.integers(1, 40), st.integers(1, 9), st.integers(1, 12))
def test_a_look_is_as_large_as_planned_and_no_goal_gets_more_than_its_seeds(
    differed: list[int], goals: int, per_goal: int, looks: int
) -> None:
    names = [str(goal) for goal in range(goals)]
    seen = [_verdict(str(goal), False, True) for goal in differed if goal < goals]
    of_looks = [shares(names, seen, look, per_goal) for look in range(1, looks + 1)]
    assert all(sum(added.values()) == per_goal * goals for added in of_looks)
    assert max(sum(added[name] for added in of_looks) for name in names) <= most(per_goal, looks)


def test_success_is_that_of_the_first_looks_and_the_test_has_all() -> None:
    """A third look at what the agents differ in would pull both down."""
    even = [_verdict(goal, True, True, look, look) for goal in GOALS for look in (1, 2)]
    hard = [_verdict("one", False, True, 3, seed) for seed in range(3, 9)]
    assert alike(even + hard) == even
    figures = summarise(even + hard, [], [], [])["agent"]
    assert [figures[model]["overall"]["n"] for model in ("champion", "challenger")] == [8, 8]
    assert figures["champion"]["overall"]["rate"] == pytest.approx(1.0)
    assert [len(added) for added in pairs_by_look(hard + even)] == [4, 4, 6]


def test_a_look_on_which_the_world_broke_keeps_its_number() -> None:
    assert pairs_by_look([_verdict("one", False, True, 2)]) == [[], [(False, True)]]


def test_more_looks_than_a_goal_has_seeds_for_are_refused() -> None:
    """Of 500: 8 looks at 35 of each goal may come to 2 * 35 + 6 * 70 = 490 of one, at 36 to 504."""
    assert params(evaluate={"per_goal": 35, "looks": 8}).evaluate.per_goal == 35
    with pytest.raises(ValidationError, match="per_goal 36 in 8 looks: may reach 504 instances of a goal, of 500"):
        params(evaluate={"per_goal": 36, "looks": 8})
