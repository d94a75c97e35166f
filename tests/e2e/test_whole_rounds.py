"""Whole rounds on the embedded base, small: real pages, real models, real git, DVC, Prefect and MLflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
CHECKOUT = Path(__file__).parents[2]
SMALL = {
    "demonstrate": {"per_goal": 2},
    "warm_agent": {"updates": 12, "batch_rows": 4, "learning_rate": 1e-3},
    "warm_reward": {"updates": 6, "batch_rows": 4},
    "propose": {"per_goal": 2},
    "explore": {"candidates": 4},
    "filter": {"accept": 0.0},
    "train_reward": {"updates": 3, "batch_rows": 2},
    "train_agent": {"updates": 10, "batch_rows": 2},
    "evaluate": {"per_goal": 2, "pairs_per_goal": 1},
    "validate": {"min_positive": 0.05, "max_positive": 0.95},
}
GOALS = ("click-button", "click-option")


class Checkout:
    """A clone with small params, and the commands a person would give in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *command: str, check: bool = True) -> str:
        with self.start(*command) as process:
            output, _ = process.communicate()
        assert not check or process.returncode == 0, output
        return output

    def start(self, *command: str) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(self.root),
            "GIT_AUTHOR_NAME": "t",
            "GIT_AUTHOR_EMAIL": "t@t",
        }
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=env | {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def json(self, path: str) -> dict[str, object]:
        return json.loads((self.root / path).read_text())

    def copy(self, to: Path) -> Checkout:
        shutil.copytree(self.root, to, symlinks=True)
        return Checkout(to)

    def kill_when(self, ready: Callable[[], bool]) -> None:
        """Start a round and kill -9 its whole process group as soon as ``ready``."""
        with self.start("ratchet", "round") as process:
            while not ready() and process.poll() is None:
                time.sleep(0.05)
            assert process.poll() is None, process.communicate()[0]
            os.killpg(process.pid, signal.SIGKILL)


def _shrink(root: Path) -> None:
    params = yaml.safe_load((root / "params.yaml").read_text())
    for section, values in SMALL.items():
        params[section] |= values
    (root / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    goals = yaml.safe_load((root / "data/goals/starter.yaml").read_text())
    (root / "data/goals/starter.yaml").write_text(yaml.safe_dump([goal for goal in goals if goal["id"] in GOALS]))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A workspace after its first round."""
    root = tmp_path_factory.mktemp("rounds") / "first"
    subprocess.run(["git", "clone", "-q", str(CHECKOUT), str(root)], check=True)
    downloads = CHECKOUT / ".ratchet/downloads"
    if downloads.exists():
        shutil.copytree(downloads, root / ".ratchet/downloads")
    _shrink(root)
    checkout = Checkout(root)
    checkout.run("git", "commit", "-qam", "Make it small")
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
