"""Units of work spread over processes of one thread each, kept as they finish.

A unit's result depends on the unit alone, so the number of workers changes nothing but the time. Finished units
lie in the stage's scratch folder: after a kill, only the unfinished ones are done again.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeVar

import psutil
from joblib import cpu_count

from tasks.errors import RecordError
from tasks.files import read_json, remove, write_json, write_whole
from tasks.params import Params
from tasks.progress import Progress, log
from tasks.records import Trajectory, read_trajectories, write_trajectories

NEEDS = 3 * 2**30  # bytes that a worker may take: both embedded models, and the browsers of the episodes that it plays

Result = TypeVar("Result")
Unit = Any
Make = Callable[..., Callable[[Unit], Iterable[Any]]]


@dataclass(frozen=True, slots=True)
class Keep(Generic[Result]):
    """How results are kept: ``write`` them at a path, ``read`` them one by one (RecordError when it is broken)."""

    write: Callable[[Path, Iterable[Result]], None]
    read: Callable[[Path], Iterable[Result]]


def _write_trajectories(path: Path, trajectories: Iterable[Trajectory]) -> None:
    def store(folder: Path) -> None:
        folder.mkdir()
        write_trajectories(folder, trajectories)

    write_whole(path, store)


def _write_list(path: Path, values: Iterable[Any]) -> None:
    write_json(path, list(values))


def _read_list(path: Path) -> list[Any]:
    try:
        return list(read_json(path))
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{path}: {error}") from error


TRAJECTORIES: Keep[Trajectory] = Keep(_write_trajectories, read_trajectories)
JSON: Keep[Any] = Keep(_write_list, _read_list)


def hands(params: Params) -> int:
    """How many processes a crew has: ``engine.workers``; without it as many as there are cores and free memory for.

    Two where the workers hold models that may be large, or have them on a GPU.
    """
    if params.engine.workers is not None:
        return params.engine.workers
    room: int = max(1, min(cpu_count(), psutil.virtual_memory().available // NEEDS))
    if room <= 2 or params.engine.kind == "vllm":
        return room
    return room if params.base.embedded and not _has_gpu() else 2


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def crew(make: Make, arguments: tuple[Any, ...], processes: int) -> ProcessPoolExecutor:
    """Who does units, as a context: ``make(*arguments)`` runs once in each process and returns what does a unit.

    A process is started when there is a unit for it, and ends with the context.
    """
    return ProcessPoolExecutor(processes, _context(), _start, (make, arguments, {**os.environ}))


def spread(
    what: str,
    workers: ProcessPoolExecutor,
    units: Sequence[tuple[str, Unit]],
    scratch: Path,
    keep: Keep[Result],
    size: Callable[[Unit], float] = lambda unit: 0.0,  # noqa: ARG005
) -> Iterator[Result]:
    """The results of all units, one after the other, in the order of the units.

    All are made and kept before it returns; then they are read back one by one, so that no process ever holds more
    than those of a unit.

    Args:
        what: the word before the progress line.
        workers: a :func:`crew`; after an error it takes no more units.
        units: (name, unit); a name is unique and, with a dash for each slash, fit for a file name.
        scratch: where finished units are kept between attempts.
        size: how long a unit may take; the longest are begun first, so that no worker ends alone.
    """
    places = [(scratch / name.replace("/", "-"), unit) for name, unit in units]
    unfinished = [(place, unit) for place, unit in places if not _whole(place, keep)]
    missing = sorted(unfinished, key=lambda pair: -size(pair[1]))
    finished = len(units) - len(missing)
    progress = Progress(what, len(units), finished)
    if finished:
        log.info("%s: %d of %d were finished before", what, finished, len(units))
    jobs = [workers.submit(_do, unit, place, keep) for place, unit in missing]
    try:
        for job in as_completed(jobs):
            job.result()
            progress.step()
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)  # what is not begun yet is for the next attempt
        raise
    return chain.from_iterable(keep.read(place) for place, _ in places)


def _context() -> BaseContext:
    """Workers are forks of a process that has imported what takes each of them seconds, and has run nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *_HEAVY])
    return context


_HEAVY = ("models.base", "models.inference", "tasks.records")
_work: Callable[[Unit], Iterable[Any]]


def _start(make: Make, arguments: tuple[Any, ...], environment: Mapping[str, str]) -> None:
    """Run once in each worker process, before its first unit, with the environment of who asks for it."""
    os.environ.update(environment)
    global _work  # noqa: PLW0603  a process is one worker
    import torch

    Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    try:
        _work = make(*arguments)
    except Exception as error:  # an error here would only break the pool: the first unit says it
        _work = partial(_refuse, error)


def _refuse(error: Exception, _unit: Unit) -> Iterable[Any]:
    raise error


def _die_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _do(unit: Unit, path: Path, keep: Keep[Any]) -> None:
    """Do a unit in a worker and keep its results: screenshots never pass between processes."""
    keep.write(path, _work(unit))


def _whole(path: Path, keep: Keep[Any]) -> bool:
    """Whether a unit is finished; a broken one is set aside and made again."""
    if not path.exists():
        return False
    try:
        for _ in keep.read(path):
            pass
    except RecordError as error:
        log.warning("%s; it is set aside and made again", error)
        aside = path.with_name(f"{path.name}.broken")
        remove(aside)
        path.rename(aside)
        return False
    return True
