"""A round stopped at any instant goes on, and ends as an undisturbed one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from workspace import Workspace

pytestmark = pytest.mark.slow

# Once for each commit it is about: kill -9 of the whole round, in the middle of git.
HOOK = """#!/bin/sh
commits=$(git rev-list --count HEAD)
case "$commits" in {at}) ;; *) exit 0 ;; esac
once=.ratchet/killed-{hook}-$commits
[ -e "$once" ] || {{ touch "$once"; kill -9 0; }}
"""
ONLY_THE_SEED = "! git diff --cached --name-only | grep -q decision.json"


def test_stopped_in_stages(workspace: Workspace, two_rounds: Workspace, tmp_path: Path) -> None:
    with _hang_in("train", workspace) as process:
        second = workspace.ratchet("round")
        assert second.returncode == 2
        assert f"ratchet: round-0001 (process {process.pid} on " in second.stderr
        assert f"end it with `kill {process.pid}`" in second.stderr
        assert workspace.ratchet("status").stdout == "round-0001: under way, in 'train'\n"
        os.killpg(process.pid, signal.SIGKILL)
    assert "round-0001: stopped in 'train'" in workspace.ratchet("status").stdout
    explored = (workspace.root / ".ratchet/logs/explore.log").stat().st_mtime_ns
    _assert_can_be_given_up(workspace.copy(tmp_path / "given up"))

    with _hang_in("train", workspace) as process:
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 130

    with _hang_in("decide", workspace, SHELL="/bin/sh") as process:
        process.terminate()  # alone: its stage must not work on, though a shell stands between the two

    done = workspace.ratchet("round")
    assert done.returncode == 0, done.stderr
    assert (workspace.root / ".ratchet/logs/explore.log").stat().st_mtime_ns == explored
    _assert_as_undisturbed(workspace, two_rounds)


def test_killed_in_and_after_commits(workspace: Workspace, two_rounds: Workspace) -> None:
    """Before the commit of the round is made, after it (so before its tag), and after that of the next state."""
    for hook, at in {"pre-commit": "2", "post-commit": "3|4"}.items():
        workspace.write(f".git/hooks/{hook}", HOOK.format(hook=hook, at=at))
        (workspace.root / ".git/hooks" / hook).chmod(0o755)
    codes = []
    while 0 not in codes and len(codes) < 10:
        done = workspace.ratchet("round")
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL] * 3 + [0], done.stderr
    _assert_as_undisturbed(workspace, two_rounds)


def test_params_edited_while_stages_run_hold_for_all_of_them(workspace: Workspace) -> None:
    """Of the seed and of the round: what was made before they were edited is made again."""
    workspace.write("bases/small/weights", "small")
    edits = {"found": ["params.yaml", "bases/tiny", "bases/small"], "train": ["params.yaml", "seed: 0", "seed: 1"]}
    done = workspace.ratchet("round", TOY_EDIT=json.dumps(edits))
    assert done.returncode == 0, done.stderr
    assert "\nbase: what they read was edited meanwhile, so they are made again\n" in done.stderr
    assert "\nexplore: what they read was edited meanwhile, so they are made again\n" in done.stderr
    assert "bases/small" in workspace.git("show", "round-0001~1:params.yaml")
    assert workspace.text("data/seed/base/weights") == "small"
    assert "seed: 1" in workspace.git("show", "round-0001:params.yaml")
    assert "seed: 1" in workspace.text("data/round/explored/shard")
    workspace.git("checkout", "--quiet", "round-0001")
    workspace.dvc("checkout")
    assert "up to date" in workspace.dvc("status")


def test_what_a_stage_reads_edited_while_it_runs_makes_it_again(workspace: Workspace) -> None:
    """DVC would note the new beside what the old made, and give that to whoever asks for the new."""
    done = workspace.ratchet("round", TOY_EDIT=json.dumps({"explore": ["params.yaml", "paths: 2", "paths: 3"]}))
    assert done.returncode == 0, done.stderr
    assert "stage explore ended with exit status 75: explore: edited while explore ran; " in done.stderr
    assert done.stderr.count("round-0001  explore  (1 of 3)") == 1
    assert "paths: 3" in workspace.text("data/round/explored/shard")
    cached = list((workspace.root / ".dvc/cache/runs").rglob("*"))
    kept = [file.read_text() for file in cached if file.is_file() and "explored" in file.read_text()]
    assert len(kept) == 2  # of explore and of train
    assert "paths: 3" in workspace.git("show", "round-0001:params.yaml")
    workspace.git("checkout", "--quiet", "round-0001")
    workspace.dvc("checkout")
    assert "up to date" in workspace.dvc("status")


def test_goals_edited_while_stages_run_hold_for_all_of_them(workspace: Workspace) -> None:
    goal = "data/goals/click.txt"
    done = workspace.ratchet("round", TOY_EDIT=json.dumps({"train": [goal, "click", "press"]}))
    assert done.returncode == 0, done.stderr
    assert "\nexplore: what they read was edited meanwhile, so they are made again\n" in done.stderr
    assert f"\nnot committed, so the tag will not carry it: {goal}\n" in done.stderr
    assert "data/goals" not in workspace.dvc("status", "explore")


def test_params_edited_after_a_refused_commit_hold_too(workspace: Workspace) -> None:
    """What git or a hook of it refuses is mended, params may be edited meanwhile, and the round goes on."""
    hook = workspace.root / ".git/hooks/pre-commit"
    workspace.write("bases/small/weights", "small")
    edits = [("exit 1", "bases/tiny", "bases/small"), (ONLY_THE_SEED, "seed: 0", "seed: 1")]
    for refusal, before, after in edits:
        workspace.write(".git/hooks/pre-commit", f"#!/bin/sh\n{refusal}\n")
        hook.chmod(0o755)
        assert "git commit failed" in workspace.ratchet("round").stderr
        workspace.write("params.yaml", workspace.text("params.yaml").replace(before, after))
    hook.unlink()
    done = workspace.ratchet("round")
    assert done.returncode == 0, done.stderr
    assert workspace.text("data/seed/base/weights") == "small"
    assert "seed: 1" in workspace.text("data/round/explored/shard")
    workspace.git("checkout", "--quiet", "round-0001")
    workspace.dvc("checkout")
    assert "up to date" in workspace.dvc("status")


def _assert_can_be_given_up(workspace: Workspace) -> None:
    workspace.recipe("A round that was stopped")
    assert workspace.git("status", "--porcelain", "--", "dvc.lock", "data/state.dvc", "data/round/.gitignore") == ""
    assert workspace.ratchet("status").stdout == "round-0001: to come; start it with `ratchet round`\n"


def _assert_as_undisturbed(workspace: Workspace, two_rounds: Workspace) -> None:
    trees = workspace.git("log", "--format=%T %s").splitlines()
    assert trees == two_rounds.git("log", "--format=%T %s").splitlines()[2:]
    assert workspace.git("rev-parse", "HEAD~1") == workspace.git("rev-parse", "round-0001^{commit}")
    assert workspace.git("status", "--porcelain") == ""


@contextmanager
def _hang_in(stage: str, workspace: Workspace, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A round that stands still in a stage; by the end of the block both must be gone."""
    file = workspace.root / ".ratchet/hanging"
    file.unlink(missing_ok=True)
    with workspace.start("round", TOY_HANG=stage, **env) as process:
        _until(lambda: file.exists() and file.read_text() != "")
        yield process
        process.communicate()
        pid = int(file.read_text())
        _until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 400
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
