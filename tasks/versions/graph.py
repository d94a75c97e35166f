"""DVC: the stages of ``dvc.yaml``, what they made, the state between rounds, and the remote."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from tasks.errors import Edited, Interruption, StageError, WorkspaceError
from tasks.files import SEED, STATE, WORK, copy, log_of, write_whole

FILE, LOCK = Path("dvc.yaml"), Path("dvc.lock")
LOCK_COPY = WORK / "dvc.lock"  # as it was before the stage now running


class StageCrash(StageError):
    """A stage ended in a way it did not foresee: running it again may help."""


class RemoteError(WorkspaceError):
    """The remote did not do what was asked of it: asking again may help."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of ``dvc.yaml``. ``git_outs`` are the outputs that git keeps; a seed stage writes under ``data/seed``."""

    name: str
    deps: tuple[str, ...]
    outs: tuple[str, ...]
    git_outs: tuple[str, ...]

    @property
    def seed(self) -> bool:
        """Whether it belongs to the seed, made once before the first round."""
        return bool(self.outs) and all(SEED in Path(out).parents for out in self.outs)


@dataclass(frozen=True)
class Artifact:
    """A file or directory as ``dvc.lock`` has it; ``size`` in bytes."""

    path: str
    md5: str
    size: int


@dataclass(frozen=True)
class StageRecord:
    """What a stage read and wrote when it last ran."""

    name: str
    deps: tuple[Artifact, ...]
    outs: tuple[Artifact, ...]
    params: dict[str, object]


class _Clock:
    """DVC's lock, counting the seconds DVC is without it: those in which a stage's command runs."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._free_since = 0.0
        self.free_s = 0.0

    @property
    def is_locked(self) -> bool:
        return bool(self._lock.is_locked)

    def unlock(self) -> None:
        self._lock.unlock()
        self._free_since = time.monotonic()

    def lock(self) -> None:
        self.free_s += time.monotonic() - self._free_since
        self._lock.lock()

    def __enter__(self) -> None:
        self._lock.lock()

    def __exit__(self, *_: object) -> None:
        self._lock.unlock()


def stages() -> list[Stage]:
    """The stages of ``dvc.yaml``, each after those whose outputs it reads.

    Raises:
        WorkspaceError: there is no DVC project here, or ``dvc.yaml`` cannot be read.
    """
    text = FILE.read_text() if FILE.exists() else ""
    return list(_stages(Path.cwd(), text))


def reproduce(name: str, force: bool = False) -> float | None:
    """Bring one stage up to date. Its command has this process's terminal.

    Returns:
        Seconds the stage's own process took (0.0 when DVC restored its outputs from an earlier run with the same
        inputs), or None when it was up to date.

    Raises:
        StageError: the stage said what is wrong, was interrupted, or lacks an input. Running it again will not help.
        Edited: what it read was edited while it ran, so that DVC has not kept what it made.
        StageCrash: its process ended in another way.
    """
    from dvc.exceptions import DvcException, ReproductionError

    find_commands()
    began = time.time()
    if LOCK.exists():
        write_whole(LOCK_COPY, lambda aside: copy(LOCK, aside))
    with open_repo() as repo:
        repo.lock = clock = _Clock(repo.lock)
        try:
            return clock.free_s if repo.reproduce(name, single_item=True, force=force) else None
        except ReproductionError as error:
            raise _stage_error(name, error.__cause__ or error, began) from error
        except DvcException as error:
            raise _stage_error(name, error, began) from error


def stale(seed: bool) -> dict[str, list[str]]:
    """Stages of the seed, or of the round, whose params or inputs changed since they ran, and the files of those."""
    with open_repo() as repo:
        made = [repo.stage.load_one(name=stage.name) for stage in stages() if stage.seed is seed]
        changed = {stage.name: [path for dep in stage.deps for path in dep.status()] for stage in made}
        return {name: paths for name, paths in changed.items() if paths}


def stage_record(name: str) -> StageRecord:
    """What ``dvc.lock`` says of a stage.

    Raises:
        WorkspaceError: the stage has not run yet.
    """
    with open_repo() as repo:
        stage = repo.stage.load_one(name=name)
        params = [dep for dep in stage.deps if hasattr(dep, "params")]
        deps = tuple(_artifact(dep) for dep in stage.deps if dep not in params)
        outs = tuple(_artifact(out) for out in stage.outs)
        values = {key: value for dep in params for key, value in (dep.hash_info.value or {}).items()}
    if not all(artifact.md5 for artifact in deps + outs):
        raise WorkspaceError(f"{LOCK}: stage {name} is not in it, so it has not run; run `dvc repro -s {name}`")
    return StageRecord(name, deps, outs, values)


def promote(source: Path) -> None:
    """Make the content of ``source`` the state that the next round starts from, and track it.

    Killed at any instant, running it again finishes it.

    Raises:
        WorkspaceError: ``source`` is not there, or DVC cannot track the state.
    """
    if not source.is_dir():
        raise WorkspaceError(f"{source}: not there, and it is the next {STATE}; make it with `dvc repro`")
    write_whole(STATE, lambda aside: copy(source, aside))
    with open_repo() as repo:
        repo.add(str(STATE))


def push(every_round: bool = False) -> int:
    """Copy what DVC tracks to the default remote; of all tagged rounds if asked. Returns the number of files sent.

    Raises:
        WorkspaceError: there is no default remote.
        RemoteError: it cannot be written.
    """
    with open_repo() as repo, remote_errors("push"):
        repo.cloud.get_remote()
        return int(repo.push(all_tags=every_round))


def check_remote() -> None:
    """Find out before a round starts whether it could be pushed.

    Raises:
        WorkspaceError: there is no default remote.
    """
    with open_repo() as repo, remote_errors("round"):
        repo.cloud.get_remote()


def pull() -> int:
    """Fetch what DVC tracks from the default remote and check it out. Returns the number of files fetched.

    Raises:
        WorkspaceError: there is no default remote.
        RemoteError: it lacks something, or cannot be read.
    """
    with open_repo() as repo, remote_errors("pull"):
        repo.cloud.get_remote()
        return int(repo.pull()["stats"]["fetched"])


@contextmanager
def checked_out(rev: str, path: str) -> Iterator[Path]:
    """What DVC has at a path at a git revision, from the cache or the remote, for as long as the block lasts.

    Raises:
        WorkspaceError: DVC tracks no such path there, or its content is in neither.
    """
    from dvc.api import DVCFileSystem

    with tempfile.TemporaryDirectory(prefix="ratchet-") as parent:
        place = Path(parent) / Path(path).name
        try:
            DVCFileSystem(rev=rev).get(path, str(place), recursive=True)
        except Exception as error:  # each kind of remote has errors of its own
            raise WorkspaceError(f"{path} of {rev}: {_line(error)}; fetch it with `dvc fetch --all-tags`") from error
        yield place


@contextmanager
def open_repo(config: dict[str, Any] | None = None) -> Iterator[Any]:
    """The DVC repository of the workspace; ``config`` goes over its settings.

    Raises:
        WorkspaceError: there is none, or DVC refuses.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    logging.getLogger("dvc").setLevel(logging.WARNING)
    try:
        # Waits while a person's `dvc push` has the lock: a stage of hours is not to fail over that.
        with Repo(config=config, _wait_for_lock=True) as repo:
            repo.scm_context.quiet = True  # a round commits by itself
            yield repo
    except DvcException as error:
        raise WorkspaceError(f"DVC: {_line(error)}; see `dvc status`") from error


@contextmanager
def remote_errors(verb: str) -> Iterator[None]:
    """What goes wrong with a remote, in one line: a WorkspaceError where there is none, else a RemoteError."""
    from dvc.config import NoRemoteError

    try:
        yield
    except NoRemoteError as error:
        add = "`dvc remote add -d NAME URL` (a directory, or s3://bucket/path)"
        raise WorkspaceError(f"no default remote: set one with {add}, then run `ratchet {verb}`") from error
    except Exception as error:  # each kind of remote has errors of its own
        # Of many questions to a bucket the first that is refused ends all; Python tells of the others as it exits.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        raise RemoteError(f"{verb} failed: {_line(error)}; run `ratchet {verb}` when it is mended") from error


def find_commands() -> None:
    """Let the commands of ``dvc.yaml`` find what is installed beside this Python, ``ratchet`` first of all."""
    here, path = str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)
    if path.split(os.pathsep)[0] != here:
        os.environ["PATH"] = f"{here}{os.pathsep}{path}"


@lru_cache(maxsize=1)
def _stages(_root: Path, _text: str) -> tuple[Stage, ...]:
    with open_repo() as repo:
        graph = repo.index.graph
        needs = {stage: list(graph.successors(stage)) for stage in repo.index.stages}
        return tuple(_stage(stage) for stage in TopologicalSorter(needs).static_order() if hasattr(stage, "name"))


def _stage(stage: Any) -> Stage:
    return Stage(
        stage.name,
        tuple(dep.def_path for dep in stage.deps if not hasattr(dep, "params")),
        tuple(out.def_path for out in stage.outs),
        tuple(out.def_path for out in stage.outs if not out.use_cache),
    )


def _artifact(output: Any) -> Artifact:
    return Artifact(output.def_path, output.hash_info.value or "", output.meta.size or 0)


def _stage_error(name: str, cause: BaseException, began: float) -> StageError:
    exited = re.search(r"exited with (-?\d+)$", str(cause))
    if exited is None:
        return StageError(
            f"stage {name}: {_line(cause)}; mend that (`ratchet pull` fetches data), then `ratchet round`"
        )
    code = int(exited[1])
    killed_by = -code if code < 0 else code - 128  # itself, or below a shell that waited for it
    if killed_by == signal.SIGINT:
        return Interruption(f"stage {name} was interrupted; `ratchet round` goes on from here")
    how = f"was killed by signal {killed_by}" if killed_by > 0 else f"ended with exit status {code}"
    said = f"stage {name} {how}{_last_word(log_of(name), began)}; its log is {log_of(name)}; "
    if code == Edited.status:
        return Edited(f"{said}`ratchet round` makes it again")
    if code == StageError.status:
        return StageError(f"{said}mend what it names, then `ratchet round` goes on from here")
    return StageCrash(f"{said}`ratchet round` goes on from here")


def _last_word(log: Path, began: float) -> str:
    """The last line that the stage wrote in its log, if it wrote any."""
    if not log.exists() or log.stat().st_mtime < began:
        return ""
    lines = log.read_text(errors="replace").split("\n")
    return next((f": {line.removeprefix('ratchet: ')}" for line in reversed(lines) if line.strip()), "")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
