"""Units of work spread over processes of one thread each, kept as they finish.

A unit's result depends on the unit alone, so the number of workers changes nothing but the time. Finished units
lie in the stage's scratch folder: after a kill, only the unfinished ones are done again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeVar

from tasks.errors import RecordError
from tasks.files import read_json, remove, write_json, write_whole
from tasks.progress import Progress, log
from tasks.records import Trajectory, read_trajectories, write_trajectories

Result = TypeVar("Result")
Unit = Any


@dataclass(frozen=True, slots=True)
class Keep(Generic[Result]):
    """How a finished unit is kept: ``write`` at a path, ``read`` back (RecordError when it is broken)."""

    write: Callable[[Path, Result], None]
    read: Callable[[Path], Result]


def _write_trajectories(path: Path, trajectories: list[Trajectory]) -> None:
    def store(folder: Path) -> None:
        folder.mkdir()
        write_trajectories(folder, trajectories)

    write_whole(path, store)


def _read_list(path: Path) -> list[Any]:
    try:
        return list(read_json(path))
    except (OSError, json.JSONDecodeError) as error:
        raise RecordError(f"{path}: {error}") from error


TRAJECTORIES: Keep[list[Trajectory]] = Keep(_write_trajectories, read_trajectories)
JSON: Keep[list[Any]] = Keep(write_json, _read_list)


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the units: ``make(*arguments)`` runs once in each of ``processes`` and returns what does a unit."""

    make: Callable[..., Callable[[Unit], Any]]
    arguments: tuple[Any, ...]
    processes: int


def spread(
    what: str,
    crew: Crew,
    units: Sequence[tuple[str, Unit]],
    scratch: Path,
    keep: Keep[list[Result]],
    size: Callable[[Unit], float] = lambda unit: 0.0,  # noqa: ARG005
) -> list[Result]:
    """The results of all units, one after the other, in the order of the units.

    Args:
        what: the word before the progress line.
        units: (name, unit); a name is unique and fit for a file name.
        scratch: where finished units are kept between attempts.
        size: how long a unit may take; the longest are begun first, so that no worker ends alone.
    """
    found = {name: result for name, _ in units if (result := _kept(scratch / name, keep)) is not None}
    missing = sorted((pair for pair in units if pair[0] not in found), key=lambda pair: -size(pair[1]))
    progress = Progress(what, len(units), len(found))
    if found:
        log.info("%s: %d of %d were finished before", what, len(found), len(units))
    if missing:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(crew.processes, len(missing)), context, _start, (crew,)) as pool:
            jobs = {pool.submit(_do, unit): name for name, unit in missing}
            for job in as_completed(jobs):
                found[jobs[job]] = job.result()
                keep.write(scratch / jobs[job], job.result())
                progress.step()
    return [result for name, _ in units for result in found[name]]


_work: Callable[[Unit], Any]


def _start(crew: Crew) -> None:
    """Run once in each worker process, before its first unit."""
    global _work  # noqa: PLW0603  a process is one worker
    import torch

    Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _work = crew.make(*crew.arguments)


def _die_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _do(unit: Unit) -> Any:
    return _work(unit)


def _kept(path: Path, keep: Keep[Result]) -> Result | None:
    """A finished unit's result; a broken one is set aside and made again."""
    if not path.exists():
        return None
    try:
        return keep.read(path)
    except RecordError as error:
        log.warning("%s; it is set aside and made again", error)
        aside = path.with_name(f"{path.name}.broken")
        remove(aside)
        path.rename(aside)
        return None
