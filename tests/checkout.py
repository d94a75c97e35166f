"""A clone of this checkout as it stands, with small params, for whole rounds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).parents[1]


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


def goal_rows(*ids: str) -> list[dict[str, Any]]:
    """These goals as the checkout's goal files have them."""
    files = sorted((CHECKOUT / "data/goals").glob("*.yaml"))
    return [goal for file in files for goal in yaml.safe_load(file.read_text()) if goal["id"] in ids]


def small_clone(root: Path, changes: Mapping[str, Mapping[str, Any]], goals: Sequence[Mapping[str, Any]]) -> Checkout:
    """A clone with sections of its params changed and other starter goals, committed with all that is not committed."""
    subprocess.run(["git", "clone", "-q", str(CHECKOUT), str(root)], check=True)
    _bring_along(root)
    params = yaml.safe_load((root / "params.yaml").read_text())
    for section, values in changes.items():
        params[section] |= values
    (root / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    (root / "data/goals/starter.yaml").write_text(yaml.safe_dump(goals))
    checkout = Checkout(root)
    checkout.run("git", "add", ".")
    checkout.run("git", "commit", "-qm", "Make it small")
    return checkout


def _bring_along(root: Path) -> None:
    """What is changed and new here goes into a clone: its rounds are to run the code that is being tested."""
    if changed := _git("-c", "diff.noprefix=false", "diff", "HEAD", "--binary", "--no-ext-diff", "--no-color"):
        subprocess.run(["git", "apply"], cwd=root, input=changed, check=True)
    for name in _git("ls-files", "--others", "--exclude-standard", "-z").decode().split("\0")[:-1]:
        if not name.endswith("/"):  # a repository of its own
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, root / name, follow_symlinks=False)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout
