"""An episode whose browser dies is played on in a new one, and is the same; one that dies every time is a crash."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from pathlib import Path

import pytest

import environments.miniwob
from benchmarks.wander import RandomAgent
from environments.miniwob import MiniWoB
from environments.registry import load_goals
from environments.types import Action, End, Instance, Observation
from tasks.search.rollout import SIDE_BY_SIDE, greedy
from tasks.search.walker import TRIES

INSTANCES = [Instance(load_goals(Path("data/goals"))["login-user"], seed) for seed in (3, 4)]


class Frail(MiniWoB):
    """Its browser is killed just before some of its steps, replayed ones counted as well."""

    deadly: Collection[int] = ()

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def step(self, action: Action) -> Observation:
        if self._count in self.deadly and self._browser is not None:
            os.killpg(self._browser.pid, signal.SIGKILL)
        self._count += 1
        return super().step(action)


@pytest.mark.parametrize("deadly", [{0}, {3}, {2, 4}])
def test_an_episode_goes_on_where_its_browser_died(deadly: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = greedy(RandomAgent(), INSTANCES)
    monkeypatch.setattr(environments.miniwob, "MiniWoB", Frail)
    monkeypatch.setattr(Frail, "deadly", deadly)
    assert all(len(episode.steps) > 4 for episode, _ in undisturbed)
    assert greedy(RandomAgent(), INSTANCES) == undisturbed


def test_an_episode_in_a_world_that_another_had_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    goals = list(load_goals(Path("data/goals/starter.yaml")).values())
    instances = [Instance(goal, seed) for seed in (5, 6) for goal in goals]
    alone = [greedy(RandomAgent(), [instance])[0] for instance in instances]
    opened = []

    class Counted(MiniWoB):
        def __init__(self) -> None:
            super().__init__()
            opened.append(self)

    monkeypatch.setattr(environments.miniwob, "MiniWoB", Counted)
    assert greedy(RandomAgent(), instances) == alone
    assert len(opened) == SIDE_BY_SIDE < len(instances)


def test_an_episode_that_breaks_its_world_again_and_again_is_a_crash(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environments.miniwob, "MiniWoB", Frail)
    monkeypatch.setattr(Frail, "deadly", range(99))
    [(episode, verdict)] = greedy(RandomAgent(), INSTANCES[:1])
    assert (episode.end, episode.steps, verdict) == (End.CRASHED, (), False)
    assert caplog.text.count("the world broke") == TRIES
