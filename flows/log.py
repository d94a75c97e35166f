"""Lines for the Prefect run's log that Prefect is not to print as well."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run, task_run

EVERY_S = 0.5


def say(line: str) -> None:
    """Print a line and log it to the Prefect run around this call."""
    print(line, file=sys.stderr, flush=True)
    _logger().info("%s", line)


@contextmanager
def follow(path: Path) -> Iterator[None]:
    """Log each line that a stage adds to its log file while the block lasts; the terminal has the stage itself."""
    tail, over = _Tail(path, _logger()), threading.Event()
    thread = threading.Thread(target=tail.until, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Tail:
    def __init__(self, path: Path, logger: logging.LoggerAdapter[logging.Logger]) -> None:
        self._path, self._logger = path, logger
        self._sent = self._read()

    def until(self, over: threading.Event) -> None:
        while not over.wait(EVERY_S):
            self._send(whole_lines=True)
        self._send(whole_lines=False)

    def _send(self, whole_lines: bool) -> None:
        text = self._read()
        if not text.startswith(self._sent):  # the stage began its log anew
            self._sent = ""
        new = text[len(self._sent) :]
        if whole_lines:
            new = new[: new.rfind("\n") + 1]
        self._sent += new
        for line in filter(str.strip, new.splitlines()):
            self._logger.info("%s", line)

    def _read(self) -> str:
        return self._path.read_text(errors="replace") if self._path.exists() else ""


def _logger() -> logging.LoggerAdapter[logging.Logger]:
    """A logger for the run around this call, usable from any thread."""
    logger = logging.getLogger("ratchet.run")
    if not logger.handlers:
        logger.addHandler(APILogHandler())
        logger.setLevel(logging.INFO)
        logger.propagate = False
    return logging.LoggerAdapter(logger, {"flow_run_id": flow_run.id, "task_run_id": task_run.id})
