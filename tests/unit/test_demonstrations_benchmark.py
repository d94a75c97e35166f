"""What ``benchmarks.demonstrations`` plays, and how it counts."""

from __future__ import annotations

import pytest

from benchmarks.demonstrations import RANDOM, groups, player, rates
from benchmarks.wander import RandomAgent
from environments.types import Element, Goal, Observation
from models.prompts import Context

SCREEN = Observation(b"", tuple(Element("button", f"number {n}", (0, n, 9, 1)) for n in range(20)))


def test_goals_that_are_never_trained_on_are_no_others() -> None:
    found = groups()
    assert {name: len(goals) for name, goals in found.items()} == {"text": 12, "eyes": 4, "unseen": 8}
    assert len({goal.id for goals in found.values() for goal in goals}) == 24


def test_the_random_agent_draws_alike_for_an_instance_and_anew_for_another() -> None:
    instances = [Context(f"Press number {n}", (), SCREEN) for n in range(10)]
    drawn = [RandomAgent().propose([one], 1, 0.0) for one in instances]
    assert [RandomAgent().propose([one], 1, 0.0) for one in instances] == drawn
    assert [[one] for one in RandomAgent().propose(instances, 1, 0.0)] == drawn
    assert len({str(one) for one in drawn}) > 5


def test_the_random_player_asks_no_engine() -> None:
    assert isinstance(player(RANDOM, None), RandomAgent)  # type: ignore[arg-type]


def test_a_group_s_rate_is_that_of_its_instances(capsys: pytest.CaptureFixture[str]) -> None:
    goals = [Goal(name, "", "", 1, 3) for name in ("first", "second")]
    counts = {"first": {"tier": 1, "solved": 3, "n": 4}, "second": {"tier": 1, "solved": 0, "n": 4}}
    assert rates(counts | {"other": {"tier": 1, "solved": 4, "n": 4}}, "text", goals) == 3 / 8
    assert "3/8 = 0.375 [0.137, 0.694]" in capsys.readouterr().out  # Wilson's, by hand
