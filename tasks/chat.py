"""A model on any server that speaks OpenAI's chat completions.

``OPENAI_BASE_URL`` says where it is, ``OPENAI_API_KEY`` holds its key.
"""

from __future__ import annotations

import os
from typing import Any

import httpx

from tasks.errors import ChatError

OPENAI = "https://api.openai.com/v1"
ANSWER_LIMIT_S = 120


class Chat:
    """Asks ``model``."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._url = os.environ.get("OPENAI_BASE_URL", OPENAI).rstrip("/")
        key = os.environ.get("OPENAI_API_KEY")
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=httpx.Timeout(ANSWER_LIMIT_S)
        )

    def ask(self, messages: list[dict[str, Any]], **settings: Any) -> dict[str, Any]:
        """The first choice of the answer.

        Raises:
            ChatError: the server does not answer, refuses, or says what is no chat completion.
        """
        body = {"model": self._model, "messages": messages, **settings}
        try:
            reply = self._client.post(f"{self._url}/chat/completions", json=body)
        except httpx.TransportError as error:
            what = str(error) or type(error).__name__
            raise ChatError(
                f"{self._url}: the model {self._model} does not answer: {what}; set OPENAI_BASE_URL"
            ) from error
        if reply.is_error:
            raise ChatError(f"{self._url}: the model {self._model} refused ({reply.status_code}): {reply.text[:300]}")
        try:
            choice: dict[str, Any] = reply.json()["choices"][0]
        except (ValueError, LookupError, TypeError) as error:
            raise ChatError(f"{self._url}: no chat completion: {reply.text[:300]}; set OPENAI_BASE_URL") from error
        return choice
