"""One progress line: a line that rewrites itself on a terminal, a line every tenth elsewhere and in the log."""

from __future__ import annotations

import logging
import sys
import time

log = logging.getLogger("ratchet")


class Progress:
    """Counts units of a stage and shows done/total, rate, time left and a note."""

    def __init__(self, what: str, total: int, done: int = 0) -> None:
        self._what, self._total, self._first = what, total, done
        self._started = time.monotonic()
        self._tenth = -1
        self.done = done

    def step(self, note: str = "", count: int = 1) -> None:
        """Report that ``count`` more units are done."""
        self.done += count
        tenth = 10 * self.done // max(1, self._total)
        line = self._line(note)
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="\n" if self.done >= self._total else "", file=sys.stderr, flush=True)
        if tenth != self._tenth:
            self._tenth = tenth
            log.info(line)

    def _line(self, note: str) -> str:
        elapsed = time.monotonic() - self._started
        rate = (self.done - self._first) / elapsed if elapsed > 0 else 0.0
        left = (self._total - self.done) / rate if rate > 0 else 0.0
        text = f"{self._what} {self.done}/{self._total} ({100 * self.done / max(1, self._total):.0f}%)"
        return f"{text} | {rate:.2f}/s | {left:.0f} s left" + (f" | {note}" if note else "")
