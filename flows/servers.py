"""Prefect's environment, and the servers that commands start for as long as they run."""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPException
from threading import Thread
from urllib.parse import unquote, urlsplit

from environments import keeper
from tasks.errors import WorkspaceError, without_password
from tasks.files import WORK, log_of

PREFECT_PORT, MLFLOW_PORT = 4200, 5000
START_LIMIT_S, LOOK_EVERY_S = 120, 0.05


@dataclass(frozen=True, slots=True)
class Server:
    """A server: its address, and where it is ours its process and log."""

    url: str
    health: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def ours(self) -> bool:
        """Whether this process started it."""
        return self.process is not None

    @property
    def page(self) -> str:
        """Where a person looks at it."""
        return without_password(self.url.removesuffix("/api"))

    def wait(self) -> None:
        """Wait until it answers; one that is not ours must do so at once.

        Raises:
            WorkspaceError: it does not.
        """
        deadline = time.monotonic() + (START_LIMIT_S if self.ours else 0)
        while not _answers(self.health):
            if time.monotonic() > deadline or (self.process and self.process.poll() is not None):
                cure = (
                    f"its log is in {WORK / 'logs'}" if self.ours else "start it, or unset the variable that names it"
                )
                raise WorkspaceError(f"{without_password(self.url)}: the server does not answer; {cure}")
            time.sleep(LOOK_EVERY_S)


def prepare() -> None:
    """Set what Prefect reads when it is imported: no reports to its makers, and its state under the checkout.

    What the user has set stays.
    """
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    if "PREFECT_API_URL" not in os.environ:
        os.environ.setdefault("PREFECT_HOME", str(WORK.absolute() / "prefect"))


def prefect_server(lasting: bool = False) -> Server:
    """The Prefect server that ``PREFECT_API_URL`` names, or one of our own until this process ends.

    It may still be starting: import what is slow, then :meth:`Server.wait`. Prefect must not be imported before.
    A ``lasting`` one has a UI and starts scheduled runs.
    """
    if url := os.environ.get("PREFECT_API_URL"):
        server = Server(url, f"{url}/health")
        server.wait()
        return server
    port = _free_port(PREFECT_PORT if lasting else 0)
    command = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--analytics-off"]
    command += [] if lasting else ["--no-ui", "--no-scheduler", "--no-late-runs"]
    address = f"http://127.0.0.1:{port}"
    os.environ["PREFECT_API_URL"] = f"{address}/api"
    return Server(address, f"{address}/api/health", _start(command, "prefect", {}))


def mlflow_server() -> Server:
    """The MLflow server that ``MLFLOW_TRACKING_URI`` names, or one over its database or this workspace's."""
    from tasks.lineage.store import tracking_uri  # slow to import

    store = tracking_uri()
    if store.startswith("http"):
        return Server(store, f"{store}/health")
    port = _free_port(MLFLOW_PORT)
    command = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    # One process to serve one person. The store may have a password in it, and anyone can see a command.
    settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    settings["MLFLOW_BACKEND_STORE_URI"] = store
    address = f"http://127.0.0.1:{port}"
    return Server(address, f"{address}/health", _start(command, "mlflow", settings))


def _start(module: list[str], log: str, settings: dict[str, str]) -> subprocess.Popen[bytes]:
    process = keeper.start([sys.executable, "-m", *module], log_of(log), {**os.environ, **settings})
    # At exit, not before: Prefect sends the last logs and events when the interpreter ends its threads.
    atexit.register(process.communicate)
    return process


def die_with(pid: int) -> None:
    """End this process when another one ends, even by kill -9 and with a shell between the two (Linux)."""
    try:
        other = os.pidfd_open(pid)
    except ProcessLookupError:
        os.kill(os.getpid(), signal.SIGTERM)
    else:
        Thread(target=_end_after, args=(other,), daemon=True).start()


def _end_after(process: int) -> None:
    select.select([process], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def _free_port(wanted: int) -> int:
    """The wanted port, or any where that one is taken."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(_request(url), timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, HTTPException, ValueError):  # the last two of what is no URL
        return False
    return True


def _request(url: str) -> urllib.request.Request:
    """A user and password in a URL go where HTTP wants them. Raises ValueError where it is no URL."""
    parts, headers = urlsplit(url), {}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    return urllib.request.Request(without_password(url), headers=headers)
