"""What a training is of: how much of it is the round's, the corpus's and what else, and what its scores are set by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import contexts, journey

from environments.types import End, Episode, Goal, Instance, Step
from models.calibration import AS_IT_IS, read_calibration
from models.network import Network, load_base
from models.packing import Sample, imitation
from models.training import Report, Schedule
from models.tuning import Tuning, save_tuned, tunable
from tasks.files import CALIBRATION, DEMONSTRATIONS, REHEARSAL, ROUND, SEED, STATE, copy, write_json
from tasks.params import Params, load_params
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, write_rows, write_trajectories
from tasks.train import calibrated, replayed, train_agent, train_reward, warm_agent, warm_reward

PARAMS = Path(__file__).parents[2] / "params.yaml"
CORPUS, ROWS = STATE / "corpus", ROUND / "rows"
ATTACKS = ROUND / "attacks" / "reward_rows.parquet"


class Trained:
    """In place of the training: what it was to be of, and what is held back of that. The network stays as it is."""

    def __init__(self) -> None:
        self.networks: list[Network] = []
        self.samples: list[Sample] = []

    def __call__(
        self, network: Network, samples: Sequence[Sample], schedule: Schedule, kept: Path, report: Report,
        held: Sequence[Sample],
    ) -> list[float]:  # fmt: skip
        self.networks.append(network)
        self.samples += [*samples, *held]
        return [0.0]

    @property
    def told(self) -> Counter[tuple[str, str]]:
        """What is done in how many contexts of which instruction, by which a dataset is known."""
        return Counter((sample.context.instruction, _task(sample)) for sample in self.samples)


def _task(sample: Sample) -> str:
    if sample.among:
        return "judge"
    return "prefer" if sample.beta else "imitate"


def about(instruction: str, step: int) -> dict[str, Any]:
    """What all rows have."""
    found = {"id": f"{instruction}#{step}", "trajectory": instruction, "goal": "go", "seed": 1, "round": 1}
    return {**found, "step": step, "agent": "", "reward": ""}


def judged(instruction: str, step: int, of: str = "") -> list[RewardRow]:
    """A right action of a step and a wrong one."""
    known = about(of or instruction, step) | {"instruction": instruction, "generator": "rule"}
    return [RewardRow(action=action, label=action != "wait", **known) for action in (f"click b{step}", "wait")]


def write(folder: Path, instruction: str, steps: int) -> None:
    """A dataset of one trajectory: each of its steps is imitated, and known from a wrong one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = journey(steps + 1)
    acts = tuple(
        Step(context.observation, action) for context, (_, action) in zip(path, path[-1].history, strict=False)
    )
    end = path[-1].observation
    episode = Episode(Instance(Goal("go", "world", "page", 1, 9), 1), instruction, acts, end, End.COMPLETED)
    write_trajectories(folder, [Trajectory(instruction, 1, Origin.SEARCH, episode)])
    imitated = [
        AgentRow(action=f"click b{step}", source="accepted", **about(instruction, step)) for step in range(steps)
    ]
    write_rows(folder / "agent_rows.parquet", AgentRow, imitated)
    rows = [row for step in range(steps) for row in judged(instruction, step)]
    write_rows(folder / "reward_rows.parquet", RewardRow, rows)


@pytest.fixture
def trained(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trained:
    """In a workspace with champions and datasets; of those of the seed, the steps of the calibration are others."""
    monkeypatch.chdir(tmp_path)
    write(DEMONSTRATIONS, "demonstrations", 3)
    write(DEMONSTRATIONS / CALIBRATION, "calibration", 5)
    write(REHEARSAL, "rehearsal", 2)
    write(CORPUS / "seed", "seed", 4)
    write(CORPUS / "seed" / CALIBRATION, "calibration", 6)
    write(CORPUS / "round-0001", "round-0001", 5)
    write(ROWS, "rows", 6)
    ATTACKS.parent.mkdir()
    write_rows(ATTACKS, RewardRow, [row for step in range(3) for row in judged("attacks", step, of="seed")])
    (SEED / "base").mkdir()
    described = {"model": str(base), "digest": ""}
    write_json(SEED / "base" / "bases.json", {"agent": described, "reward": described})
    write_json(ROUND / "validation.json", {})
    for file in (PARAMS, PARAMS.with_name("dvc.yaml")):
        copy(file, Path(file.name))
    for role in ("agent", "reward"):
        (STATE / role).mkdir()
        network = tunable(load_base(str(base), "float32", 0), Tuning("lora", 4, 8, 1), seed=0)
        for name, weight in network.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.1)
        save_tuned(network, STATE / role)
    found = Trained()
    monkeypatch.setattr("tasks.train.train", found)
    return found


def params(replay: float = 0.5, preference: float | None = None) -> Params:
    """With every action news to the champion."""
    loaded = load_params(PARAMS)
    agent = loaded.train_agent.model_copy(update={"replay": replay, "preference": preference, "known": 1.0})
    tune = loaded.tune.model_copy(update={"rank": 4, "alpha": 8, "skip_layers": 1})
    reward = loaded.train_reward.model_copy(update={"replay": replay})
    return loaded.model_copy(update={"tune": tune, "train_agent": agent, "train_reward": reward})


def test_the_first_agent_is_taught_by_demonstrations_and_rehearsal(trained: Trained) -> None:
    warm_agent(params())
    assert trained.told == {("demonstrations", "imitate"): 3, ("rehearsal", "imitate"): 2}


def test_the_first_reward_model_is_taught_by_demonstrations_alone(trained: Trained) -> None:
    warm_reward(params())
    assert trained.told == {("demonstrations", "judge"): 3}


def replay_of(told: Counter[tuple[str, str]]) -> int:
    """Takes what is of the corpus away, and says how much it was."""
    mine = [of for of in told if of[0] in ("seed", "round-0001")]
    return sum(told.pop(of) for of in mine)


@pytest.mark.parametrize(("replay", "drawn"), [(0.0, 0), (0.25, 2), (0.5, 6), (0.75, 9)])
def test_an_agent_goes_over_the_round_its_share_of_the_corpus_and_the_rehearsal(
    trained: Trained, replay: float, drawn: int
) -> None:
    """Of 6 rows to the corpus's 9, all of which are not enough for a share of 3/4."""
    train_agent(params(replay))
    told = trained.told
    assert replay_of(told) == drawn
    assert told == {("rows", "imitate"): 6, ("rehearsal", "imitate"): 2}


def test_an_agent_that_prefers_does_so_beside_imitating(trained: Trained) -> None:
    """12 samples of the round are as many as 4 of the corpus to a share of 1/4."""
    train_agent(params(0.25, preference=0.1))
    told = trained.told
    assert replay_of(told) == 4
    assert told == {("rows", "imitate"): 6, ("rows", "prefer"): 6, ("rehearsal", "imitate"): 2}


@pytest.mark.parametrize(("replay", "drawn"), [(0.25, 2), (0.75, 9)])
def test_a_reward_model_goes_over_the_round_its_share_of_the_corpus_and_what_fooled_the_champion(
    trained: Trained, replay: float, drawn: int
) -> None:
    train_reward(params(replay))
    told = trained.told
    assert replay_of(told) == drawn
    assert told == {("rows", "judge"): 6, ("attacks", "judge"): 3}


def test_replay_is_a_share_of_all(network: Network) -> None:
    corpus = [imitation(network, context, answer) for context in contexts() for answer in ("wait", "complete")]
    drawn = [list(replayed(corpus, share, 4, seed=1)) for share in (0.0, 0.2, 0.5, 0.9)]
    assert [len(one) for one in drawn] == [0, 1, 4, 6]
    for one in drawn:
        assert len({id(sample) for sample in one} & {id(sample) for sample in corpus}) == len(one), "none comes twice"
    assert drawn[2] == list(replayed(corpus, 0.5, 4, seed=1))
    assert drawn[2] != list(replayed(corpus, 0.5, 4, seed=2))


@pytest.mark.parametrize(
    ("stage", "aside", "made"),
    [
        (warm_reward, DEMONSTRATIONS / CALIBRATION, SEED / "reward"),
        (train_reward, CORPUS / "seed" / CALIBRATION, ROUND / "reward"),
    ],
)
def test_scores_are_set_right_by_what_nothing_is_trained_on(
    trained: Trained, stage: Callable[[Params], None], aside: Path, made: Path
) -> None:
    stage(params())
    (network,) = trained.networks
    found = read_calibration(made)
    assert found == calibrated(network, aside)
    assert found != calibrated(network, aside.parent)
    assert found.step != AS_IT_IS
    assert "calibration" not in {instruction for instruction, _ in trained.told}
