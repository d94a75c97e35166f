"""An agent and a reward model without a network: what learned ones must beat, and a way to try a world out."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from environments.types import Action, Candidate, Kind
from models.prompts import Context


class RandomAgent:
    """Clicks any element on the screen, or types any word of the instruction."""

    def propose(
        self,
        contexts: Sequence[Context],
        samples: int,
        temperature: float,  # noqa: ARG002
        seed: str = "",
        likeliest: bool = False,  # noqa: ARG002
    ) -> list[list[Candidate]]:
        """As :class:`models.roles.Agent`; all actions are as likely, at any temperature. The seed names the draw."""
        return [self._of(context, samples, random.Random(f"{seed}/{place}")) for place, context in enumerate(contexts)]

    def _of(self, context: Context, samples: int, chooser: random.Random) -> list[Candidate]:
        clicks = [Action.click(element) for element in context.observation.elements]
        typings = [Action(Kind.TYPE, text=word) for word in context.instruction.split()]
        drawn = [chooser.choice(chooser.choice([clicks or typings, typings])) for _ in range(samples)]
        counts = {action: drawn.count(action) for action in drawn}
        return [
            Candidate(action, count)
            for action, count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        ]


class WordOverlap:
    """Rewards an action by the share of its words that the instruction has; ``complete``, by that of past actions."""

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """As :class:`models.roles.RewardModel`."""
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
