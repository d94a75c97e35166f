"""The scripts that install programs: silent where the program is, one line that says what to do where it cannot be."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

INFRA = Path(__file__).parents[2] / "infra"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of programs as the whole of PATH: what the scripts run, and no apt-get."""
    for name in ("sh", "dirname"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def _run(script: str, programs: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(programs / "sh"), str(INFRA / script)]
    return subprocess.run(command, env={"PATH": str(programs), **env}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("adb.sh", r"setup: there is no apt-get: install adb by hand, or .*export RATCHET_ADB=/path/to/adb"),
        ("chromium.sh", r"setup: there is no apt-get: install chromium-headless-shell .* by hand, or export RATCHET_"),
    ],
)
def test_without_a_way_to_install_it_says_what_to_do(programs: Path, script: str, message: str) -> None:
    done = _run(script, programs)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert re.match(message, line)


@pytest.mark.parametrize(
    ("script", "program", "variable"),
    [("adb.sh", "adb", "RATCHET_ADB"), ("chromium.sh", "google-chrome", "RATCHET_CHROMIUM")],
)
def test_a_program_that_is_there_or_named_is_left_alone(
    programs: Path, script: str, program: str, variable: str
) -> None:
    named = _run(script, programs, **{variable: "/somewhere"})
    (programs / program).symlink_to("/bin/true")
    for done in (named, _run(script, programs)):
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
