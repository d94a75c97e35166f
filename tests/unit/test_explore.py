"""What a plan's proposals become, for a search to be made of them."""

from __future__ import annotations

from small_round import goal, params

from environments.types import Goal, Instance
from tasks.curriculum.plan import Proposal
from tasks.explore import _at, _instance

GOALS = {"click-ok": goal(), "other": goal("other")}


def test_an_instance_is_of_its_goal_and_seed_and_asks_what_the_world_says() -> None:
    assert _instance(GOALS, Proposal("click-ok", 7)) == Instance(goal(), 7)


def test_an_instance_asks_for_what_is_proposed_in_as_many_steps() -> None:
    found = _instance(GOALS, Proposal("click-ok", 7, instruction="Click Cancel", max_steps=11))
    longer = Goal("click-ok", "environments.miniwob:MiniWoB", "click-ok", 1, 11)
    assert found == Instance(longer, 7, "Click Cancel")
    assert GOALS["click-ok"].max_steps == 4


def test_a_proposed_temperature_stands_in_place_of_that_of_the_parameters() -> None:
    usual = params(explore={"temperature": 1.5})
    assert _at(None, usual) == usual
    hotter = _at(3.0, usual)
    assert hotter == params(explore={"temperature": 3.0}) != usual
