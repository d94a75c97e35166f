"""What every world must keep: the same bytes for the same actions, clear ends, a way back from a crash."""

from __future__ import annotations

import hashlib
import io
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from PIL import Image

from environments import oracles
from environments.browser.chromium import VIEWPORT_PX
from environments.registry import load_goals, open_world
from environments.types import Action, EpisodeOver, Goal, Kind, Observation, World, WorldError

FOLDER = Path(__file__).parents[2] / "data" / "goals"
GOALS = load_goals(FOLDER / "starter.yaml") | load_goals(FOLDER / "more.yaml")
WORLDS = sorted({goal.world for goal in GOALS.values()})
SEED = 7
COMPLETE = Action(Kind.COMPLETE)


@pytest.fixture(scope="module", params=WORLDS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = open_world(request.param)
    yield world
    world.close()


@pytest.fixture(params=WORLDS)
def fresh_world(request: pytest.FixtureRequest) -> Iterator[World]:
    world = open_world(request.param)
    yield world
    world.close()


def _first_goal(world: World) -> Goal:
    return next(goal for goal in GOALS.values() if type(open_world(goal.world)) is type(world))


def _play(world: World, goal: Goal, seed: int) -> Iterator[Observation]:
    """What an oracle sees, from the first to the last screen."""
    start = world.reset(goal, seed)
    seen, taken = start.observation, list[Action]()
    yield seen
    while not world.ended and len(taken) < goal.max_steps:
        taken.append(oracles.next_action(goal.page, start.instruction, seen, taken))
        seen = world.step(taken[-1])
        yield seen


def _digests(world: World, goal: Goal) -> list[str]:
    return [
        hashlib.sha256(seen.screenshot + repr(seen.elements).encode()).hexdigest() for seen in _play(world, goal, SEED)
    ]


def _digests_of_all(path: str) -> dict[str, list[str]]:
    world = open_world(path)
    try:
        return {goal.id: _digests(world, goal) for goal in reversed(GOALS.values()) if goal.world == path}
    finally:
        world.close()


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, list[str]]:
    """The digests of all goals, from other processes with other browsers, in the opposite order."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        maps = list(pool.map(_digests_of_all, WORLDS))
    return {goal: digests for each in maps for goal, digests in each.items()}


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_the_same_actions_give_the_same_bytes(world: World, goal: Goal, elsewhere: dict[str, list[str]]) -> None:
    digests = _digests(world, goal)
    assert digests == _digests(world, goal)
    assert digests == elsewhere[goal.id]


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_screens_and_elements_are_well_formed(world: World, goal: Goal) -> None:
    width, height = VIEWPORT_PX
    for seen in _play(world, goal, SEED):
        assert Image.open(io.BytesIO(seen.screenshot)).size == VIEWPORT_PX
        for element in seen.elements:
            assert 0 <= element.point[0] < width
            assert 0 <= element.point[1] < height
            assert " " not in element.kind
            assert set(element.states) <= {"focus", "on", "disabled"}
            assert Action.parse(str(Action.click(element))) == Action.click(element)


def test_two_seeds_differ(world: World) -> None:
    goal = _first_goal(world)
    assert world.reset(goal, 1).observation != world.reset(goal, 2).observation


def test_complete_ends_the_episode_and_changes_nothing(world: World) -> None:
    start = world.reset(_first_goal(world), SEED)
    assert not world.ended
    assert world.step(COMPLETE) == start.observation
    assert world.ended
    assert not world.verdict()


def test_no_step_follows_the_end(world: World) -> None:
    goal = _first_goal(world)
    world.reset(goal, SEED)
    world.step(COMPLETE)
    with pytest.raises(EpisodeOver, match="call reset first"):
        world.step(Action(Kind.WAIT))
    list(_play(world, goal, SEED))  # ends by itself
    assert world.ended
    assert world.verdict()
    with pytest.raises(EpisodeOver, match="call reset first"):
        world.step(COMPLETE)


def test_nothing_is_known_before_a_reset(fresh_world: World) -> None:
    assert fresh_world.ended
    with pytest.raises(EpisodeOver, match="call reset first"):
        fresh_world.step(COMPLETE)
    with pytest.raises(EpisodeOver, match="there is no verdict"):
        fresh_world.verdict()


def test_a_world_may_be_closed_twice_and_used_again(fresh_world: World) -> None:
    goal = _first_goal(fresh_world)
    fresh_world.close()
    first = fresh_world.reset(goal, SEED)
    fresh_world.close()
    fresh_world.close()
    assert fresh_world.ended
    assert fresh_world.reset(goal, SEED) == first


def test_a_killed_browser_breaks_the_episode_and_not_the_world(fresh_world: World) -> None:
    goal = _first_goal(fresh_world)
    before = set(_children())
    first = fresh_world.reset(goal, SEED)
    for browser in set(_children()) - before:
        os.killpg(browser, signal.SIGKILL)
    with pytest.raises(WorldError, match=r"the browser \(process \d+\) died"):
        fresh_world.step(Action(Kind.WAIT))
    assert fresh_world.ended
    assert not fresh_world.verdict()
    assert fresh_world.reset(goal, SEED) == first


def test_a_page_that_is_not_there_is_named(fresh_world: World) -> None:
    with pytest.raises(WorldError, match="goal x: page 'no-such-page' is not one of"):
        fresh_world.reset(Goal("x", "", "no-such-page", 1, 1), SEED)


def _children() -> list[int]:
    """The processes that this one started and that are alive."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" (", 1)
        except OSError:  # it has just ended
            continue
        state, parent = rest.rpartition(")")[2].split()[:2]
        if int(parent) == os.getpid() and state != "Z":
            found.append(int(pid))
    return found
