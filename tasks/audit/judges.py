"""Judges: whatever scores actions in contexts, 0..1, as the reward model does (:class:`tasks.search.Scorer`).

So a judge that does well here can guide the search too, and the benchmark knows nothing of how a judge works. A judge
that cannot say gives NaN, which is not zero.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from environments.registry import open_world
from environments.types import COMPLETE, Action, Instance
from models.prompts import Context
from tasks.evidence.ground import Ground

if TYPE_CHECKING:
    from models.inference import TorchEngine


class Chance:
    """Draws a score for each judgement, the same one each time it is asked."""

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """See :class:`tasks.search.Scorer`."""
        return [
            [random.Random(f"{_name(context)}/{action}").random() for action in row]
            for context, row in zip(contexts, actions, strict=True)
        ]


class Likelihood:
    """Likes what the policy is likely to do: the geometric mean of the probabilities of the action's tokens."""

    def __init__(self, engine: TorchEngine) -> None:
        self._engine = engine

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """See :class:`tasks.search.Scorer`."""
        found = self._engine.likelihood(contexts, [[str(action) for action in row] for row in actions])
        return [[math.exp(mean) for mean in row] for row in found]


class Verifier:
    """The world's own verdict on outcomes of one goal instance, by replay of what was done.

    Of steps, and of a goal in other words than the instance's, it cannot say anything.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """See :class:`tasks.search.Scorer`."""
        with closing(open_world(self._instance.goal.world)) as world:
            ground = Ground(world, self._instance)
            return [
                [_outcome(ground, context) if action == COMPLETE else math.nan for action in row]
                for context, row in zip(contexts, actions, strict=True)
            ]


def _outcome(ground: Ground, context: Context) -> float:
    if context.instruction != ground.start.instruction:
        return math.nan
    return float(ground.play([action for _, action in context.history])[1])


def _name(context: Context) -> str:
    taken = "/".join(str(action) for _, action in context.history)
    return f"{context.instruction}/{taken}/{len(context.observation.elements)}"
