"""How a vLLM server is reached: one on this machine never by the proxy, and again after a connection dropped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from models import vllm
from models.engine import EngineError
from models.vllm import Server


@contextmanager
def listening(status: int) -> Iterator[tuple[int, list[str]]]:
    """The port of a server that answers everything with a status, and what it was asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_on_this_machine_is_asked_without_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(502) as (proxy, through), listening(200) as (port, asked):
        _use(proxy, monkeypatch)
        assert Server(f"http://{host}:{port}").answers()
        assert (through, asked) == ([], ["/health"])


def test_another_machine_is_asked_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(200) as (proxy, through):
        _use(proxy, monkeypatch)
        assert Server("http://vllm.example:8000").answers()
        assert through == ["http://vllm.example:8000/health"]


@contextmanager
def dropping(drops: int) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """The port of a server that ends its first connections unanswered; what it was sent, and over which port."""
    sent: list[tuple[str, int]] = []

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # which keeps connections

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            sent.append((self.path, self.client_address[1]))
            if len(sent) <= drops:
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever).start()
        try:
            yield server.server_port, sent
        finally:
            server.shutdown()


def test_what_changes_nothing_is_asked_again_where_the_connection_was_dropped() -> None:
    with dropping(1) as (port, sent):
        assert Server(f"http://127.0.0.1:{port}").generate([{}, {}]) == [{}, {}]
        assert len(sent) == 3


def test_it_is_asked_again_once_and_nothing_else_is(tmp_path: Path) -> None:
    with dropping(2) as (port, sent), pytest.raises(EngineError, match="does not answer: Server disconnected"):
        Server(f"http://127.0.0.1:{port}").generate([{}])
    assert len(sent) == 2
    with dropping(1) as (port, sent), pytest.raises(EngineError, match="does not answer: Server disconnected"):
        Server(f"http://127.0.0.1:{port}").load_adapter("a", tmp_path)
    assert len(sent) == 1


def test_a_connection_is_left_before_the_server_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vllm.KEPT_S < 5
    monkeypatch.setattr(vllm, "KEPT_S", 0.1)
    with dropping(0) as (port, sent):
        server = Server(f"http://127.0.0.1:{port}")
        server.generate([{}])
        time.sleep(0.2)
        server.generate([{}])
        assert sent[0] != sent[1]


def _use(proxy: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
