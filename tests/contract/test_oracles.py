"""Each oracle solves its page, as the world judges, within the goal's step limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environments import oracles
from environments.registry import load_goals, open_world
from environments.types import Action, Goal, Kind, Observation, World

WORLD = "environments.miniwob:MiniWoB"
GOALS = {
    name: goal
    for name, goal in load_goals(Path(__file__).parents[2] / "data" / "goals").items()
    if goal.page in oracles.pages() and goal.world == WORLD
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = open_world(WORLD)
    yield world
    world.close()


def _solve(world: World, goal: Goal, seed: int) -> Action | None:
    """Play the oracle; returns what it says once the world has judged for it, None when it has not."""
    start = world.reset(goal, seed)
    seen, taken = start.observation, list[Action]()
    while not world.ended and len(taken) < goal.max_steps:
        taken.append(oracles.next_action(goal.page, start.instruction, seen, taken))
        seen = world.step(taken[-1])
    return oracles.next_action(goal.page, start.instruction, seen, taken) if world.verdict() else None


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_the_oracle_reaches_the_goal_and_then_says_complete(world: World, goal: Goal) -> None:
    _check(world, goal, range(2), 1)


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_the_oracle_reaches_the_goal_nearly_always(world: World, goal: Goal) -> None:
    _check(world, goal, range(10), 9)


def _check(world: World, goal: Goal, seeds: range, at_least: int) -> None:
    """Not of every seed: a page may hide its target behind another element, or name two things the same."""
    last_words = [_solve(world, goal, seed) for seed in seeds]
    solved = [words for words in last_words if words is not None]
    assert len(solved) >= at_least
    assert set(solved) == {Action(Kind.COMPLETE)}


def test_sixty_pages_have_an_oracle() -> None:
    assert len({goal.page for goal in GOALS.values()}) >= 60


def test_at_least_six_goals_need_several_actions() -> None:
    assert sum(goal.max_steps > 4 for goal in GOALS.values()) >= 6


def test_a_page_without_an_oracle_is_named() -> None:
    with pytest.raises(oracles.NoOracle, match="page 'draw-line' has no oracle; there is one for"):
        oracles.next_action("draw-line", "", Observation(b"", ()), [])


def test_an_instruction_in_other_words_is_named() -> None:
    with pytest.raises(ValueError, match="nothing in it matches"):
        oracles.next_action("click-tab", "Do something else.", Observation(b"", ()), [])
