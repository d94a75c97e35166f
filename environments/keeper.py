"""Programs that end with the process that started them, however it dies.

Such a program runs under a keeper, which is this file run as a script. The keeper's standard input is a pipe from the
process that wants the program, so the kernel closes it when that one dies; then, or when the program ends by itself,
the keeper ends its whole process group, and with it what a shell or the program has started.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_GRACE_S = 30  # from being told to end to being killed: time to write what is in memory and to free what is shared
_LOOK_EVERY_S = 0.05


def start(
    command: Sequence[str], log: Path, env: Mapping[str, str], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a command, its output added to ``log``: another one may be writing there.

    Closing the standard input of what is returned, its keeper, ends it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-I", __file__, *command],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, for the keeper to end; and ctrl-C is not for it
        )


def _keep(command: Sequence[str]) -> None:
    kept = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    ended = os.pidfd_open(kept.pid)
    select.select([sys.stdin, ended], [], [])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    while (kept.poll() is None or not _alone()) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    os.killpg(0, signal.SIGKILL)


def _alone() -> bool:
    """Whether this is the last process of its group. Python's own helpers, which free shared memory, end last."""
    others = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
    return not any(_group(pid) == os.getpgrp() for pid in others)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


if __name__ == "__main__":
    _keep(sys.argv[1:])
