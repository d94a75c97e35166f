"""Several reward models as one: how they are trained, and what their scores are together."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from safetensors.torch import load_file
from test_rows import dataset  # noqa: F401
from tiny import journey

from environments.types import COMPLETE, Action, Kind
from models.calibration import Calibration, Scale
from models.engine import Source, members, role_of
from models.network import load_base
from models.roles import ENSEMBLE, Ensemble, RewardModel, Together, load_reward_model
from models.tuning import Method, Tuning, save_tuned, tunable
from tasks.errors import ParamsError, StageError
from tasks.files import ROUND, SEED, STATE, copy, write_json
from tasks.params import Params, load_params
from tasks.progress import Progress
from tasks.train import train_reward, warm_reward

WAIT = Action(Kind.WAIT)
PARAMS = Path(__file__).parents[2] / "params.yaml"
SHORT = {"updates": 2, "batch_rows": 2, "learning_rate": 1e-2}


class Says:
    """A reward model that scores everything alike."""

    def __init__(self, score: float) -> None:
        self.said = score

    def score(self, contexts: list[object], actions: list[list[object]]) -> list[list[float]]:
        return [[self.said for _ in row] for row in actions]


@pytest.mark.parametrize(("together", "expected"), [("mean", 0.5), ("minimum", 0.2), ("cautious", 0.5 - 0.06**0.5)])
def test_what_several_say_is_one_score(together: Together, expected: float) -> None:
    judges: list[RewardModel] = [Says(0.2), Says(0.5), Says(0.8)]  # type: ignore[list-item]
    found = Ensemble(judges, together).score(journey(2), [[], [WAIT, COMPLETE]])
    assert found == [[], [pytest.approx(expected)] * 2]


def test_caution_ends_at_nothing() -> None:
    judges: list[RewardModel] = [Says(0.0), Says(0.1), Says(0.0), Says(0.0)]  # type: ignore[list-item]
    assert Ensemble(judges, "cautious").score(journey(1), [[WAIT]]) == [[0.0]]


@pytest.fixture
def params(base: Path, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:  # noqa: F811
    """Of two members, in a workspace with demonstrations and a corpus of them."""
    monkeypatch.chdir(tmp_path)
    for place in (SEED / "demonstrations", STATE / "corpus" / "seed", ROUND / "rows", ROUND / "attacks"):
        place.mkdir(parents=True)
        for file in dataset.glob("*.parquet"):
            copy(file, place / file.name)
    (SEED / "base").mkdir()
    for file in (PARAMS, PARAMS.with_name("dvc.yaml")):
        copy(file, Path(file.name))
    write_json(ROUND / "validation.json", {})
    write_json(SEED / "base" / "bases.json", {"reward": {"model": str(base), "digest": ""}})
    loaded = load_params(PARAMS)
    retrained = loaded.train_reward.model_copy(update=SHORT)
    return loaded.model_copy(
        update={
            "reward": loaded.reward.model_copy(update={"members": 2, "together": "minimum"}),
            "tune": loaded.tune.model_copy(update={"rank": 4, "alpha": 8, "skip_layers": 1}),
            "prompt": loaded.prompt.model_copy(update={"screenshots": 5}),
            "warm_reward": loaded.warm_reward.model_copy(update=SHORT),
            "train_reward": retrained,
        }
    )


def test_members_are_trained_apart_and_go_on_apart(params: Params, base: Path) -> None:
    warm_reward(params)
    made = SEED / "reward"
    assert members(made) == [made / "0", made / "1"]
    assert {role_of(one) for one in (made, *members(made))} == {"reward"}
    first, second = (load_file(one / "adapter_model.safetensors") for one in members(made))
    assert any(not first[name].equal(second[name]) for name in first)
    source = Source({"reward": str(base)}, "float32", 5)
    Calibration(step=Scale(1.0, -2.0)).write(made / "1")  # each has its own
    (together,) = load_reward_model(source, made).score(journey(1), [[WAIT]])
    alone = [load_reward_model(source, one) for one in members(made)]
    assert all(isinstance(one, RewardModel) for one in alone)
    scores = [one.score(journey(1), [[WAIT]])[0][0] for one in alone]
    assert together == [pytest.approx(min(scores))]
    assert scores[0] != pytest.approx(scores[1])

    copy(made, STATE / "reward")
    train_reward(params)
    assert (ROUND / "reward" / ENSEMBLE).exists()
    for before, after in zip(members(made), members(ROUND / "reward"), strict=True):
        weights, trained = (load_file(one / "adapter_model.safetensors") for one in (before, after))
        moved = max(float((weights[name] - trained[name]).abs().max()) for name in weights)
        assert 0 < moved < 0.03  # two steps of Adam from where it was, and not from anew


def test_a_single_one_has_no_members(params: Params, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ratchet"):
        warm_reward(params.model_copy(update={"reward": params.reward.model_copy(update={"members": 1})}))
    assert "warm_reward: 4 readings of 4 samples" in caplog.messages  # two updates of two
    assert members(SEED / "reward") == [SEED / "reward"]
    assert not (SEED / "reward" / ENSEMBLE).exists()


class Killed(Progress):
    """Ends the process, as it were, after nine updates."""

    def step(self, note: str = "", count: int = 1) -> None:
        super().step(note, count)
        if self.done == 9:
            raise KeyboardInterrupt


def test_a_stage_that_was_killed_goes_on_with_the_next_update(
    params: Params, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That is the ninth of ten: what is kept is the state after eight."""
    ten = params.warm_reward.model_copy(update={"updates": 10})
    alone = params.reward.model_copy(update={"members": 1})
    params = params.model_copy(update={"reward": alone, "warm_reward": ten})
    with monkeypatch.context() as first:
        first.setattr("tasks.train.Progress", Killed)
        with pytest.raises(KeyboardInterrupt):
            warm_reward(params)
    with caplog.at_level(logging.INFO, "ratchet"):
        warm_reward(params)
    updates = [said.partition(" (")[0] for said in caplog.messages if said.startswith("warm_reward ")]
    assert updates == ["warm_reward 9/10", "warm_reward 10/10"]


def test_a_training_that_diverges_says_what_to_lower(params: Params) -> None:
    wild = params.warm_reward.model_copy(update={"learning_rate": 1e30})
    said = r"warm_reward: the loss of update 2 is (nan|inf); lower the learning rate in params\.yaml"
    with pytest.raises(StageError, match=said):
        warm_reward(params.model_copy(update={"warm_reward": wild}))
    assert not (SEED / "reward").exists()


def test_layers_that_the_base_does_not_have_are_not_skipped(params: Params) -> None:
    tune = params.tune.model_copy(update={"skip_layers": 100})
    with pytest.raises(ParamsError, match=r"tune\.skip_layers = 100: the base has \d+ layers; skip fewer"):
        warm_reward(params.model_copy(update={"tune": tune}))


@pytest.mark.parametrize("by_itself", [True, False])
def test_a_machine_that_does_not_multiply_bfloat16_is_told_so(
    params: Params, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, by_itself: bool
) -> None:
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx2": True, "avx512_bf16": by_itself})
    numerics = params.numerics.model_copy(update={"dtype": "bfloat16"})
    with caplog.at_level(logging.WARNING, "ratchet"):
        warm_reward(params.model_copy(update={"numerics": numerics}))
    told = [said for said in caplog.messages if said.startswith("numerics.dtype = bfloat16")]
    assert len(told) == (0 if by_itself else 2)  # by each member


@pytest.mark.parametrize(
    ("method", "field", "asked", "began"),
    [
        ("lora", "method", "full", "lora"),
        ("lora", "rank", 8, 4),
        ("lora", "alpha", 16, 8),
        ("lora", "skip_layers", 2, 1),
        ("full", "skip_layers", 0, 1),
    ],
)
def test_a_champion_goes_on_only_as_it_began(
    params: Params, base: Path, method: Method, field: str, asked: object, began: object
) -> None:
    champion = STATE / "reward"
    champion.mkdir()
    save_tuned(tunable(load_base(str(base), "float32", 5), Tuning(method, 4, 8, 1), 0), champion)
    tune = params.tune.model_copy(update={"method": method, field: asked})
    with pytest.raises(ParamsError) as refused:
        train_reward(params.model_copy(update={"tune": tune}))
    found = f"{champion} was trained with {began!r}"
    assert str(refused.value) == f"tune.{field} = {asked!r}: {found}, and goes on as it began; set tune.{field} back"
