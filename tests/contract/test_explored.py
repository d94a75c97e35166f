"""Explored paths played again in the real world: its own verdict on each, and none where the record is another."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from environments.registry import load_goals, open_world
from environments.types import Action, Element, End, Episode, Instance, Step
from tasks.demonstrate import demonstrate
from tasks.evidence.explored import judge_explored, make_replayer
from tasks.files import ROUND
from tasks.records import Origin, Trajectory, write_trajectories
from tasks.search.walker import Walker

GOALS = load_goals(Path(__file__).parents[2] / "data/goals")
INSTANCE = Instance(GOALS["click-test-2"], 7)


def _recorded(name: str, episode: Episode) -> Trajectory:
    return Trajectory(name, 1, Origin.SEARCH, episode, "agent", "reward")


def _pressing(button: Element) -> Episode:
    """The episode that presses one button of the page."""
    with closing(open_world(INSTANCE.goal.world)) as world:
        start = world.reset(INSTANCE.goal, INSTANCE.seed)
        action = Action.click(button)
        return Episode(
            INSTANCE, start.instruction, (Step(start.observation, action),), world.step(action), End.WORLD, 0.9
        )


def test_the_world_judges_what_the_reward_model_accepted(caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_world(INSTANCE.goal.world)) as world:
        right = demonstrate(world, INSTANCE)
    (pressed,) = right.acts
    (other,) = (one for one in pressed.observation.elements if Action.click(one) != pressed.action)
    wrong = _pressing(other)
    tampered = replace(right, last=wrong.last)
    paths = [_recorded(name, one) for name, one in (("right", right), ("wrong", wrong), ("tampered", tampered))]

    found = make_replayer()([*paths, replace(paths[0], id="again")])

    assert dict(found) == {"right": True, "wrong": False, "again": True}
    assert "tampered: not judged by the world" in caplog.text


def test_what_the_world_did_not_ask_for_it_does_not_judge() -> None:
    with closing(open_world(INSTANCE.goal.world)) as world:
        right = demonstrate(world, INSTANCE)
        asked = Walker(world, replace(INSTANCE, asked="Click button nine.")).start
        assert (asked.instruction, asked.observation) == ("Click button nine.", right.acts[0].observation)
        assert Walker(world, INSTANCE).start.instruction == right.instruction
    other = replace(right, instruction="Click button nine.")
    assert dict(make_replayer()([_recorded("own", right), _recorded("asked", other)])) == {"own": True}


def test_all_that_came_to_an_end_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(open_world(INSTANCE.goal.world)) as world:
        episode = demonstrate(world, INSTANCE)
    ended = _recorded("searched", episode)
    paths = [ended, replace(ended, id="continued", origin=Origin.CONTINUATION, parent="searched")]
    paths += [replace(ended, id=end, episode=replace(episode, end=end)) for end in (End.PRUNED, End.CRASHED)]
    (ROUND / "scored").mkdir(parents=True)
    write_trajectories(ROUND / "scored", paths)
    assert judge_explored(1, tmp_path) == {"searched": True, "continued": True}
