"""Whole rounds on the embedded base, small: real pages, real models, real git, DVC, Prefect and MLflow."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from checkout import CHECKOUT, Checkout, goal_rows, small_clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
SMALL = {
    "demonstrate": {"per_goal": 2, "calibration": 1},
    "rehearse": {"exercises": 4},
    "warm_agent": {"updates": 12, "batch_rows": 4, "learning_rate": 1e-3},
    "warm_reward": {"updates": 6, "batch_rows": 4},
    "propose": {"per_goal": 2},
    "explore": {"candidates": 4, "balance": 1},
    "filter": {"accept": 0.0, "min_step": 0.0},
    "attack": {"steps": 4},
    "train_reward": {"updates": 3, "batch_rows": 2},
    "train_agent": {"updates": 10, "batch_rows": 2},
    "evaluate": {"per_goal": 2, "pairs_per_goal": 1, "looks": 1},
    "validate": {"min_positive": 0.05, "max_positive": 0.95},
}
GOALS = goal_rows("click-button", "click-option")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A workspace after its first round."""
    checkout = small_clone(tmp_path_factory.mktemp("rounds") / "first", SMALL, GOALS)
    downloads = CHECKOUT / ".ratchet/downloads"
    if downloads.exists():
        shutil.copytree(downloads, checkout.root / ".ratchet/downloads")
    checkout.run("ratchet", "round")
    return checkout


@pytest.fixture(scope="module")
def second(first: Checkout) -> Checkout:
    """The same workspace after an undisturbed second round, in a copy."""
    checkout = first.copy(first.root.with_name("second"))
    checkout.run("ratchet", "round")
    return checkout


def test_a_round_leaves_a_tag_a_decision_figures_and_the_next_state(first: Checkout) -> None:
    assert first.run("git", "tag").split() == ["round-0001"]
    assert first.run("git", "status", "--porcelain") == ""
    metrics = first.json("data/round/metrics.json")
    decision = first.json("data/round/decision.json")
    assert set(metrics) == {"agent", "reward"} == set(decision)
    episodes = first.json("data/round/evaluation/episodes.json")
    assert len(episodes) == len(GOALS) * SMALL["evaluate"]["per_goal"]
    assert first.json("data/state/curriculum.json")["round"] == 2
    lineage = first.run("ratchet", "lineage", "round-0001")
    assert "demonstrate" in lineage
    assert "base" in lineage


def test_on_a_fresh_clone_a_round_is_up_to_date_and_made_again_byte_for_byte(first: Checkout, tmp_path: Path) -> None:
    clone = Checkout(tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", str(first.root), str(clone.root)], check=True)
    clone.run("dvc", "remote", "add", "-f", "--local", "local", str(first.root / ".ratchet/remote"))
    clone.run("git", "checkout", "-q", "round-0001")
    clone.run("dvc", "pull", "-q")
    assert "up to date" in clone.run("dvc", "repro")
    downloads = first.root / ".ratchet/downloads"
    shutil.copytree(downloads, clone.root / ".ratchet/downloads")
    clone.run("dvc", "repro", "-f")
    assert clone.run("git", "diff", "--", "dvc.lock") == ""


def test_killed_in_explore_and_in_train_agent_a_round_ends_with_the_same_hashes(
    first: Checkout, second: Checkout
) -> None:
    killed = first.copy(first.root.with_name("killed"))
    work = killed.root / ".ratchet/work"
    killed.kill_when(lambda: len(list(work.glob("explore-*/[!.]*/steps-*.parquet"))) >= 1)
    kept = [path.parent.name for path in work.glob("explore-*/[!.]*/steps-*.parquet")]
    assert kept
    killed.kill_when(lambda: any(work.glob("train_agent-*/checkpoint.safetensors")))
    explored = (killed.root / ".ratchet/logs/explore.log").read_text()
    assert re.search(rf"explore: {len(kept)} of \d+ were finished before", explored)
    killed.run("ratchet", "round")
    assert (killed.root / "dvc.lock").read_text() == (second.root / "dvc.lock").read_text()
    assert killed.run("git", "tag").split() == ["round-0001", "round-0002"]
    assert killed.json("data/state/curriculum.json") == second.json("data/state/curriculum.json")


def test_the_second_round_starts_from_where_the_first_ended(second: Checkout) -> None:
    state = yaml.safe_load(second.run("git", "show", "round-0002:data/state.dvc"))["outs"][0]["md5"]
    lock = yaml.safe_load(second.run("git", "show", "round-0001:dvc.lock"))["stages"]["decide"]["outs"]
    assert state in {out["md5"] for out in lock}
