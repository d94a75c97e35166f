"""What the benchmarks of the worlds share: every page of the package as a goal, and an agent that wanders over them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml

from environments.registry import load_goals
from environments.types import Action, Candidate, Goal, Kind
from models.prompts import Context

GOALS = Path(__file__).parents[1] / "data" / "goals"
WORLD = "environments.miniwob:MiniWoB"
STEPS = 10  # of an episode on a page that is no goal


def goals() -> dict[str, Goal]:
    """The goals of the package, those in use first, then the excluded pages."""
    excluded = yaml.safe_load((GOALS / "excluded" / "miniwob.yaml").read_text(encoding="utf-8"))
    used = {goal.id: goal for goal in load_goals(GOALS).values() if goal.world == WORLD}
    return used | {page: Goal(page, WORLD, page, 4, STEPS) for page in excluded}


class RandomAgent:
    """Clicks any element on the screen, or types any word of the instruction: drawn anew at each step of an instance.

    All actions are as likely, at any temperature. The same seed and the same screens give the same actions.
    """

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [self._of(context, samples, seed) for context in contexts]

    def _of(self, context: Context, samples: int, seed: str) -> list[Candidate]:
        names = [f"{seed}/{context.instruction}/{len(context.history)}/{number}" for number in range(samples)]
        drawn = Counter(_drawn(context, random.Random(name)) for name in names)
        ranked = sorted(drawn.items(), key=lambda item: (-item[1], str(item[0])))
        return [Candidate(action, count) for action, count in ranked]


def _drawn(context: Context, chooser: random.Random) -> Action:
    clicks = [Action.click(element) for element in context.observation.elements]
    typings = [Action(Kind.TYPE, text=word) for word in context.instruction.split()]
    return chooser.choice(chooser.choice([clicks or typings, typings]))
