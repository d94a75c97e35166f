"""The rounds of this workspace as a picture: ``python -m benchmarks.rounds docs/rounds.png``.

Held-out success of the agent, and F1 of the reward model on live steps and outcomes, of champion and challenger
in each tagged round, with 95% intervals. Read from git: the figures are those that were committed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS = {"champion": "#8a8f98", "challenger": "#1f6feb"}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def read() -> dict[str, dict[str, Any]]:
    """Metrics and decision by tag."""
    tags = git("tag", "--list", "round-*", "--sort=refname").split()
    files = {"metrics": "data/round/metrics.json", "decision": "data/round/decision.json"}
    return {tag: {name: json.loads(git("show", f"{tag}:{path}")) for name, path in files.items()} for tag in tags}


def bars(axes: Axes, title: str, values: list[dict[str, tuple[float, float, float]]], tags: list[str]) -> None:
    """A pair of bars a round: value, low, high of champion and challenger."""
    for place, of_round in enumerate(values):
        for side, (model, (value, low, high)) in enumerate(of_round.items()):
            error = [[max(0.0, value - low)], [max(0.0, high - value)]]
            label = model if place == 0 else None
            x = place + 0.38 * (side - 0.5)
            axes.bar(x, value, 0.36, color=COLOURS[model], label=label, yerr=error, capsize=3, ecolor="#333")
            axes.text(x, 0.02, f"{value:.2f}", ha="center", color="white", fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_xticks(range(len(tags)), [tag.replace("round-", "round ").replace(" 000", " ") for tag in tags])
    axes.set_ylim(0, 1)
    axes.spines[["top", "right"]].set_visible(False)


def figure(metrics: dict[str, Any], model: str, query: str) -> tuple[float, float, float]:
    live = metrics["reward"][model][query]["live"]
    return tuple(live[name] or 0.0 for name in ("f1", "f1_low", "f1_high"))


def main() -> None:
    rounds = read()
    tags = list(rounds)
    _, axes = plt.subplots(1, 3, figsize=(11, 3.4), constrained_layout=True)
    overall = [
        {m: tuple(r["metrics"]["agent"][m]["overall"][k] for k in ("rate", "low", "high")) for m in COLOURS}
        for r in rounds.values()
    ]
    bars(axes[0], "Agent: held-out goals reached", overall, tags)
    for place, query in ((1, "step"), (2, "outcome")):
        values = [{m: figure(r["metrics"], m, query) for m in COLOURS} for r in rounds.values()]
        bars(axes[place], f"Reward model: F1, live {query}s", values, tags)
    axes[0].legend(frameon=False, fontsize=8)
    plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "rounds.png", dpi=120)


if __name__ == "__main__":
    main()
