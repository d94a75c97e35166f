"""Servers that are named, with a password or not, and those that commands start."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest

from flows.round import deployment
from flows.servers import Server, mlflow_server
from tasks.errors import WorkspaceError

USER = "ann:pass%40word"


class Guarded(BaseHTTPRequestHandler):
    """Cuts off who does not say who they are."""

    def do_GET(self) -> None:
        if self.headers["Authorization"] == f"Basic {b64encode(b'ann:pass@word').decode()}":
            self.send_response(200)
            self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_server_is_asked_with_the_password_of_its_address(address: str) -> None:
    server = Server(f"http://{USER}@{address}", f"http://{USER}@{address}/health")
    server.wait()
    assert server.page == f"http://{address}"
    with pytest.raises(WorkspaceError, match="does not answer"):
        Server(f"http://{address}", f"http://{address}/health").wait()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "127.0.0.1:port", "[::1"])
def test_what_does_not_answer_is_named_without_its_password(address: str) -> None:
    url = f"http://{USER}@{address}"
    with pytest.raises(WorkspaceError, match=f"^http://{re.escape(address)}: the server does not answer; start it, or"):
        Server(url, f"{url}/health").wait()


def test_where_mlflow_keeps_things_is_in_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database may have a password, and `ps` shows commands to all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/team.db")
    server = mlflow_server()
    try:
        server.wait()
        kept = psutil.Process(server.process.pid)
        commands = [" ".join(process.cmdline()) for process in (kept, *kept.children(recursive=True))]
    finally:
        server.process.communicate()
    assert (tmp_path / "team.db").exists()
    assert any("mlflow server" in command for command in commands)
    assert not [command for command in commands if "team.db" in command]


def test_each_checkout_has_a_deployment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for folder in ("a/b", "a-b", "a b", "a--b"):
        (tmp_path / folder).mkdir(parents=True)
        monkeypatch.chdir(tmp_path / folder)
        names.add(deployment())
    assert len(names) == 4
    assert all(re.fullmatch(r"nightly-[\w.-]+", name) for name in names)
