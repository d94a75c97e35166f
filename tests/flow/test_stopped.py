"""A round stopped at any instant goes on, and ends as an undisturbed one does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from tests.flow.conftest import Workspace

HOOK = """#!/bin/sh
# Once for each commit: kill -9 of the whole round, in the middle of git.
once=.ratchet/killed-{hook}-$(git rev-list --count HEAD)
[ -e "$once" ] || {{ touch "$once"; kill -9 0; }}
"""


@pytest.mark.parametrize("group", [True, False], ids=["with its stage", "alone"])
def test_killed_in_a_stage(workspace: Workspace, two_rounds: Workspace, group: bool) -> None:
    with workspace.start("round", TOY_HANG="train") as process:
        stage = _hanging(workspace)
        second = workspace.ratchet("round")
        assert second.returncode == 2
        assert f"ratchet: round-0001 (process {process.pid} on " in second.stderr
        assert f"end it with `kill {process.pid}`" in second.stderr
        explored = (workspace.root / ".ratchet/logs/explore.log").stat().st_mtime_ns

        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
        process.communicate()
        _gone(stage)

    assert "unfinished; done: base, found, " in workspace.ratchet("status").stdout
    done = workspace.ratchet("round")
    assert done.returncode == 0, done.stderr
    assert (workspace.root / ".ratchet/logs/explore.log").stat().st_mtime_ns == explored
    _assert_as_undisturbed(workspace, two_rounds)


def test_terminated(used: Workspace) -> None:
    with used.start("round", TOY_HANG="explore") as process:
        stage = _hanging(used)
        process.terminate()
        _, said = process.communicate()
        _gone(stage)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "ratchet: interrupted; `ratchet round` goes on from here"
    done = used.ratchet("round")
    assert done.returncode == 0, done.stderr


def test_killed_in_and_after_every_commit(workspace: Workspace, two_rounds: Workspace) -> None:
    for hook in ("pre-commit", "post-commit"):
        workspace.write(f".git/hooks/{hook}", HOOK.format(hook=hook))
        (workspace.root / ".git/hooks" / hook).chmod(0o755)
    codes = []
    while 0 not in codes and len(codes) < 10:
        done = workspace.ratchet("round")
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL] * 6 + [0], done.stderr
    _assert_as_undisturbed(workspace, two_rounds)


def _assert_as_undisturbed(workspace: Workspace, two_rounds: Workspace) -> None:
    trees = workspace.git("log", "--format=%T %s").splitlines()
    assert trees == two_rounds.git("log", "--format=%T %s").splitlines()[2:]
    assert workspace.git("rev-parse", "HEAD~1") == workspace.git("rev-parse", "round-0001^{commit}")
    assert workspace.git("status", "--porcelain") == ""


def _hanging(workspace: Workspace) -> psutil.Process:
    file = workspace.root / ".ratchet/hanging"
    _until(lambda: file.exists() and file.read_text() != "")
    return psutil.Process(int(file.read_text()))


def _gone(process: psutil.Process) -> None:
    _until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
