"""A temporary folder goes when it is closed, and with the next one when its process was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from environments.home import Home

KILLED = """
import os, signal
from environments.home import Home
home = Home("thing")
(home.path / "file").write_text("left")
print(home.path, flush=True)
{then}
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def _left_by_a_killed_process() -> Path:
    program = [sys.executable, "-c", KILLED.format(then="os.kill(os.getpid(), signal.SIGKILL)")]
    killed = subprocess.run(program, check=False, stdout=subprocess.PIPE, text=True)
    assert killed.returncode == -signal.SIGKILL
    return Path(killed.stdout.strip())


def test_it_goes_when_it_is_closed(tmp_path: Path) -> None:
    home = Home("thing")
    (home.path / "file").write_text("x")
    assert home.path.parent == tmp_path
    home.close()
    home.close()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_goes_and_what_others_have_stays(tmp_path: Path) -> None:
    left = _left_by_a_killed_process()
    program = [sys.executable, "-c", KILLED.format(then="input()")]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as alive:
        assert alive.stdout is not None
        kept = Path(alive.stdout.readline().strip())
        (tmp_path / "ratchet-thing-else").mkdir()  # nobody's claim lies in it
        first, second = Home("thing"), Home("thing")
        assert not left.exists()
        assert {kept, first.path, second.path, tmp_path / "ratchet-thing-else"} == set(tmp_path.iterdir())
        assert (kept / "file").read_text() == "left"
        alive.communicate("\n")
    assert not kept.exists()


def test_what_is_of_another_kind_stays() -> None:
    left = _left_by_a_killed_process()
    Home("other").close()
    assert (left / "file").read_text() == "left"
