"""What the benchmarks of the worlds share: every page of the package as a goal, and a policy that wanders over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from environments.registry import load_goals
from environments.types import Candidate, Goal
from models.baselines import RandomAgent
from models.prompts import Context

GOALS = Path(__file__).parents[1] / "data" / "goals"
WORLD = "environments.miniwob:MiniWoB"
STEPS = 10  # of an episode on a page that is no goal


def goals() -> dict[str, Goal]:
    """The goals of the package, those in use first, then the excluded pages."""
    excluded = yaml.safe_load((GOALS / "excluded" / "miniwob.yaml").read_text(encoding="utf-8"))
    used = {goal.id: goal for goal in load_goals(GOALS).values() if goal.world == WORLD}
    return used | {page: Goal(page, WORLD, page, 4, STEPS) for page in excluded}


class Wanderer:
    """A random agent whose draws are named: the same name and the same screens give the same actions."""

    def __init__(self, name: str) -> None:
        self._name = name

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        names = [f"{self._name}/{seed}/{len(context.history)}" for context in contexts]
        return [RandomAgent().propose([c], samples, temperature, n)[0] for c, n in zip(contexts, names, strict=True)]
