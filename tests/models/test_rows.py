"""What training makes of rows on disk: a sample a context, weighed by what is rare, and preferences."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from pathlib import Path

import pytest
from tiny import journey

from environments.types import COMPLETE, End, Episode, Goal, Instance, Step
from models.calibration import AS_IT_IS, Calibration, fitted
from models.inference import TorchEngine
from models.network import Network
from models.packing import Sample, imitation, preference
from tasks.params import RetrainAgent
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, write_rows, write_trajectories
from tasks.train import _parted, agent_samples, calibrated, news, preference_samples, reward_samples

ABOUT = {"trajectory": "t", "goal": "go", "seed": 1, "round": 1, "agent": "", "reward": ""}


def judged(number: int, step: int, action: str, label: bool) -> RewardRow:
    return RewardRow(
        id=f"r{number}", step=step, instruction="Go on", action=action, label=label, generator="rule", **ABOUT
    )


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Three steps: one with right and wrong actions, one with wrong ones, one with a right one; and the end."""
    path = journey(3)
    acts = tuple(
        Step(context.observation, action) for context, (_, action) in zip(path, journey(4)[-1].history, strict=True)
    )
    episode = Episode(Instance(Goal("go", "world", "page", 1, 9), 1), "Go on", acts, path[0].observation, End.COMPLETED)
    write_trajectories(tmp_path, [Trajectory("t", 1, Origin.SEARCH, episode)])
    rows = [
        *(judged(0, 0, "click b0", True), judged(1, 0, "wait", False), judged(2, 0, "click b1", False)),
        *(judged(3, 1, "wait", False), judged(4, 2, "click b2", True), judged(5, 3, "complete", True)),
    ]
    write_rows(tmp_path / "reward_rows.parquet", RewardRow, rows)
    agent = AgentRow(id="a", step=1, action="click b1", source="accepted", **ABOUT)
    write_rows(tmp_path / "agent_rows.parquet", AgentRow, [agent])
    return tmp_path


def steps_of(samples: list[Sample]) -> list[int]:
    return [len(sample.context.history) for sample in samples]


def test_a_judgement_has_all_candidates_of_its_context_and_right_weighs_as_much_as_wrong(
    network: Network, dataset: Path
) -> None:
    samples = reward_samples(dataset, network, ranking=0.5)
    assert steps_of(samples) == [0, 1, 2, 3]
    assert [len(sample.branches) for sample in samples] == [3, 1, 1, 1]
    weights = [branch.weight for sample in samples for branch in sample.branches]
    assert weights == [6 / 2, 6 / 3, 6 / 3, 6 / 3, 6 / 2, 6 / 1]  # two right steps, three wrong ones, one outcome
    assert {sample.ranking for sample in samples} == {0.5}


def test_rows_may_lie_elsewhere_than_their_trajectories(network: Network, dataset: Path, tmp_path: Path) -> None:
    aside = tmp_path / "aside.parquet"
    write_rows(aside, RewardRow, [judged(0, 2, str(COMPLETE), False)])
    (sample,) = reward_samples(dataset, network, ranking=0, at=aside)
    assert steps_of([sample]) == [2]


def test_preferences_are_of_contexts_with_right_and_wrong(network: Network, dataset: Path) -> None:
    (sample,) = preference_samples(dataset, network, beta=0.3)
    assert steps_of([sample]) == [0]
    assert sample.beta == 0.3
    said = [list(branch.tokens) for branch in sample.branches]
    assert said == [network.answer_tokens(action) for action in ("click b0", "wait", "click b1")]


def test_an_agent_row_is_imitated_in_its_context(network: Network, dataset: Path) -> None:
    (sample,) = agent_samples(dataset, network)
    assert steps_of([sample]) == [1]
    assert list(sample.branches[0].tokens) == network.answer_tokens("click b1")


def test_generators_weigh_the_same_within_a_class(network: Network, dataset: Path, tmp_path: Path) -> None:
    aside = tmp_path / "aside.parquet"
    made = [
        *(replace(judged(number, 1, f"click b{number}", False), generator="sibling") for number in range(3)),
        replace(judged(3, 1, "wait", False), generator="too_soon"),
        judged(4, 1, "click b9", True),
    ]
    write_rows(aside, RewardRow, made)
    (sample,) = reward_samples(dataset, network, ranking=0, at=aside)
    # five rows: a class of right steps weighs 5, one of wrong ones too, half of it each generator
    assert [branch.weight for branch in sample.branches] == pytest.approx([5 / 6, 5 / 6, 5 / 6, 5 / 2, 5])


def test_a_network_is_calibrated_on_rows(network: Network, dataset: Path) -> None:
    found = calibrated(network, dataset)
    rows = [
        (0, "click b0", True),
        (0, "wait", False),
        (0, "click b1", False),
        (1, "wait", False),
        (2, "click b2", True),
    ]
    path = journey(4)
    engine = TorchEngine(network)
    scores = [engine.fresh().score([path[step]], [[action]])[0][0] for step, action, _ in rows]
    weights = [1 / 2 if label else 1 / 3 for *_, label in rows]
    expected = fitted(scores, [label for *_, label in rows], weights)
    assert (found.step.slope, found.step.offset) == pytest.approx((expected.slope, expected.offset), abs=1e-3)
    assert found.outcome == AS_IT_IS  # one row alone
    assert calibrated(network, dataset / "missing") == Calibration()


def reading(rows: int, known: float) -> RetrainAgent:
    """A training that reads so many rows in all."""
    return RetrainAgent(updates=rows, batch_rows=1, learning_rate=1e-4, replay=0.5, known=known, preference=None)


def test_what_the_network_says_anyway_is_no_news(network: Network) -> None:
    """More samples than are read at once; a preference is kept whatever it prefers."""
    contexts = journey(12)
    samples = [imitation(network, context, "wait") for context in contexts]
    preferred = preference(network, contexts[0], "wait", ["click b1"], 0.1)
    length = len(network.answer_tokens("wait"))
    means = TorchEngine(network).likelihood(contexts, [["wait"]] * len(contexts))
    likelihoods = [exp(row[0] * length) for row in means]
    known = sum(sorted(likelihoods)[5:7]) / 2
    expected = [sample for sample, one in zip(samples, likelihoods, strict=True) if one < known]
    assert len(expected) == 6
    assert news(network, [*samples, preferred], reading(12, known)) == [*expected, preferred]


def test_where_little_is_news_the_least_likely_are_gone_over(network: Network) -> None:
    contexts = journey(6)
    samples = [imitation(network, context, "wait") for context in contexts]
    means = TorchEngine(network).likelihood(contexts, [["wait"]] * len(contexts))
    rarest = {place for place, _ in sorted(enumerate(means), key=lambda one: one[1][0])[:2]}
    assert news(network, samples, reading(8, 1e-30)) == [one for place, one in enumerate(samples) if place in rarest]
    assert news(network, samples, reading(36, 1e-30)) == samples
    assert news(network, [], reading(36, 0.9)) == []


def test_every_eighth_preference_is_held_back(network: Network) -> None:
    contexts = journey(20)
    preferred = [preference(network, context, "click b0", ["wait"], 0.1) for context in contexts]
    imitated = [imitation(network, context, "wait") for context in contexts]
    kept, held = _parted([*imitated, *preferred])
    assert held == [preferred[7], preferred[15]]
    assert len(kept) == 38
    assert not any(sample in kept for sample in held)
    assert _parted([*imitated, *preferred[:7]]) == ([*imitated, *preferred[:7]], [])
