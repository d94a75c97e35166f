"""After a kill: put right the files that git and DVC do not write whole, so that work goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psutil
import yaml

from tasks.files import write_json
from tasks.versions.graph import LOCK, LOCK_COPY, open_repo
from tasks.versions.history import POINTER, git, restore


def mend() -> None:
    """Clear what a killed round may have left half-done. Call it with the workspace's round lock held.

    A running git or DVC of someone else is left alone.
    """
    _drop_git_locks()
    if Path(POINTER).exists() and not _entries(Path(POINTER), "outs"):
        restore(POINTER)
    if LOCK_COPY.exists() and not set(_entries(LOCK_COPY, "stages")) <= set(_entries(LOCK, "stages")):
        os.replace(LOCK_COPY, LOCK)
    _drop_path_locks()


def _entries(path: Path, key: str) -> Any:
    """What a DVC file has under ``key``; nothing when it was cut short."""
    try:
        return yaml.safe_load(path.read_text())[key] or ()
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return ()


def _drop_git_locks() -> None:
    """A killed git leaves lock files that do not say whose they are: they are dead when no git works here."""
    listed = git("worktree", "list", "--porcelain").splitlines()
    places = [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]
    if not any(
        process.info["name"] == "git" and any(_works_in(process, place) for place in places)
        for process in psutil.process_iter(["name"])
    ):
        folder = Path(git("rev-parse", "--absolute-git-dir"))
        shared = Path(git("rev-parse", "--path-format=absolute", "--git-common-dir"))  # by all worktrees
        for lock in (
            folder / "index.lock",
            folder / "HEAD.lock",
            *folder.glob("next-index-*.lock"),
            *shared.glob("refs/**/*.lock"),
        ):
            lock.unlink(missing_ok=True)


def _works_in(process: psutil.Process, folder: str) -> bool:
    try:
        return Path(process.cwd()).is_relative_to(folder)
    except psutil.Error:
        return False


def _drop_path_locks() -> None:
    """DVC drops path locks of dead processes, and takes a later process with the same number for a living one."""
    from dvc.lock import make_lock

    with open_repo() as repo:
        path, guard = Path(repo.tmp_dir) / "rwlock", make_lock(os.path.join(repo.tmp_dir, "rwlock.lock"))
    if not path.exists():
        return
    with guard:
        written = path.stat().st_mtime
        try:
            held = json.loads(path.read_text())
            read = {where: [one for one in by if _alive(one, written)] for where, by in held["read"].items()}
            write = {where: by for where, by in held["write"].items() if _alive(by, written)}
        except (ValueError, KeyError, TypeError):  # cut short
            path.unlink()
        else:
            write_json(path, {"read": {where: by for where, by in read.items() if by}, "write": write})


def _alive(holder: dict[str, Any], written: float) -> bool:
    try:
        return bool(psutil.Process(holder["pid"]).create_time() < written)
    except psutil.Error:
        return False
