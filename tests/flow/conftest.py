"""A real small workspace: git, DVC, five quick stages at the paths of the real ones, one Prefect server for all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flows.servers import prefect_server

CHECKOUT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy"


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


@pytest.fixture(scope="session")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home without anyone's git settings."""
    home = tmp_path_factory.mktemp("home")
    return {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "DO_NOT_TRACK": "1"}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a Prefect server for the whole session."""
    home = tmp_path_factory.mktemp("prefect")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("PREFECT_HOME", str(home))
        patch.delenv("PREFECT_API_URL", raising=False)
        prefect_server().wait()
        return os.environ.pop("PREFECT_API_URL")


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]) -> Workspace:
    """A workspace before its first round. Copy it, do not change it."""
    workspace = Workspace(tmp_path_factory.mktemp("fresh") / "workspace", env)
    shutil.copytree(TOY, workspace.root)
    for name in (".dvc/config", ".dvc/.gitignore", ".dvcignore"):
        workspace.write(name, (CHECKOUT / name).read_text())
    workspace.git("init", "--quiet", "--initial-branch=main")
    workspace.git("add", ".")
    workspace.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "-m", "A workspace")
    return workspace


@pytest.fixture(scope="session")
def two_rounds(tmp_path_factory: pytest.TempPathFactory, fresh: Workspace, server: str) -> Workspace:
    """A workspace after two undisturbed rounds. Copy it, do not change it."""
    workspace = Workspace(
        fresh.copy(tmp_path_factory.mktemp("two") / "workspace").root, fresh.env | {"PREFECT_API_URL": server}
    )
    done = workspace.ratchet("round", "--rounds", "2")
    assert done.returncode == 0, done.stderr
    return workspace


@pytest.fixture
def inside(used: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """``used`` as the current directory, for what is called and not run."""
    monkeypatch.chdir(used.root)
    for key, value in used.env.items():
        monkeypatch.setenv(key, value)
    return used


@pytest.fixture
def workspace(tmp_path: Path, fresh: Workspace, server: str) -> Workspace:
    """A workspace of the test's own, before its first round."""
    return Workspace(fresh.copy(tmp_path / "workspace").root, fresh.env | {"PREFECT_API_URL": server})


@pytest.fixture
def used(tmp_path: Path, two_rounds: Workspace) -> Workspace:
    """A workspace of the test's own, after two rounds."""
    return two_rounds.copy(tmp_path / "workspace")
