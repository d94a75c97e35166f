"""A stage and what it reads: what a person edits meanwhile, and what it keeps between attempts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import CHECKOUT
from dvc.repo import Repo

from tasks import propose, stages
from tasks.errors import Edited
from tasks.files import WORK

PINNED = """
import sys
from tasks.params import Numerics
from tasks.stages import pin
pin(Numerics(threads=int(sys.argv[1]), isa="avx2", dtype="float32"))
import os
import torch
print(torch.get_num_threads(), torch.backends.cpu.get_cpu_capability())
print(os.environ.get("ATEN_CPU_CAPABILITY"), os.environ.get("ONEDNN_MAX_CPU_ISA"))
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    shutil.copytree(CHECKOUT / "data/goals", tmp_path / "data/goals")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _edit(path: str, before: str, after: str) -> None:
    text = Path(path).read_text()
    assert before in text
    Path(path).write_text(text.replace(before, after))


def _runs(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Run stage propose, which does nothing but this."""
    monkeypatch.setattr(propose, "run", lambda _params: act())
    stages.run("propose")


@pytest.mark.parametrize(
    ("path", "before", "after", "named"),
    [
        ("params.yaml", "opening: 4", "opening: 3", "propose"),
        ("params.yaml", "accept: 0.85", "accept: 0.9", "filter.accept"),
        ("data/goals/starter.yaml", "click-shape, world", "click-knob, world", "data/goals/starter.yaml"),
    ],
)
def test_what_it_reads_is_edited_meanwhile(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, path: str, before: str, after: str, named: str
) -> None:
    left = workspace / WORK / "work/propose-0"
    left.mkdir(parents=True)
    with pytest.raises(Edited, match=f"^{named}: edited while propose ran, which read it before; run it again$"):
        _runs(monkeypatch, lambda: _edit(path, before, after))
    assert left.exists()  # it may be put back
    _runs(monkeypatch, lambda: None)
    assert not left.exists()


@pytest.mark.usefixtures("workspace")
def test_what_others_read_may_be_edited_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    _runs(monkeypatch, lambda: _edit("params.yaml", "rank: 16", "rank: 8"))


@pytest.mark.usefixtures("workspace")
def test_what_it_keeps_between_attempts_is_named_by_all_that_it_reads() -> None:
    (curriculum := Path("data/state/curriculum.json")).parent.mkdir(parents=True)
    names = [stages.scratch("propose")]
    for edit in (
        lambda: curriculum.write_text("{}"),
        lambda: _edit("params.yaml", "opening: 4", "opening: 3"),
        lambda: _edit("data/goals/starter.yaml", "click-shape, world", "click-knob, world"),
    ):
        edit()
        names.append(stages.scratch("propose"))
    assert len(set(names)) == 4
    _edit("params.yaml", "rank: 16", "rank: 8")
    assert stages.scratch("propose") == names[-1]


@pytest.mark.parametrize("threads", ["1", "64"])  # of a machine with fewer cores too
def test_it_computes_with_the_threads_and_instructions_of_the_params(threads: str) -> None:
    """In a process of its own: torch asks for them when it is imported, and would take all that there are."""
    pinning = ("OMP_NUM_THREADS", "MKL_DYNAMIC", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
    env = {key: value for key, value in os.environ.items() if key not in pinning}
    done = subprocess.run(
        [sys.executable, "-c", PINNED, threads], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [threads, "AVX2", "avx2", "AVX2"]


@pytest.mark.parametrize("act", [Path.touch, Path.unlink])
def test_a_goal_file_that_comes_or_goes_is_an_edit(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]
) -> None:
    file = Path("data/goals/more.yaml" if act is Path.unlink else "data/goals/mine.yaml")
    with pytest.raises(Edited, match=f"^{file}: edited while propose ran"):
        _runs(monkeypatch, lambda: act(file))


@pytest.mark.usefixtures("workspace")
def test_what_editors_python_and_sqlite_leave_among_goals_is_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither to a stage nor to DVC, which would note that the goals changed."""
    shutil.copy(CHECKOUT / ".dvcignore", ".dvcignore")
    Repo.init(no_scm=True).close()
    seen, given = _seen_by_dvc("data/goals"), stages.given("propose")
    assert "data/goals/starter.yaml" in seen
    names = (
        ".starter.yaml.swp",
        "starter.yaml~",
        "#starter.yaml#",
        ".idea/x",
        "__pycache__/x",
        "x.pyc",
        "app/x.db-shm",
    )

    def leave() -> None:
        for file in (Path("data/goals") / name for name in names):
            file.parent.mkdir(exist_ok=True)
            file.write_text("left")

    _runs(monkeypatch, leave)
    assert stages.given("propose") == given
    assert _seen_by_dvc("data/goals") == seen


def _seen_by_dvc(folder: str) -> set[str]:
    with Repo() as repo:
        return {f"{root}/{file}" for root, _, files in repo.dvcignore.walk(repo.fs, folder) for file in files}
