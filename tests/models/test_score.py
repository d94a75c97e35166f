"""A recorded trajectory is scored in one forward pass for each block of its steps, its outcome in that of the last."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import elements, journey, pictures_seen, png

from environments.types import COMPLETE, Candidate, End, Episode, Goal, Instance, Observation, Step
from models.calibration import Calibration
from models.engine import Source
from models.inference import TorchEngine
from models.network import Network, load_base
from models.prompts import context_at
from models.roles import RewardModel, load_reward_model
from models.tuning import Tuning, save_tuned, tunable
from tasks.base import BASE
from tasks.files import ROUND, STATE, WORK, write_json
from tasks.params import load_params
from tasks.records import Origin, Trajectory, read_trajectories
from tasks.score import run, score_episode
from tasks.workers import TRAJECTORIES

REPOSITORY = Path(__file__).parents[2]


def episode(steps: int) -> Episode:
    """With its end said: the last action is ``complete``."""
    acts = [
        Step(context.observation, action, (Candidate(action, 1),))
        for context, (_, action) in zip(journey(steps), journey(steps + 1)[-1].history, strict=True)
    ]
    last = Observation(png(250), elements(2))
    said = Step(last, COMPLETE, (Candidate(COMPLETE, 1),))
    goal = Goal("go", "world", "page", 1, 20)
    return Episode(Instance(goal, 3), "Go on", (*acts, said), last, End.COMPLETED)


def test_a_block_is_one_pass(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine steps: blocks of six and three; the end, which is the tenth prompt, begins a third."""
    rows, seen = [], pictures_seen(network)
    hidden = Network.hidden
    count = lambda inputs: len(inputs["inputs_embeds"])  # noqa: E731
    monkeypatch.setattr(Network, "hidden", lambda self, **rest: rows.append(count(rest)) or hidden(self, **rest))
    before = episode(9)
    scored = score_episode(before, RewardModel(TorchEngine(network), Calibration()))
    assert rows == [1, 1, 1]
    assert seen == [6, 3, 1]

    for place, step in enumerate(scored.steps):
        context = context_at("Go on", before.steps[:place], step.observation)
        assert [[step.score]] == [
            pytest.approx(row, abs=1e-5) for row in TorchEngine(network).score([context], [[str(step.action)]])
        ]
    assert scored.outcome == pytest.approx(scored.steps[-1].score, abs=1e-5)


def test_what_is_scored_already_is_kept(network: Network) -> None:
    judge = RewardModel(TorchEngine(network), Calibration())
    before = episode(4)
    known = replace(before, steps=(replace(before.steps[0], score=0.25), *before.steps[1:]), outcome=0.75)
    scored = score_episode(known, judge)
    assert scored.steps[0].score == 0.25
    assert scored.outcome == 0.75
    assert all(step.score is not None for step in scored.steps)
    assert score_episode(scored, judge) == scored


def path(name: str, seed: int, known: bool) -> Trajectory:
    """Of two steps; with all of its scores, or none."""
    found = episode(2)
    if known:
        found = replace(found, steps=tuple(replace(step, score=0.5) for step in found.steps), outcome=0.25)
    instance = replace(found.instance, seed=seed)
    return Trajectory(name, 1, Origin.SEARCH, replace(found, instance=instance))


def test_workers_score_what_lacks_a_score_and_nothing_else(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("params.yaml", "dvc.yaml"):
        shutil.copy(REPOSITORY / file, file)
    for folder in (STATE / "reward", ROUND, BASE):
        folder.mkdir(parents=True)
    write_json(BASE / "bases.json", {"reward": {"model": str(base), "digest": ""}})
    save_tuned(tunable(load_base(str(base), "float32", 0), Tuning("lora", 4, 8, 0), seed=0), STATE / "reward")
    before, lacking, after = path("a/0", 1, known=True), path("b/0", 2, known=False), path("c/0", 3, known=True)

    TRAJECTORIES.write(ROUND / "explored", [before, after])
    run(load_params())
    assert list(read_trajectories(ROUND / "scored")) == [before, after]
    assert not WORK.exists()  # no process was started

    TRAJECTORIES.write(ROUND / "explored", [before, lacking, after])
    run(load_params())
    first, scored, last = read_trajectories(ROUND / "scored")
    assert (first, last) == (before, after)
    assert scored.id == "b/0"
    judged = score_episode(
        lacking.episode, load_reward_model(Source({"reward": str(base)}, "float32", 0), STATE / "reward")
    )
    assert scored.episode.outcome == pytest.approx(judged.outcome, abs=1e-5)
    assert [step.score for step in scored.episode.steps] == pytest.approx([one.score for one in judged.steps], abs=1e-5)
