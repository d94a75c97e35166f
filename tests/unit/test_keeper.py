"""What a keeper keeps gets time to end well, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from environments import keeper

# It takes the time to save when it is told to end, and so does what it has started, which outlives it.
PROGRAM = """
trap "echo saved; exit" TERM
(trap "sleep 0.3; echo freed; exit" TERM; echo ready >"$1"; while :; do sleep 0.1; done) &
wait
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    os.mkfifo(tmp_path / "ready")
    return ["sh", "-c", PROGRAM, "sh", str(tmp_path / "ready")]


def _family(parent: int, ready: Path) -> list[psutil.Process]:
    assert ready.read_text() == "ready\n"
    return psutil.Process(parent).children(recursive=True)


def _assert_gone(family: list[psutil.Process], log: Path) -> None:
    _, alive = psutil.wait_procs(family, timeout=60)
    assert len(family) >= 2
    assert not alive
    assert {"freed", "saved"} <= set(log.read_text().split())


def test_it_ends_when_its_input_is_closed(command: list[str], tmp_path: Path) -> None:
    log = tmp_path / "logs" / "log.txt"
    with keeper.start(command, log, os.environ) as kept:
        family = _family(kept.pid, tmp_path / "ready")
    _assert_gone(family, log)


def test_it_ends_when_who_started_it_is_killed(command: list[str], tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    program = (
        f"import os, pathlib, sys; from environments import keeper; "
        f"kept = keeper.start({command!r}, pathlib.Path({str(log)!r}), os.environ); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as starter:
        family = _family(starter.pid, tmp_path / "ready")
        starter.send_signal(signal.SIGKILL)
    _assert_gone(family, log)


def test_two_that_share_a_log_both_write_it(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    for word in ("first", "second"):
        with keeper.start(["sh", "-c", f"echo {word}; cat"], log, os.environ) as kept:
            kept.wait(timeout=60)
    assert log.read_text() == "first\nsecond\n"
