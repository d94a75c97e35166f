"""The world's verdict reaches evaluation and nothing else: a world that lies about it changes no other byte."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from overlap import WordOverlap

import environments.miniwob
from benchmarks.wander import RandomAgent
from environments.miniwob import MiniWoB
from environments.registry import load_goals
from environments.types import Instance
from tasks.acceptance import Bar
from tasks.explore import explore
from tasks.filter import agent_rows
from tasks.params import load_params
from tasks.records import Trajectory, write_trajectories
from tasks.reward_data import reward_rows
from tasks.score import score_episode
from tasks.search.rollout import greedy

GOALS = ("click-button", "click-option", "login-user")


ASK = ("audit", "evidence", "page", "search")  # folders of tasks that do
READ = re.compile(r"\.verdict\b|\"verdicts?\"|explored\.json")


class Liar(MiniWoB):
    def verdict(self) -> bool:
        return not super().verdict()


def _explored() -> list[Trajectory]:
    params, goals = load_params(), load_goals(Path("data/goals"))
    found = []
    for name in GOALS:
        instance = Instance(goals[name], 10_007)
        found += explore(instance, RandomAgent(), WordOverlap(), params, 1, ("agent", "reward"))
    return found


def _bytes(folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    trajectories = _explored()
    write_trajectories(folder, trajectories)
    judge = WordOverlap()
    scored = [score_episode(trajectory.episode, judge) for trajectory in trajectories]
    rows = [
        *agent_rows(trajectories, Bar(0.0)),
        *reward_rows(trajectories, bar=Bar(0.5), max_negatives=3, seed=0),
    ]
    files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    return files | {"scored": repr(scored).encode(), "rows": repr(rows).encode()}


def test_a_lying_world_changes_nothing_but_the_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goals = load_goals(Path("data/goals"))
    held_out = [Instance(goals["click-button"], 1_000_000_000 + n) for n in range(3)]
    honest, judged = _bytes(tmp_path / "honest"), greedy(RandomAgent(), held_out)
    monkeypatch.setattr(environments.miniwob, "MiniWoB", Liar)
    lying, misjudged = _bytes(tmp_path / "lying"), greedy(RandomAgent(), held_out)

    assert honest.keys() == lying.keys()
    assert [name for name in honest if honest[name] != lying[name]] == []
    assert len(honest["rows"]) > 1000
    assert [episode for episode, _ in judged] == [episode for episode, _ in misjudged]
    assert [verdict for _, verdict in judged] == [not verdict for _, verdict in misjudged]


def test_what_explores_and_what_learns_reads_no_verdict() -> None:
    """In the code. Of demonstrations the world is asked whether they are some, and of evaluation."""
    sources = {file: file.read_text() for folder in ("tasks", "models") for file in Path(folder).rglob("*.py")}
    reading = {file for file, source in sources.items() if READ.search(source)}
    assert {file.name for file in reading if not set(file.parts) & set(ASK)} == {
        *("demonstrate.py", "variations.py", "evaluate.py", "decide.py", "records.py")
    }
    assert {file.name for file in reading if "search" in file.parts} == {"walker.py", "rollout.py"}
    asked_by = re.compile(r"walker\.verdict|search\.rollout import")
    assert {file.name for file, source in sources.items() if asked_by.search(source)} == {"evaluate.py", "explored.py"}
