"""A checkout that tests run commands in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Workspace:
    """A checkout in a temporary directory, and the commands a person would give in it."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def ratchet(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "flows.cli", *arguments, **env)

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """The command in a process group of its own, to be killed as a whole."""
        return subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *arguments],
            cwd=self.root,
            env=self._env(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=self._env(env),
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )

    def recipe(self, heading: str, *renamed: tuple[str, str]) -> None:
        """Follow the commands that infra/README.md gives under a heading."""
        text = (CHECKOUT / "infra/README.md").read_text().partition(f"**{heading}")[2]
        script = "\n".join(re.findall(r"^    (.+)$", text.partition("\n\n**")[0], re.MULTILINE))
        for old, new in renamed:
            script = script.replace(old, new)
        done = self.run("sh", "-ec", script)
        assert done.returncode == 0, done.stderr

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def dvc(self, *arguments: str) -> str:
        done = self.run(sys.executable, "-m", "dvc", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def copy(self, to: Path) -> Workspace:
        shutil.copytree(self.root, to, symlinks=True)
        return Workspace(to, self.env)

    def _env(self, more: dict[str, str]) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PYTHONPATH": str(CHECKOUT), "PATH": path, **self.env, **more}
