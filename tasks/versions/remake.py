"""A tagged round made again, in a checkout of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from models.weights import DOWNLOADS
from tasks.errors import StageError
from tasks.files import SEED, STATE, WORK
from tasks.versions.graph import LOCK, find_commands, open_repo, remote_errors, stages, stale
from tasks.versions.history import POINTER, commit_of, git

_LENT = (DOWNLOADS, WORK / "vllm", WORK / "browsergym", WORK / "example-app")  # made by make, and no part of a round


@dataclass(frozen=True, slots=True)
class Difference:
    """An output that came out otherwise: md5 and size in bytes, as tagged and as made again."""

    stage: str
    path: str
    tagged: tuple[str, int]
    remade: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Remade:
    """A round made again: the outputs that differ, and for each metric that differs its value then and now."""

    outs: tuple[Difference, ...]
    metrics: dict[str, tuple[float, float]]


def remake(tag: str) -> Remade:
    """Make a round again from its tag, its stages by force and in their order, and compare.

    When it started from the first state, the stages of the seed are made again too whose params and inputs at the tag
    are those that the seed was made from. The code is the tag's.

    Raises:
        WorkspaceError: there is no such tag, or its data is neither in the cache nor in the remote.
        StageError: a stage failed.
    """
    from dvc.exceptions import ReproductionError

    commit_of(tag)
    find_commands()
    shared = _shared()
    workspace = Path.cwd()
    with _checkout(tag), open_repo(shared) as repo:
        _lend(workspace)
        tagged = _outs()
        with remote_errors("pull"):
            repo.pull()
        try:
            for name in _targets():
                repo.reproduce(name, single_item=True, force=True)
        except ReproductionError as error:
            raise StageError(f"{tag}: {error}: {error.__cause__}; its code is at `git show {tag}`") from error
        remade, metrics = _outs(), repo.metrics.diff().get("diff", {})
    outs = (
        Difference(stage, path, was, remade[stage, path])
        for (stage, path), was in tagged.items()
        if (stage, path) in remade and remade[stage, path] != was
    )
    moved = {name: (one["old"], one["new"]) for file in metrics.values() for name, one in file.items()}
    return Remade(tuple(outs), moved)


@contextmanager
def _checkout(tag: str) -> Iterator[None]:
    """A checkout of the tag as the current directory; stages import its code instead of what is installed."""
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="ratchet-") as parent:
        folder = str(Path(parent).resolve() / tag)
        git("worktree", "add", "--quiet", "--detach", folder, tag)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, before]))
        try:
            with chdir(folder):
                yield
        finally:
            os.environ["PYTHONPATH"] = before or ""
            git("worktree", "remove", "--force", folder)


def _lend(workspace: Path) -> None:
    """What rounds use and is a folder of the workspace that no commit has, is there in this checkout too."""
    bases = yaml.safe_load(Path("params.yaml").read_text())["base"].values()
    for folder in (*_LENT, *map(Path, bases)):
        if (workspace / folder).is_dir() and not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.symlink_to(workspace / folder)


def _shared() -> dict[str, Any]:
    """This workspace's cache and remotes, for the other checkout to use; its own settings may not be in git."""
    with open_repo() as repo:
        core = {"remote": repo.config["core"]["remote"]} if "remote" in repo.config["core"] else {}
        return {
            "cache": {"dir": repo.cache.local_cache_dir},
            "remote": dict(repo.config["remote"]),
            "core": core,
        }


def _targets() -> list[str]:
    """The stages of the round; before them, if it started from the seed, those of the seed that read what they did."""
    state = yaml.safe_load(Path(POINTER).read_text())["outs"][0]["md5"]
    from_seed = any(path == str(SEED / STATE.name) and md5 == state for (_, path), (md5, _) in _outs().items())
    edited = stale(seed=True) if from_seed else {}
    return [stage.name for stage in stages() if not stage.seed or (from_seed and stage.name not in edited)]


def _outs() -> dict[tuple[str, str], tuple[str, int]]:
    entries = yaml.safe_load(LOCK.read_text())["stages"]
    return {
        (name, out["path"]): (out["md5"], out.get("size", 0))
        for name, entry in entries.items()
        for out in entry.get("outs", [])
    }
