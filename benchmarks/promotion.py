"""How often promotion errs: ``python -m benchmarks.promotion [WORKSPACE]``.

Paired decisions by the code that rounds use. Each decision resamples rollouts on held-out instances: of every instance,
champion and challenger solve it with the chances below, independently of one another. With the same chances for both
(A/A) every promotion is a false one; with a true gain it is a hit.

The chances come from the evaluations of the workspace's rounds (of a goal: the share of its rollouts, by champion and
challenger, that solved it, shrunk by half a success and half a failure), or, where there is none, are simulated: spread
evenly over 0..1. A gain multiplies the odds of all goals alike, so that the mean chance rises by the gain.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks.figures import within
from tasks import versions
from tasks.decide import decide
from tasks.evidence.looks import Verdict, until_settled
from tasks.records import read_trajectories
from tasks.rounds import past_rounds

GAINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
SIMULATED_GOALS = 12
ALPHA = 0.05
QUIET: dict[str, list[str]] = {"agent": [], "reward": []}


@dataclass(frozen=True)
class Design:
    """How many instances of each goal a look adds, in the mean, and how many looks there may be."""

    per_goal: int
    looks: int


@dataclass(frozen=True)
class Outcome:
    """Of so many decisions how many promoted, and the mean number of looks they took."""

    promoted: int
    decisions: int
    mean_looks: float

    def __str__(self) -> str:
        rate, interval = self.promoted / self.decisions, within(self.promoted, self.decisions, 4)
        return f"{rate:.4f} {interval}  {self.mean_looks:.2f} looks"


def goal_rates(rollouts: dict[str, list[bool]]) -> NDArray[np.float64]:
    """The chance of each goal."""
    return np.array([(sum(found) + 0.5) / (len(found) + 1) for found in rollouts.values()])


def of_workspace() -> NDArray[np.float64]:
    """The chances in the evaluations of all rounds; none without a round."""
    rollouts: dict[str, list[bool]] = defaultdict(list)
    for made in past_rounds():
        with versions.checked_out(made.tag, "data/round/evaluation") as folder:
            for trajectory in read_trajectories(folder):
                rollouts[trajectory.episode.instance.goal.id].append(bool(trajectory.verdict))
    return goal_rates(rollouts)


def raised(rates: NDArray[np.float64], gain: float) -> NDArray[np.float64]:
    """The chances with all odds multiplied alike, so that their mean is higher by ``gain``."""
    if gain == 0:
        return rates
    odds = rates / (1 - rates)

    def mean_gain(shift: float) -> float:
        moved = odds * np.exp(shift)
        return float((moved / (1 + moved)).mean() - rates.mean() - gain)

    moved: NDArray[np.float64] = odds * np.exp(brentq(mean_gain, 0, 30))
    return moved / (1 + moved)


def simulate(
    rates: NDArray[np.float64], gain: float, design: Design, decisions: int, random: np.random.Generator
) -> Outcome:
    chances = np.stack([rates, raised(rates, gain)])
    made = [_decision(chances, design, random) for _ in range(decisions)]
    promoted, looks = (sum(decision[figure] for decision in made) for figure in ("promoted", "look"))
    return Outcome(promoted, decisions, looks / decisions)


def _decision(chances: NDArray[np.float64], design: Design, random: np.random.Generator) -> dict[str, Any]:
    """One, its looks taken until it is settled. ``chances``: model, goal."""
    goals = {f"goal-{place}": chance for place, chance in enumerate(chances.T)}

    def play(look: int, added: dict[str, int]) -> list[Verdict]:
        return [
            Verdict(look=look, goal=goal, tier=1, seed=seed, champion=old, challenger=new)
            for goal, chance in goals.items()
            for seed, (old, new) in enumerate((random.random((added[goal], 2)) < chance).tolist())
        ]

    episodes = until_settled(list(goals), design.per_goal, design.looks, ALPHA, play)
    made: dict[str, Any] = decide(episodes, [], ALPHA, design.looks, QUIET)["agent"]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", nargs="?", type=Path, default=Path())
    parser.add_argument("--decisions", type=int, default=10_000, help="of the long A/A run")
    parser.add_argument("--power-decisions", type=int, default=1000, help="for each gain")
    asked = parser.parse_args()
    os.chdir(asked.workspace)
    random = np.random.default_rng(0)
    measured = of_workspace()
    source = f"{len(measured)} goals of the workspace's evaluations" if len(measured) else "simulated, even over 0..1"
    rates = measured if len(measured) else (np.arange(SIMULATED_GOALS) + 0.5) / SIMULATED_GOALS
    print(f"success rates: {source}; mean {rates.mean():.3f}")
    designs = (Design(3, 1), Design(9, 1), Design(3, 3), Design(2, 8))
    table = []
    for design in designs:
        print(
            f"\n{design.per_goal} instances of {len(rates)} goals a look, {design.looks} looks at most, alpha {ALPHA}"
        )
        runs = [(0.0, 40), (0.0, asked.decisions), *((gain, asked.power_decisions) for gain in GAINS[1:])]
        for gain, decisions in runs:
            if rates.mean() + gain < 1:
                outcome = simulate(rates, gain, design, decisions, random)
                print(f"  gain {gain:.2f}, {decisions:6d} decisions: promoted {outcome}", flush=True)
                table.append({**vars(design), "gain": gain, **vars(outcome)})
    print(json.dumps({"source": source, "mean_rate": round(float(rates.mean()), 4), "alpha": ALPHA, "table": table}))


if __name__ == "__main__":
    main()
