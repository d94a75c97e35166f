"""A real small workspace: git, DVC, five quick stages at the paths of the real ones, one Prefect server for all."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from workspace import CHECKOUT, Workspace

from flows.servers import prefect_server

TOY = Path(__file__).parent / "toy"


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """A shell's background job ignores SIGINT, and its children would too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
    workspace.write("bases/tiny/weights", "base")  # a model is a folder that no commit has
    workspace.git("init", "--quiet", "--initial-branch=main")
    workspace.write(".git/info/exclude", "/bases/\n")
    workspace.git("add", ".")
    workspace.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "-m", "A workspace")
    return workspace


@pytest.fixture(scope="session")
def two_rounds(tmp_path_factory: pytest.TempPathFactory, fresh: Workspace, server: str) -> Workspace:
    """A workspace after two undisturbed rounds. Copy it, do not change it."""
    workspace = Workspace(
        fresh.copy(tmp_path_factory.mktemp("two") / "workspace").root, fresh.env | {"PREFECT_API_URL": server}
    )
    done = workspace.ratchet("improve", "--rounds", "2")
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
