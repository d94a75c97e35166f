"""A stage's log file, copied line by line to the Prefect run as it grows. The terminal has the stage itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect.logging.handlers import APILogHandler
from prefect.runtime import flow_run, task_run

EVERY_S = 0.5


@contextmanager
def follow(path: Path) -> Iterator[None]:
    """Send the lines that ``path`` gains while the block lasts to the log of the Prefect task run around it."""
    run = {"flow_run_id": flow_run.id, "task_run_id": task_run.id}
    tail, over = _Tail(path, logging.LoggerAdapter(_logger(), run)), threading.Event()
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


def _logger() -> logging.Logger:
    logger = logging.getLogger("ratchet.stage")
    if not logger.handlers:
        logger.addHandler(APILogHandler())
        logger.setLevel(logging.INFO)
        logger.propagate = False
    return logger
