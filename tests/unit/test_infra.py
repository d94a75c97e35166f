"""What installs: scripts, silent where a program is, with one line that says what to do where it cannot be; make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from models.weights import DOWNLOADS

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


def test_on_ubuntu_it_says_which_browser_to_install(programs: Path) -> None:
    """There apt-get has no Chromium."""
    for name in ("apt-get", "grep"):  # grep: a system whose name is what it is asked for
        (programs / name).symlink_to("/bin/true")
    done = _run("chromium.sh", programs)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("setup: Ubuntu has Chromium as a snap only: install Google Chrome (https://dl.google.com/")
    assert line.endswith("or export RATCHET_CHROMIUM=/path/to/chromium")


def test_text_weights_that_are_others_are_said_in_a_line(tmp_path: Path) -> None:
    weights = tmp_path / DOWNLOADS / "SmolLM2-135M-Instruct.Q4_1.gguf"
    weights.parent.mkdir(parents=True)
    weights.write_text("others")
    command, env = [sys.executable, "-m", "models.weights"], os.environ | {"PYTHONPATH": str(INFRA.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert re.match(r"setup: \.ratchet/downloads/SmolLM2.*: sha256 .*; delete it and run `make setup`$", line)


@pytest.fixture
def checkout(programs: Path) -> Path:
    """What make needs of a checkout that is set up, with vLLM for CPUs."""
    for name in ("make", "sed"):
        (programs / name).symlink_to(str(shutil.which(name)))
    checkout = programs / "checkout"
    shutil.copytree(INFRA, checkout / "infra")
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copyfile(INFRA.parent / name, checkout / name)
    (checkout / ".venv").mkdir()
    (checkout / ".venv/pyvenv.cfg").write_text(f"home = /usr/bin\ncommand = python3.11 -m venv {checkout}/.venv\n")
    (checkout / ".ratchet/vllm").mkdir(parents=True)
    for name in (".venv/.ready", ".ratchet/vllm/.ready-cpu"):
        (checkout / name).touch()
    return checkout


def _would_do(target: str, checkout: Path) -> str:
    make, env = str(checkout.parent / "make"), {"PATH": str(checkout.parent)}
    done = subprocess.run([make, "-n", target], cwd=checkout, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_an_environment_of_another_place_is_made_anew(checkout: Path) -> None:
    """It has that place in it: its programs would run the code of the checkout that this one was copied from."""
    assert "-m venv" not in _would_do("check", checkout)
    moved = checkout.rename(checkout.with_name("moved"))
    made = _would_do("check", moved)
    assert f"setup: .venv was made for {checkout}/.venv: making it anew" in made
    assert "rm -rf .venv" in made
    (checkout.parent / "linked").mkdir()
    moved.rename(checkout)
    for path in checkout.iterdir():
        (checkout.parent / "linked" / path.name).symlink_to(path)
    assert "-m venv" not in _would_do("check", checkout.parent / "linked")


def test_vllm_of_the_other_kind_is_made_anew(checkout: Path) -> None:
    """As when a driver is installed."""
    assert "-m venv" not in _would_do("vllm", checkout)
    (checkout.parent / "nvidia-smi").symlink_to("/bin/true")
    made = _would_do("vllm", checkout)
    assert "-m venv --clear .ratchet/vllm" in made
    assert "infra/vllm/cuda.lock" in made
