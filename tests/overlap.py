"""A reward model without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.types import Action, Kind
from models.prompts import Context


class WordOverlap:
    """Rewards an action by the share of its words that the instruction has; ``complete``, by that of past actions."""

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        return [
            [self._of(context, action) for action in candidates]
            for context, candidates in zip(contexts, actions, strict=True)
        ]

    def _of(self, context: Context, action: Action) -> float:
        if action.kind is Kind.COMPLETE:
            past = [self._of(context, taken) for _, taken in context.history]
            return sum(past) / len(past) if past else 0.0
        said = set(_words(context.instruction))
        meant = _words(action.target[1] if action.target else action.text)
        return sum(word in said for word in meant) / len(meant) if meant else 0.0


def _words(text: str) -> list[str]:
    return re.findall(r"[\w#@.-]*\w", text.lower()) or [text]
