"""One round at a time, and one stage at a time: locks that the kernel frees however their holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from tasks.errors import BusyError
from tasks.files import WORK

ROUND_LOCK = WORK / "round.lock"
STAGE_LOCK = WORK / "stage.lock"
AUDIT = "ratchet evaluate reward"  # holds the lock of rounds too: a promotion meanwhile would mix two champions in it
_LOOKING_S = 1  # a lock may be held by one who only looks whether it is free
_DYING_S = 10  # a stage whose round was killed is told to end, and the kernel takes a while to free what it held
_LOOK_EVERY_S = 0.05


@contextmanager
def round_lock(name: str) -> Iterator[None]:
    """Keep the workspace to one round, or to an audit, for as long as the block lasts.

    Raises:
        BusyError: another round, or a stage that outlived its round, holds the workspace; says which.
    """
    with _hold(ROUND_LOCK, name):
        _refuse_if_held(STAGE_LOCK, _DYING_S)
        yield


@contextmanager
def stage_lock(name: str) -> Iterator[None]:
    """Keep the workspace to one stage: a stage that outlived a killed round still writes its outputs.

    Raises:
        BusyError: another stage is running; says which.
    """
    with _hold(STAGE_LOCK, f"stage {name}"):
        yield


def refuse_if_busy() -> None:
    """Find out early, before anything slow is started. A stage that is about to end is waited for.

    Raises:
        BusyError: a round or a stage holds the workspace; says which.
    """
    _refuse_if_held(ROUND_LOCK)
    _refuse_if_held(STAGE_LOCK, _DYING_S)


def _refuse_if_held(path: Path, patience: float = 0) -> None:
    if path.exists():
        _take(path, patience).close()


@contextmanager
def _hold(path: Path, name: str) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _take(path, _LOOKING_S) as file:
        file.truncate(0)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        json.dump({"name": name, "pid": os.getpid(), "host": socket.gethostname(), "started": started}, file)
        file.flush()
        yield


def _take(path: Path, patience: float = 0) -> TextIO:
    """The locked file. A holder has ``patience`` seconds to end. Raises BusyError."""
    file = path.open("a+")
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                file.seek(0)
                raise BusyError(_describe(path, file.read())) from error
            time.sleep(_LOOK_EVERY_S)
        else:
            return file


def _describe(path: Path, text: str) -> str:
    try:
        holder = json.loads(text)
        who = "{name} (process {pid} on {host}, since {started})".format(**holder)
        end = f"end it with `kill {holder['pid']}`"
    except (ValueError, KeyError, TypeError):  # it has the lock, and has not yet said who it is
        who, end = f"the holder of {path}", "end it"
    return f"{who} is at work here, and a workspace takes one round at a time; wait for it or {end}, then try again"
