"""How a vLLM server is reached: one on this machine never through the proxy of the environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

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


def _use(proxy: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
