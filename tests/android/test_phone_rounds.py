"""Phones in the stages of a round: more episodes than phones, records, and what a killed server costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from desk import Desk
from overlap import WordOverlap
from ways import GOALS, plan

from benchmarks.wander import RandomAgent
from environments.types import COMPLETE, Action, Candidate, End, Episode, Instance, Kind, Start
from models.prompts import Context
from tasks.explore import explore
from tasks.params import load_params
from tasks.records import Origin, Trajectory, read_trajectories, write_trajectories
from tasks.search.rollout import greedy

pytestmark = pytest.mark.android


class Guide:
    """Proposes the shortest way of the goal whose instruction it reads."""

    def propose(
        self, contexts: list[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[Candidate(self._next(context))] for context in contexts]

    def _next(self, context: Context) -> Action:
        words = {"Add": "todo-add", "Tick": "todo-tick", "Delete": "todo-delete", "Archive": "todo-archive"}
        goal = words.get(context.instruction.split()[0], "todo-bottom")
        steps = plan(goal, Start(context.instruction, context.observation))
        done = len(context.history)
        return steps[done](context.observation) if done < len(steps) else COMPLETE


def _instances(*seeds: int) -> list[Instance]:
    return [Instance(goal, seed) for goal in GOALS.values() for seed in seeds]


def test_episodes_outnumber_phones_and_round_trip_through_records(desk: Desk, tmp_path: Path) -> None:
    played = greedy(Guide(), _instances(0, 1))
    assert [verdict for _, verdict in played] == [True] * 10
    assert [episode.end for episode, _ in played] == [End.COMPLETED] * 10
    kinds = {step.action.kind for episode, _ in played for step in episode.steps}
    assert kinds == {Kind.CLICK, Kind.LONG_PRESS, Kind.SWIPE, Kind.SCROLL, Kind.TYPE, Kind.COMPLETE}
    trajectories = [
        Trajectory(f"round-0001/{episode.instance.name}/0", 1, Origin.EVALUATION, episode, verdict=verdict)
        for episode, verdict in played
    ]
    write_trajectories(tmp_path, trajectories)
    assert list(read_trajectories(tmp_path)) == trajectories


class Cutting(Guide):
    """Kills the server before the n-th proposal."""

    def __init__(self, desk: Desk, at: int) -> None:
        self._desk, self._left = desk, at

    def propose(
        self, contexts: list[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        self._left -= 1
        if self._left == 0:
            self._desk.server.kill()
        return super().propose(contexts, samples, temperature, seed, likeliest)


def test_a_killed_server_costs_no_finished_episode(desk: Desk) -> None:
    instances = [Instance(goal, 0) for goal in GOALS.values()]
    whole = greedy(Guide(), instances)
    cut = greedy(Cutting(desk, 4), instances)
    crashed = [episode.end is End.CRASHED for episode, _ in cut]
    assert 0 < crashed.count(True) < len(cut)
    assert [one for one, broke in zip(cut, crashed, strict=True) if not broke] == [
        one for one, broke in zip(whole, crashed, strict=True) if not broke
    ]
    assert not any(verdict for (_, verdict), broke in zip(cut, crashed, strict=True) if broke)


def test_search_goes_on_where_one_instance_crashed(desk: Desk) -> None:
    params = load_params()
    instance = Instance(replace(GOALS["todo-tick"], max_steps=2), 0)

    def found() -> list[Episode]:
        return [item.episode for item in explore(instance, RandomAgent(), WordOverlap(), params, 1, ("a", "r"))]

    first = found()
    assert len(first) > 1
    desk.server.kill()
    assert [episode.end for episode in found()] == [End.CRASHED]
    desk.restart()
    assert found() == first
