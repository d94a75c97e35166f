"""A whole round of two models of different classes, whole layers trained: a Qwen2.5-VL agent, an Idefics3 reward model.

Both are small and random, and start from local directories; pages, processors and tools are the real ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from checkout import Checkout, small_clone
from safetensors.torch import load_file
from tiny import build_tiny_base, build_tiny_qwen

from models.network import load_base
from models.tuning import WHOLE, method_of
from tasks.files import digest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
SMALL = {
    "tune": {"method": "full", "skip_layers": 1},
    "demonstrate": {"per_goal": 16, "calibration": 1},
    "rehearse": {"exercises": 0},
    "warm_agent": {"updates": 200, "batch_rows": 4, "learning_rate": 0.003},  # so that it has something to propose
    "warm_reward": {"updates": 4},
    "propose": {"per_goal": 3},
    "explore": {"candidates": 4, "balance": 1},
    "filter": {"accept": 0.0, "min_step": 0.0},
    "attack": {"steps": 4},
    "train_reward": {"updates": 2},
    "train_agent": {"updates": 2},
    "evaluate": {"per_goal": 8, "looks": 1},
    "validate": {"min_positive": 0.0, "max_positive": 1.0},
}
GOAL = {
    "id": "click-test-2",
    "world": "environments.miniwob:MiniWoB",
    "page": "click-test-2",
    "tier": 1,
    "max_steps": 1,  # what follows a wrong step no demonstration shows
}
ROLES = ("agent", "reward")
CHAMPIONS, CHALLENGERS = Path("data/seed/state"), Path("data/round")  # of the first round


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bases")
    return {"agent": build_tiny_qwen(folder / "qwen"), "reward": build_tiny_base(folder / "idefics3")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, bases: dict[str, Path]) -> Checkout:
    """A workspace after its first round."""
    starts = {"base": {role: str(base) for role, base in bases.items()}}
    checkout = small_clone(tmp_path_factory.mktemp("round") / "workspace", {**starts, **SMALL}, [GOAL])
    checkout.run("ratchet", "round")
    return checkout


def test_the_round_is_whole(made: Checkout) -> None:
    assert made.run("git", "tag").split() == ["round-0001"]
    assert made.run("git", "status", "--porcelain") == ""
    locked = yaml.safe_load(made.run("git", "show", "round-0001:dvc.lock"))["stages"]
    assert locked.keys() == yaml.safe_load((made.root / "dvc.yaml").read_text())["stages"].keys()
    assert made.json("data/state/curriculum.json")["round"] == 2
    assert set(made.json("data/round/decision.json")) == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_each_model_is_of_its_base_in_whole_layers(made: Checkout, bases: dict[str, Path], role: str) -> None:
    base = load_base(str(bases[role]), "float32", 5).model.state_dict()
    assert made.json("data/seed/base/bases.json")[role] == {"model": str(bases[role]), "digest": digest(bases[role])}
    champion, challenger = made.root / CHAMPIONS / role, made.root / CHALLENGERS / role
    before, after = load_file(champion / WHOLE), load_file(challenger / WHOLE)
    assert method_of(champion) == "full"
    assert {name: weight.shape for name, weight in after.items()} == {name: base[name].shape for name in before}
    assert all((before[name] != after[name]).any() for name in before)


def test_the_lineage_of_both_models_names_their_bases(made: Checkout, bases: dict[str, Path]) -> None:
    for role in ROLES:
        lineage = made.run("ratchet", "lineage", f"ratchet-{role}@champion")
        assert all(f"base.{one} = {bases[one]}" in lineage for one in ROLES)


def test_the_reward_models_judged_what_the_agents_did(made: Checkout) -> None:
    judged = made.json("data/round/evaluation/judgements.json")
    assert {judgement["source"] for judgement in judged} == {"pairs", "live"}
    assert all(0 < judgement[model] < 1 for judgement in judged for model in ("champion", "challenger"))
    episodes = made.json("data/round/evaluation/episodes.json")
    solved = made.json("data/round/metrics.json")["agent"]["champion"]["overall"]["solved"]
    assert solved == sum(episode["champion"] for episode in episodes)


def test_a_second_round_starts_from_where_the_first_ended(made: Checkout) -> None:
    ended = yaml.safe_load(made.run("git", "show", "round-0001:dvc.lock"))["stages"]["decide"]["outs"]
    after = made.copy(made.root.with_name("second"))
    after.run("ratchet", "round")
    assert after.run("git", "tag").split() == ["round-0001", "round-0002"]
    [state] = yaml.safe_load(after.run("git", "show", "round-0002:data/state.dvc"))["outs"]
    assert state["md5"] in {out["md5"] for out in ended}
    assert after.json("data/state/curriculum.json")["round"] == 3
