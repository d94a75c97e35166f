"""A vLLM server as an engine: the networks of one base, each an adapter by name.

Prompts travel as token ids beside their images (``/inference/v1/generate``; the chat interface would tokenise
prompt and answer as one text). Samples are one request a context, scores one request a candidate, all sent at
once: the server batches them and reads what they share once (prefix caching).
"""

from __future__ import annotations

import base64
import math
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from models.engine import MAX_ANSWER_TOKENS, MIN_P, EngineError, parted, seed_number
from models.network import Reader
from models.prompts import Context

AT_ONCE = 64
CONNECT_LIMIT_S, ANSWER_LIMIT_S = 10, 600
KEPT_S = 2.0  # a connection that is not in use: vLLM ends it after 5, and what is sent meanwhile is lost
_DROPPED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)  # a connection that was no more

Prompt = dict[str, Any]


class Server:
    """The interface of a running server at ``url``; its key, if it wants one, is ``VLLM_API_KEY``."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        key = os.environ.get("VLLM_API_KEY")
        self._client = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(ANSWER_LIMIT_S, connect=CONNECT_LIMIT_S, pool=None),
            limits=httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE, keepalive_expiry=KEPT_S),
            trust_env=not _is_here(self.url),  # no proxy of the environment reaches this machine
        )
        self._pool = ThreadPoolExecutor(AT_ONCE)

    def answers(self) -> bool:
        """Whether it is there and ready."""
        try:
            return self._client.get("/health").is_success
        except httpx.TransportError:
            return False

    def load_adapter(self, name: str, folder: Path) -> None:
        """Put a stored adapter beside those it has. The server reads the folder: it must see the same files."""
        self._post("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder.absolute())})

    def unload_adapter(self, name: str) -> None:
        """Take an adapter away again."""
        self._post("/v1/unload_lora_adapter", {"lora_name": name})

    def generate(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers to requests, which are sent all at once: again where the connection was dropped."""
        replies = self._pool.map(lambda request: self._post("/inference/v1/generate", request, tries=2), requests)
        return [reply.json() for reply in replies]

    def _post(self, path: str, body: dict[str, Any], tries: int = 1) -> httpx.Response:
        """``tries``: more than one of what changes nothing there, so that it may be asked twice."""
        try:
            reply = self._client.post(path, json=body)
        except httpx.TransportError as error:
            if tries > 1 and isinstance(error, _DROPPED):
                return self._post(path, body, tries - 1)
            what = str(error) or type(error).__name__
            raise EngineError(f"{self.url}: the vLLM server does not answer: {what}; its log says why") from error
        if reply.is_error:
            raise EngineError(f"{self.url}{path}: the vLLM server refused ({reply.status_code}): {reply.text[:500]}")
        return reply


def _is_here(url: str) -> bool:
    host = httpx.URL(url).host
    return host in ("localhost", "::1") or host.startswith("127.")


class VllmEngine:
    """The network that ``server`` runs under the name ``model``."""

    def __init__(self, server: Server, model: str, reader: Reader) -> None:
        self._server, self._model, self._reader = server, model, reader
        self._compared = False

    def fresh(self) -> VllmEngine:
        """See :class:`models.engine.Engine`. What the server remembers is the server's own affair."""
        return self

    def sample(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[Counter[str]]:
        """See :class:`models.engine.Engine`."""
        settings = {
            "min_p": MIN_P,
            "max_tokens": MAX_ANSWER_TOKENS,
            "stop_token_ids": [self._reader.end],
            "ignore_eos": True,
        }
        greedy, drawn = parted(samples, temperature, likeliest)
        ways = [(1, 0.0, greedy), (drawn, temperature, 1)]  # so many draws, at a temperature, each counting so often
        asked = [
            (place, times, prompt, {"n": draws, "temperature": at, "seed": seed_number(f"{seed}/{place}")})
            for place, prompt in enumerate(self._prompts(contexts))
            for draws, at, times in ways
            if draws and times
        ]
        found = [Counter[str]() for _ in contexts]
        answers = self._server.generate([self._request(prompt, (), settings | way) for *_, prompt, way in asked])
        for (place, times, *_), answer in zip(asked, answers, strict=True):
            for choice in answer["choices"]:
                found[place][self._reader.said(choice["token_ids"])] += times
        return found

    def score(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        """See :class:`models.engine.Engine`."""
        positive, negative = verdicts = list(self._reader.verdicts)
        # It reports as many tokens as are asked for, the one it draws among them: that must be one of the two.
        settings = {"max_tokens": 1, "logprobs": 2, "logprob_token_ids": verdicts, "allowed_token_ids": verdicts}
        requests = [
            self._request(prompt, self._reader.answer_tokens(answer), settings)
            for prompt, candidates in zip(self._prompts(contexts), answers, strict=True)
            for answer in candidates
        ]
        scores = iter(_share(answer, positive, negative) for answer in self._server.generate(requests))
        return [[next(scores) for _ in candidates] for candidates in answers]

    def _prompts(self, contexts: Sequence[Context]) -> list[Prompt]:
        prompts = [self._prompt(context) for context in contexts]
        if prompts and not self._compared:
            self._compare(contexts[0], prompts[0])
            self._compared = True
        return prompts

    def _prompt(self, context: Context) -> Prompt:
        text, images = self._reader.prompt(context)
        urls = [f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in images]
        return {
            "token_ids": self._reader.text_tokens(text),
            "content_parts": [{"type": "image_url", "url": url} for url in urls],
        }

    def _request(self, prompt: Prompt, after: Sequence[int], settings: dict[str, Any]) -> dict[str, Any]:
        tokens = [*prompt["token_ids"], *after]
        return {**prompt, "model": self._model, "token_ids": tokens, "sampling_params": settings}

    def _compare(self, context: Context, prompt: Prompt) -> None:
        """The server must put the same tokens in the place of an image as the processor here does."""
        request = self._request(prompt, (), {"max_tokens": 1}) | {"return_token_ids": True}
        (answer,) = self._server.generate([request])
        if answer["prompt_token_ids"] != self._reader.tensors(context)["input_ids"][0].tolist():
            raise EngineError(
                f"{self._server.url}: the vLLM server reads a prompt as other tokens than the base's processor does; "
                "start it on the same base, or set engine.kind: torch"
            )


def _share(answer: dict[str, Any], positive: int, negative: int) -> float:
    """p(+) / (p(+) + p(-)), from the log-probabilities of the two tokens."""
    (place,) = answer["choices"][0]["logprobs"]["content"]
    found = {item["token_id"]: item["logprob"] for item in place["top_logprobs"]}
    return 0.5 + 0.5 * math.tanh((found[positive] - found[negative]) / 2)
