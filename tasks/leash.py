"""Runs a command for as long as standard input is open: ``python tasks/leash.py COMMAND...``.

Who holds the other end of the pipe may die in any way, kill -9 too: the pipe closes, and the command ends with
all the processes it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread

GRACE_S = 10


def main(command: list[str]) -> int:
    """Run ``command``; returns its exit status."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        Thread(target=_end_with_input, args=(process,), daemon=True).start()
        status = process.wait()
    with suppress(ProcessLookupError):  # those it started may not have ended with it
        os.killpg(process.pid, signal.SIGKILL)
    return status


def _end_with_input(process: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
