"""How far an agent has moved, against likelihoods of engines on the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import journey

from environments.types import Action, Candidate, End, Episode, Goal, Instance, Kind, Step
from models.engine import Source
from models.half import halved
from models.inference import TorchEngine
from models.network import Network, load_base
from models.prompts import context_at
from models.tuning import Tuning, save_tuned, tunable, with_tuned
from tasks.evidence.drift import CONTEXTS, divergence, drawn, gap
from tasks.records import Origin, Trajectory, write_trajectories

WAIT, B0 = Action(Kind.WAIT), journey(2)[-1].history[0][1]


def path(number: int, origin: Origin = Origin.SEARCH) -> Trajectory:
    """Two steps, on the second of which two actions were sampled, one of them three times."""
    screens = [context.observation for context in journey(2)]
    options = ((Candidate(B0, 4),), (Candidate(B0, 3), Candidate(WAIT, 1)))
    steps = tuple(Step(screen, B0, found) for screen, found in zip(screens, options, strict=True))
    instance = Instance(Goal("go", "world", "page", 1, 9), number)
    return Trajectory(f"r/{number}", 1, origin, Episode(instance, f"Go {number}", steps, screens[0], End.STEP_LIMIT))


def test_each_action_counts_as_often_as_it_was_sampled() -> None:
    options = (Candidate(B0, 3), Candidate(WAIT, 1))
    assert gap(options, [-1.0, -2.0], [-1.5, -1.0]) == (3 * 0.5 - 1) / 4


def test_different_screens_of_the_search_are_drawn() -> None:
    paths = [path(number) for number in range(40)]
    found = drawn([*paths, *paths, path(99, Origin.CONTINUATION)], seed=1)
    assert len(found) == len({context for context, _ in found}) == CONTEXTS
    assert found == drawn(paths, seed=1)
    assert [len(options) for _, options in sorted(drawn([path(0)], 1), key=lambda one: len(one[1]))] == [1, 2]


def agent(base: Path, folder: Path, seed: int) -> Network:
    network = tunable(load_base(str(base), "float32", 0), Tuning("lora", 4, 8, 0), seed)
    for name, weight in network.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    folder.mkdir(parents=True)
    save_tuned(network, folder)
    return halved(with_tuned(load_base(str(base), "float32", 0), folder))


def test_the_divergence_is_the_mean_over_screens(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = TorchEngine(agent(base, Path("data/state/agent"), 1))
    after = TorchEngine(agent(base, Path("data/round/agent"), 2))
    (tmp_path / "data/round/scored").mkdir()
    write_trajectories(Path("data/round/scored"), [path(0)])
    episode = path(0).episode
    expected = 0.0
    for place, step in enumerate(episode.steps):
        context = context_at(episode.instruction, episode.steps[:place], step.observation)
        for option in step.candidates:
            (old,), (new,) = (engine.likelihood([context], [[str(option.action)]])[0] for engine in (before, after))
            expected += option.count / 4 * (old - new) / 2
    source = Source({"agent": str(base)}, "float32", 0)
    assert divergence(source, 0, 1, tmp_path / "kept") == pytest.approx(expected, abs=1e-5)
    assert abs(expected) > 1e-4
    served = Source({"agent": str(base)}, "float32", 0, {"data/state/agent": ("url", "name")})  # type: ignore[dict-item]
    assert divergence(served, 0, 1, tmp_path / "other") is None
