"""Whole rounds on the embedded base, small: real pages, real models, real git, DVC, Prefect and MLflow."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from checkout import CHECKOUT, Checkout, goal_rows, small_clone

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
SMALL = {
    "engine": {"workers": 2},
    "demonstrate": {"per_goal": 2, "calibration": 1},
    "rehearse": {"exercises": 2},
    "warm_agent": {"updates": 4},
    "warm_reward": {"updates": 3},
    "propose": {"per_goal": 2},
    "explore": {"candidates": 4},
    "filter": {"accept": 0.0, "min_step": 0.0},
    "attack": {"steps": 4},
    "train_reward": {"updates": 3, "batch_rows": 2},
    "train_agent": {"updates": 10, "batch_rows": 2},
    "evaluate": {"per_goal": 1, "pairs_per_goal": 1, "looks": 1},
    "validate": {"min_positive": 0.05, "max_positive": 0.95},
}
GOALS = goal_rows("click-button", "click-option")
EXPLORED = "explore-*/[!.]*/steps-*.parquet"  # of an instance that is finished, in the stage's scratch folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A workspace after its first round, which was killed twice: while it explored, and while it trained the agent."""
    checkout = small_clone(tmp_path_factory.mktemp("rounds") / "made", SMALL, GOALS)
    downloads = CHECKOUT / ".ratchet/downloads"
    if downloads.exists():
        shutil.copytree(downloads, checkout.root / ".ratchet/downloads")
    work = checkout.root / ".ratchet/work"
    checkout.kill_when(lambda: any(work.glob(EXPLORED)))
    kept = len(list(work.glob(EXPLORED)))
    assert kept
    checkout.kill_when(lambda: any(work.glob("train_agent-*/checkpoint.safetensors")))
    log = (checkout.root / ".ratchet/logs/explore.log").read_text()
    assert re.search(rf"explore: {kept} of \d+ were finished before", log)
    checkout.run("ratchet", "round")
    log = (checkout.root / ".ratchet/logs/train_agent.log").read_text()
    assert "train_agent: 20 readings of" in log
    assert "train_agent 1/10 " not in log, "it began anew"
    return checkout


def test_a_killed_round_leaves_a_tag_a_decision_figures_and_the_next_state(made: Checkout) -> None:
    assert made.run("git", "tag").split() == ["round-0001"]
    assert made.run("git", "status", "--porcelain") == ""
    metrics = made.json("data/round/metrics.json")
    decision = made.json("data/round/decision.json")
    assert set(metrics) == {"agent", "reward"} == set(decision)
    episodes = made.json("data/round/evaluation/episodes.json")
    assert len(episodes) == len(GOALS) * SMALL["evaluate"]["per_goal"]
    assert made.json("data/state/curriculum.json")["round"] == 2


def test_its_lineage_goes_back_to_the_demonstrations_and_the_base(made: Checkout) -> None:
    lineage = made.run("ratchet", "lineage", "round-0001")
    assert "demonstrate" in lineage
    assert "base" in lineage


@pytest.fixture(scope="module")
def clone(made: Checkout) -> Checkout:
    """A fresh clone of it, at the round's tag, with the data from the remote."""
    clone = Checkout(made.root.with_name("clone"))
    subprocess.run(["git", "clone", "-q", str(made.root), str(clone.root)], check=True)
    clone.run("dvc", "remote", "add", "-f", "--local", "local", str(made.root / ".ratchet/remote"))
    clone.run("git", "checkout", "-q", "round-0001")
    clone.run("dvc", "pull", "-q")
    return clone


def test_on_a_fresh_clone_it_is_up_to_date(clone: Checkout) -> None:
    assert "up to date" in clone.run("dvc", "repro")


def test_on_a_fresh_clone_three_workers_make_it_again_byte_for_byte(made: Checkout, clone: Checkout) -> None:
    """Undisturbed, and with another number of them than made it."""
    shutil.copytree(made.root / ".ratchet/downloads", clone.root / ".ratchet/downloads")
    params = clone.root / "params.yaml"
    params.write_text(params.read_text().replace("workers: 2", "workers: 3"))
    clone.run("dvc", "repro", "-f")
    assert clone.run("git", "diff", "--name-only").split() == ["params.yaml"]  # so not dvc.lock
