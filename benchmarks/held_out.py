"""How often an agent reaches goals on fresh instances: ``python -m benchmarks.held_out --goals data/goals/more.yaml``.

Plays greedy episodes in this workspace with its champion agent, or that of ``--agent``; the world is the judge. The
last line is a JSON object: of each goal its tier, and how many of how many instances were solved.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import within
from environments.registry import load_goals
from environments.types import Goal, Instance
from models.engine import Engine, Source
from models.roles import Agent
from tasks.files import STATE
from tasks.params import load_params
from tasks.search import Proposer
from tasks.search.rollout import greedy
from tasks.stages import pin
from tasks.workers import JSON, crew, hands, spread
from tasks.workers.serving import engines

FIRST_SEED = 1_800_000_000  # of no round, no demonstration, no evaluation
TOGETHER = 25  # episodes of a goal that a worker plays at a time


def make_player(
    agent: Callable[[Engine], Proposer], source: Source, checkpoint: Path
) -> Callable[[Sequence[Instance]], list[dict[str, Any]]]:
    """What plays some instances of a goal."""
    engine = source.engine(checkpoint)

    def play(instances: Sequence[Instance]) -> list[dict[str, Any]]:
        return [
            {"goal": episode.instance.goal.id, "tier": episode.instance.goal.tier, "solved": solved}
            for episode, solved in greedy(agent(engine.fresh()), instances)
        ]

    return play


def measure(
    goals: Iterable[Goal],
    per_goal: int,
    checkpoint: Path,
    kept: Path,
    agent: Callable[[Engine], Proposer] = Agent,
    first: int = 0,
) -> dict[str, dict[str, int]]:
    """Of each goal its tier, and how many of ``n`` instances, from the ``first`` on, were solved.

    What is finished lies in ``kept``.
    """
    params = load_params()
    pin(params.numerics)
    units = [
        (
            f"{goal.id}-{start}.json",
            [Instance(goal, FIRST_SEED + n) for n in range(start, min(start + TOGETHER, first + per_goal))],
        )
        for goal in goals
        for start in range(first, first + per_goal, TOGETHER)
    ]
    with (
        engines("held_out", params, [checkpoint]) as source,
        crew(make_player, (agent, source, checkpoint), hands(params)) as workers,
    ):
        lines = list(spread("held out", workers, units, kept, JSON, lambda unit: unit[0].goal.max_steps))
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        counts = found.setdefault(line["goal"], {"tier": line["tier"], "solved": 0, "n": 0})
        counts["solved"] += line["solved"]
        counts["n"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goals", type=Path, default=Path(load_params().goals))
    parser.add_argument("--per-goal", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--agent", type=Path, default=STATE / "agent", help="a checkpoint")
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="ratchet-held-out-") as kept:
        found = measure(load_goals(asked.goals).values(), asked.per_goal, asked.agent, Path(kept), first=asked.first)
    for goal, counts in found.items():
        wins, of = counts["solved"], counts["n"]
        print(f"{counts['tier']} {goal:28} {wins:4}/{of:<4} {within(wins, of)}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
