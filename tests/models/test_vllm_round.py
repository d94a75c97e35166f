"""A whole round on vLLM, from seeding to promotion: a tiny base, small params, a server for each stage that asks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from checkout import CHECKOUT, Checkout, small_clone
from tiny import SERVABLE, build_tiny_base

from tasks.files import digest

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(2400)]
SMALL = {
    "engine": {"kind": "vllm"},
    "tune": {"skip_layers": 0},
    "demonstrate": {"per_goal": 16},
    "rehearse": {"exercises": 0},
    "warm_agent": {"updates": 200, "batch_rows": 4, "learning_rate": 0.01},  # so that it has something to propose
    "warm_reward": {"updates": 4},
    "propose": {"per_goal": 3},
    "explore": {"method": "best_of_n", "paths": 8},  # their steps are left to the stage score
    "filter": {"accept": 0.0, "min_step": 0.0},
    "train_reward": {"updates": 2},
    "train_agent": {"updates": 2},
    "evaluate": {"per_goal": 1},
    "validate": {"min_positive": 0.0, "max_positive": 1.0},
}
GOAL = {
    "id": "click-test-2",
    "world": "environments.miniwob:MiniWoB",
    "page": "click-test-2",
    "tier": 1,
    "max_steps": 1,  # what follows a wrong step no demonstration shows
}
CHAMPIONS, CHALLENGERS = Path("data/seed/state"), Path("data/round")  # of the first round
ADAPTERS = {
    "explore": [CHAMPIONS / "agent", CHAMPIONS / "reward"],
    "score": [CHAMPIONS / "reward"],
    "evaluate": [folder / role for folder in (CHAMPIONS, CHALLENGERS) for role in ("agent", "reward")],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A workspace after its first round."""
    assert (CHECKOUT / ".ratchet/vllm").exists(), "run `make vllm`"
    folder = tmp_path_factory.mktemp("round")
    base = build_tiny_base(folder / "base", SERVABLE)
    checkout = small_clone(folder / "workspace", {"base": {"agent": str(base), "reward": str(base)}, **SMALL}, [GOAL])
    (checkout.root / ".ratchet").mkdir()
    (checkout.root / ".ratchet/vllm").symlink_to(CHECKOUT / ".ratchet/vllm")
    checkout.run("ratchet", "round")
    return checkout


@pytest.mark.parametrize("stage", ADAPTERS)
def test_a_server_had_the_checkpoints_of_the_stage_and_answered(made: Checkout, stage: str) -> None:
    """By the server's own log. The names have the checkpoints' hashes, and a part that is new each time."""
    log = (made.root / f".ratchet/logs/vllm-{stage}.log").read_text()
    names = re.findall(r"Loaded new LoRA adapter: name '(\S+)-\w+'", log)
    assert sorted(names) == sorted(f"{path.name}-{digest(made.root / path)}" for path in ADAPTERS[stage])
    assert '"POST /inference/v1/generate HTTP/1.1" 200 OK' in log
    assert not re.search(r'"POST \S+ HTTP/1.1" [45]', log)


def test_the_round_is_whole(made: Checkout) -> None:
    assert made.run("git", "tag").split() == ["round-0001"]
    assert made.run("git", "status", "--porcelain") == ""
    assert made.run("git", "rev-parse", "HEAD~1") == made.run("git", "rev-parse", "round-0001^{commit}")
    locked = yaml.safe_load(made.run("git", "show", "round-0001:dvc.lock"))["stages"]
    assert locked.keys() == yaml.safe_load((made.root / "dvc.yaml").read_text())["stages"].keys()
    assert all(locked[stage]["params"]["params.yaml"]["engine.kind"] == "vllm" for stage in ADAPTERS)
    next_state = yaml.safe_load((made.root / "data/state.dvc").read_text())["outs"][0]["md5"]
    assert next_state in {out["md5"] for out in locked["decide"]["outs"]}
    assert made.json("data/state/curriculum.json")["round"] == 2
