"""The server of a web application: a process of one's own, on a port and over a copy of the data of one's own."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from environments import keeper
from environments.goalfile import fill
from environments.home import Home
from environments.programs import kept_variables, last_words
from environments.types import WorldError
from environments.web.file import App

HOST = "app.localhost"  # what pages and the server see, whatever the port: it stands in links and cookies
LOOK_EVERY_S, ANSWER_S = 0.05, 60


class Server:
    """A running application. It dies with this process, also by kill -9, and with it what it started.

    Args:
        app: how it is started.
        folder: where the goal file lies.

    Raises:
        WorldError: when it cannot be started, or does not answer within ``app.ready_in_s``.
    """

    def __init__(self, app: App, folder: Path) -> None:
        self._app = app
        self.folder = (folder / app.folder).resolve()
        self._home = Home("app")
        self.data = self._home.path / "data"
        self.port, self._claim = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.restart()
        except BaseException:
            self.close()
            raise

    @property
    def pristine(self) -> Path | None:
        """The folder that ``data`` is a copy of."""
        return self.folder / self._app.data if self._app.data else None

    @property
    def places(self) -> Mapping[str, str | int]:
        """What ``{port}`` and ``{data}`` stand for in a command."""
        return {"port": self.port, "data": str(self.data)}

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of the server and of commands."""
        return kept_variables() | {"HOME": str(self._home.path), "TZ": "UTC", "LANG": "C.UTF-8"} | self._app.env

    def restart(self) -> None:
        """End the server where it runs, copy its data anew and start it."""
        self._stop()
        self._log.unlink(missing_ok=True)
        shutil.rmtree(self.data, ignore_errors=True)
        self._copy_data()
        command = [fill(word, self.places) for word in shlex.split(self._app.start)]
        try:
            self._process = keeper.start(command, self._log, self.environment, self.folder)
        except OSError as error:
            raise WorldError(f"app.folder={self.folder}: the server cannot be started there: {error}") from error
        self._await_answer()

    def check(self) -> None:
        """Raise WorldError when the server has ended."""
        if self._process is None or self._process.poll() is not None:
            raise WorldError(f"{self._app.start}: the server ended; its last words: {last_words(self._log)}")

    def close(self) -> None:
        """End the server and remove its files. A second call has no effect."""
        self._stop()
        self._home.close()
        self._claim.close()

    @property
    def _log(self) -> Path:
        return self._home.path / "log.txt"

    def _copy_data(self) -> None:
        if self.pristine is None:
            self.data.mkdir()
            return
        try:
            shutil.copytree(self.pristine, self.data, symlinks=True)
        except (OSError, shutil.Error) as error:
            raise WorldError(f"app.data={self.pristine}: the folder cannot be copied: {error}") from error

    def _await_answer(self) -> None:
        deadline = time.monotonic() + self._app.ready_in_s
        while not _answers(self.port, self._app.ready):
            self.check()
            if time.monotonic() > deadline:
                waited = f"no answer at {self._app.ready} within {self._app.ready_in_s} s (app.ready_in_s)"
                raise WorldError(f"{self._app.start}: {waited}; its last words: {last_words(self._log)}")
            time.sleep(LOOK_EVERY_S)
        self.check()

    def _stop(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):  # it may have ended by itself; its data go anyway: there is nothing to save
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._process = None


def ask(
    port: int, path: str, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """A request to the server at a port: status and body of its answer. A redirection is not followed.

    Raises:
        OSError: when it does not answer within :data:`ANSWER_S`, or not in HTTP, or cannot be asked so in HTTP.
    """
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        connection.request(method, path, body, {"Host": HOST, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (HTTPException, ValueError) as error:  # the second of signs that no path or header may have
        raise OSError(f"{method} {path}: {error!r}") from error
    finally:
        connection.close()


def _answers(port: int, path: str) -> bool:
    try:
        return ask(port, path)[0] < 500
    except OSError:
        return False


def _free_port() -> tuple[int, socket.socket]:
    """A free port, and what must be closed to give it back: other worlds are about to start servers as well."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0ratchet-port-{port}")  # an abstract name: no file, and free when its process dies
        except OSError:
            claim.close()
        else:
            return port, claim
