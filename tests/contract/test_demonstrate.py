"""Demonstrations in the real world, and what fails of them with a move left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from environments.registry import load_goals, open_world
from environments.types import COMPLETE, Instance, Kind, World
from tasks.acceptance import Rejection, rejection
from tasks.demonstrate import demonstrate, spoiled
from tasks.records import Origin, Trajectory
from tasks.reward_data import Generator, reward_rows
from tasks.reward_data.corruption import undone

GOALS = load_goals(Path(__file__).parents[2] / "data/goals/starter.yaml")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with closing(open_world("environments.miniwob:MiniWoB")) as opened:
        yield opened


def solved(world: World, goal: str, seed: int) -> Trajectory:
    episode = demonstrate(world, Instance(GOALS[goal], seed))
    assert world.verdict()
    return Trajectory(f"seed/{goal}/{seed}/0", 0, Origin.DEMONSTRATION, episode)


@pytest.mark.parametrize("goal", ["login-user", "enter-password", "click-checkboxes", "enter-text"])
def test_a_demonstration_without_a_move_fails_in_the_world(world: World, goal: str) -> None:
    whole = solved(world, goal, 2)
    (short,) = spoiled(world, whole)
    assert world.verdict() is False
    assert (short.id, short.origin) == (f"{whole.id}-spoiled", Origin.SPOILED)
    taken, known = ([str(step.action) for step in one.episode.acts] for one in (short, whole))
    assert len(known) - 2 <= len(taken) < len(known)
    assert taken[-1] == known[-1]
    assert all(action in known for action in taken)
    assert short.episode.last != whole.episode.last
    assert spoiled(world, whole) == [short]  # the same again


def test_where_one_move_is_all_there_is_nothing_can_be_left_out(world: World) -> None:
    assert spoiled(world, solved(world, "click-test-2", 1)) == []


def test_it_teaches_that_its_end_is_none_and_the_agent_nothing(world: World) -> None:
    whole = solved(world, "login-user", 0)
    (short,) = spoiled(world, whole)
    assert rejection(short, 0.0) is Rejection.SPOILED
    last = short.episode.acts[-1].action
    assert last.kind is Kind.CLICK
    end = len(short.episode.acts)
    drafts = [(item.step, item.action, item.label, item.generator) for item in undone(short)]
    assert drafts == [(end - 1, last, False, Generator.SPOILED), (end, COMPLETE, False, Generator.SPOILED)]
    rows = reward_rows([whole, short], accept=0.0, max_negatives=3, seed=0)
    assert {row.generator for row in rows if row.trajectory == short.id} == {"spoiled"}
