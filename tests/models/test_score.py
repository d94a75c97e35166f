"""A recorded trajectory is scored in one forward pass for each block of its steps, its outcome in that of the last."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny import elements, journey, pictures_seen, png

from environments.types import COMPLETE, Candidate, End, Episode, Goal, Instance, Observation, Step
from models.calibration import Calibration
from models.inference import TorchEngine
from models.network import Network
from models.prompts import context_at
from models.roles import RewardModel
from tasks.score import score_episode


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
