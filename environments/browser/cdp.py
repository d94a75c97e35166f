"""Chromium's debugging pipe: a child process that takes and gives JSON messages on two file descriptors.

There is no port, so nothing else on the machine can drive the browser, and the browser sees the pipe
close and exits when this process dies, however it dies.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from environments.programs import last_words
from environments.types import WorldError

_BROWSER_READS, _BROWSER_WRITES = 3, 4  # the descriptors that --remote-debugging-pipe stands for
_FREE_FROM = 10  # our own ends live above those, so that the child's dup2 calls cannot clash
_CHUNK = 1 << 20
QUIET_S = 0.5  # without a message, until what waits for one is asked what to do


class Refused(WorldError):
    """The browser answered a command with an error."""


def _told() -> str:
    return "what it was told"


def _nothing() -> None: ...


class Pipe:
    """One browser process and the conversation with it. Not safe for use from several threads.

    Args:
        command: the program and its arguments.
        environment: the whole environment of the process.
        log: where its standard error goes.
        on_event: called with the name and parameters of each event, in order.
        timeout_s: how long one answer may take. It may be set anew at any time.
        on_quiet: called whenever nothing has come for :data:`QUIET_S` while something is waited for.

    Raises:
        WorldError: from every method, when the browser cannot be started, is dead, or takes longer.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        on_event: Callable[[str, dict[str, Any]], None],
        timeout_s: float,
        on_quiet: Callable[[], None] = _nothing,
    ) -> None:
        self.timeout_s = timeout_s
        self._on_quiet = on_quiet
        self._log = log
        self._on_event = on_event
        self._last_id = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._asked: dict[int, str] = {}  # what waits for an answer, and the command's name
        self._unsent = b""  # goes out in one write when something is waited for
        self._buffer = b""
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        try:
            self.pid = _spawn(command, environment, log, theirs_in, theirs_out)
        except OSError as error:
            self._close_ends()
            raise WorldError(f"{command[0]}: the browser could not be started: {error}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._out, False)
        self._may_write, self._may_read = _poller(self._out, select.POLLOUT), _poller(self._in, select.POLLIN)
        self._alive = True

    def post(self, method: str, params: Mapping[str, Any], session: str | None) -> int:
        """Give a command; returns its id, with which :meth:`reply` must be called. It is sent with the next wait."""
        self.tell(method, params, session)
        self._asked[self._last_id] = method
        return self._last_id

    def tell(self, method: str, params: Mapping[str, Any], session: str | None) -> None:
        """Give a command whose answer does not matter."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        self._unsent += json.dumps(message).encode() + b"\0"

    def reply(self, command: int) -> dict[str, Any]:
        """Wait for the answer to a command. Raises Refused when it is an error."""
        self.wait(lambda: self.answered(command))
        answer, method = self._replies.pop(command), self._asked.pop(command)
        if "error" in answer:
            raise Refused(f"the browser refused {method}: {answer['error'].get('message', answer['error'])}")
        result: dict[str, Any] = answer["result"]
        return result

    def answered(self, command: int) -> bool:
        """Whether the answer to a command has come: :meth:`reply` would give it at once."""
        return command in self._replies

    def wait(self, until: Callable[[], bool], what: Callable[[], str] = _told) -> None:
        """Send what was given, and take in messages until ``until()`` holds, at most ``timeout_s``.

        ``what()`` is waited for, in words.
        """
        deadline = time.monotonic() + self.timeout_s
        self._send(deadline)
        while not until():
            self._read(deadline, what)
            self._send(deadline)  # what the events were answered with

    def close(self) -> None:
        """Kill the process and reap it. A second call has no effect."""
        if not self._alive:
            return
        self._alive = False
        self._close_ends()
        with suppress(ProcessLookupError):  # it may have died by itself
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _close_ends(self) -> None:
        os.close(self._out)
        os.close(self._in)

    def _send(self, deadline: float) -> None:
        while self._unsent:
            try:
                self._unsent = self._unsent[os.write(self._out, self._unsent) :]
            except BlockingIOError:
                self._await(self._may_write, deadline)
            except BrokenPipeError as error:
                raise self._died() from error

    def _read(self, deadline: float, what: Callable[[], str]) -> None:
        while not self._await(self._may_read, deadline, what):
            self._on_quiet()
            self._send(deadline)
        chunk = os.read(self._in, _CHUNK)
        if not chunk:
            raise self._died()
        *messages, self._buffer = (self._buffer + chunk).split(b"\0")
        for message in messages:
            self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self._on_event(message["method"], message.get("params", {}))
        elif message["id"] in self._asked:
            self._replies[message["id"]] = message

    def _await(self, poller: select.poll, deadline: float, what: Callable[[], str] = _told) -> bool:
        """Whether the pipe is ready within :data:`QUIET_S`. Raises WorldError after the deadline."""
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            waiting = ", ".join(self._asked.values()) or what()
            raise WorldError(
                f"the browser (process {self.pid}) gave no answer to {waiting} within {self.timeout_s:g} s"
            )
        return bool(poller.poll(min(left_s, QUIET_S) * 1000))

    def _died(self) -> WorldError:
        return WorldError(f"the browser (process {self.pid}) died; its last words: {last_words(self._log)}")


def _pipe() -> tuple[int, int]:
    """A pipe whose ends lie above the descriptors that the child is given."""
    low = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FREE_FROM) for end in low)
    for end in low:
        os.close(end)
    return read, write


def _poller(descriptor: int, event: int) -> select.poll:
    poller = select.poll()
    poller.register(descriptor, event)
    return poller


def _spawn(command: Sequence[str], environment: Mapping[str, str], log: Path, reads: int, writes: int) -> int:
    # posix_spawn and not subprocess: the descriptors need fixed numbers, and a preexec_fn may deadlock
    # in a process that has threads, as torch has.
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, reads, _BROWSER_READS),
        (os.POSIX_SPAWN_DUP2, writes, _BROWSER_WRITES),
    ]
    return os.posix_spawn(command[0], list(command), dict(environment), file_actions=actions, setpgroup=0)
