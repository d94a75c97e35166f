"""The vision-language judge against a real HTTP server that answers as OpenAI-compatible ones do."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from PIL import Image

from environments.types import COMPLETE, Action, Element, Kind, Observation
from models.prompts import Context
from tasks.audit.vision import Vision, every_screen, keyframes, read_answer
from tasks.errors import ChatError

OK = Element("button", "OK", (0, 0, 10, 10))
Answer = Callable[[dict[str, Any]], dict[str, Any]]


def png(shade: int, dot: bool = False) -> bytes:
    image = Image.new("L", (64, 64), shade)
    if dot:
        image.putpixel((3, 3), 255 - shade)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def context(*past: bytes) -> Context:
    history = tuple((screen, Action.click(OK)) for screen in past)
    return Context("Click OK", history, Observation(png(9), (OK,)))


@contextmanager
def server(answer: Answer, status: int = 200, whole: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and a list that gets each request: headers and body. ``whole`` is what it says instead."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append({"path": self.path, "key": self.headers["Authorization"], **body})
            reply = (whole or json.dumps({"choices": [answer(body)]})).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/v1", seen
        finally:
            listening.shutdown()
            thread.join()


def said(text: str, **chances: float) -> dict[str, Any]:
    """A choice; with chances, the first token's."""
    top = [{"token": token, "logprob": math.log(chance)} for token, chance in chances.items()]
    place = {"token": text.split(maxsplit=1)[0], "logprob": -0.1, "top_logprobs": top}
    return {"message": {"content": text}, "logprobs": {"content": [place]} if chances else None}


def words(request: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in request["messages"][1]["content"] if part["type"] == "text")


def pictures(request: dict[str, Any]) -> list[bytes]:
    urls = [part["image_url"]["url"] for part in request["messages"][1]["content"] if part["type"] == "image_url"]
    return [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]


def test_each_candidate_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        question = words(request).splitlines()
        return said("Yes", Yes=0.6, No=0.2) if "agent wants" in " ".join(question) else said("no", No=0.9, yes=0.1)

    with server(answer) as (url, seen):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "open sesame")
        scores = Vision("judge-1").score(
            [context(), context(png(1), png(2))], [[Action.click(OK), COMPLETE], [COMPLETE]]
        )
    assert scores == [[pytest.approx(0.75), pytest.approx(0.1)], [pytest.approx(0.1)]]
    assert len(seen) == 3
    assert {(one["path"], one["key"], one["model"]) for one in seen} == {
        ("/v1/chat/completions", "Bearer open sesame", "judge-1")
    }
    (long,) = [one for one in seen if len(pictures(one)) == 3]
    assert pictures(long) == [png(1), png(2), png(9)]
    assert words(long).startswith('Goal: Click OK\nIt did: click button "OK" 5,5\nIt did: ')
    assert "Is the goal reached?" in words(long)


@pytest.mark.parametrize(
    ("choice", "score"),
    [
        (said("yes", yes=0.9, no=0.1), 0.9),
        (said(" No.", **{" No": 0.5, "Yes": 0.25, "Maybe": 0.25}), 1 / 3),
        (said("**Yes**, it does"), 1.0),
        (said("I think the answer is no"), 0.0),
        (said("Perhaps"), math.nan),
        ({"message": {"content": None}}, math.nan),
    ],
)
def test_answers(choice: dict[str, Any], score: float) -> None:
    assert read_answer(choice) == pytest.approx(score, nan_ok=True)


def test_keyframes_are_the_screens_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dot changes a pixel of 4096; the shade from 40 to 60 changes 8 % of the range."""
    screens = [png(40), png(40, dot=True), png(60), png(60), png(40)]
    assert keyframes(screens) == [True, False, True, False, True]
    assert every_screen(screens) == [True] * 5
    assert keyframes([]) == []
    with server(lambda _: said("yes")) as (url, seen):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        assert Vision("m", keyframes).score([context(*screens)], [[Action(Kind.WAIT)]]) == [[1.0]]
    (request,) = seen
    assert pictures(request) == [png(40), png(60), png(40), png(9)]
    assert words(request).count("It did: ") == 5


def test_a_refusal_and_a_silence_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(lambda _: said("no such model"), status=404) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(ChatError, match=r"the model .* refused \(404\): .*no such model"):
            Vision("m").score([context()], [[COMPLETE]])
    with pytest.raises(ChatError, match=r"does not answer: .*set OPENAI_BASE_URL"):
        Vision("m").score([context()], [[COMPLETE]])
