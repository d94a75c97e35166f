"""What each filter of the agent's data is worth: ``python -m benchmarks.filters``, after a round.

The round's explored paths are filtered anew: as the parameters say, and with each filter off in turn. The world says
how much of what would be imitated is wrong. With ``--per-goal`` the agent that the round began with is trained on each
arm's rows, and replayed ones, as ``train_agent`` does, and plays so many fresh instances of each goal.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import within
from benchmarks.held_out import measure
from benchmarks.retraining import began_with, earlier, quiet, schedule
from environments.registry import load_goals
from models.network import load_base
from models.packing import Sample
from models.training import train
from models.tuning import save_tuned, with_tuned
from tasks.acceptance import Bar, Rejection, judge
from tasks.base import location
from tasks.curriculum.plan import Plan
from tasks.files import REHEARSAL, ROUND, read_json
from tasks.filter import agent_rows
from tasks.params import Params, load_params
from tasks.records import AgentRow, Trajectory, read_trajectories, write_rows, write_trajectories
from tasks.stages import pin
from tasks.train import agent_samples, news, replayed


@dataclass(frozen=True, slots=True)
class Arm:
    """What is imitated: the paths that are not rejected, but for a reason that is ``let_in``."""

    bar: Bar
    max_per_goal: int
    let_in: Rejection | None = None

    def paths(self, explored: Sequence[Trajectory]) -> list[Trajectory]:
        """Those that are imitated."""
        verdicts = judge(explored, self.bar, self.max_per_goal)
        return [one for one in explored if verdicts[one.id] in (None, self.let_in)]


def arms(params: Params) -> dict[str, Arm]:
    """Of each filter that is off, what the others let through."""
    bar, most = Plan.read().applied(params).filter.bar, params.filter.max_per_goal
    return {
        "none": Arm(bar, most),
        "accept": Arm(replace(bar, outcome=0.0), most),
        "min_step": Arm(replace(bar, step=0.0), most),
        "quoted": Arm(replace(bar, quoted=False), most),
        "hasty": Arm(bar, most, Rejection.HASTY),
        "best": Arm(bar, most, Rejection.NOT_BEST),
        "max_per_goal": Arm(bar, most, Rejection.OVER_LIMIT),
    }


def row_of(arm: Arm, explored: Sequence[Trajectory], verdicts: Mapping[str, bool]) -> dict[str, int]:
    """What an arm imitates: paths, those that the world calls wrong, needless actions of the others, rows.

    Needless are the actions that a right path has more than the shortest right one of its instance.
    """
    least: dict[str, int] = {}
    for one in (one for one in explored if verdicts.get(one.id)):
        name, length = one.episode.instance.name, len(one.episode.acts)
        least[name] = min(length, least.get(name, length))
    paths = arm.paths(explored)
    judged = [one for one in paths if one.id in verdicts]
    right = [one.episode for one in judged if verdicts[one.id]]
    return {
        "paths": len(paths),
        "judged": len(judged),
        "wrong": len(judged) - len(right),
        "needless": sum(len(episode.acts) - least[episode.instance.name] for episode in right),
        "rows": len(agent_rows(paths, arm.bar)),
    }


def trained(arm: Arm, explored: Sequence[Trajectory], params: Params, folder: Path) -> None:
    """Write the agent that has learnt from an arm's rows, and as many replayed ones."""
    settings = params.train_agent
    base = load_base(location("agent"), params.numerics.dtype, params.prompt.screenshots)
    network = with_tuned(base, began_with("agent"), trainable=True)
    paths = arm.paths(explored)
    with TemporaryDirectory(prefix="ratchet-filters-") as kept:
        write_trajectories(Path(kept), paths)
        write_rows(Path(kept) / "agent_rows.parquet", AgentRow, agent_rows(paths, arm.bar))
        fresh = agent_samples(Path(kept), network)
        known: list[Sample] = [sample for part in earlier() for sample in agent_samples(part, network)]
        older = replayed(known, settings.replay, len(fresh), params.seed)
        samples = news(network, [*fresh, *older, *agent_samples(REHEARSAL, network)], settings)
        train(network, samples, schedule(settings, params), Path(kept), quiet)
    folder.mkdir()
    save_tuned(network, folder)


def played(arm: Arm, explored: Sequence[Trajectory], params: Params, per_goal: int) -> tuple[int, int]:
    """Of how many fresh instances the arm's agent solved how many: (solved, of)."""
    with TemporaryDirectory(prefix="ratchet-filters-") as kept:
        checkpoint = Path(kept) / "agent"
        trained(arm, explored, params, checkpoint)
        found = measure(load_goals(Path(params.goals)).values(), per_goal, checkpoint, Path(kept) / "played").values()
    return sum(one["solved"] for one in found), sum(one["n"] for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-goal", type=int, default=0, help="fresh instances of each goal; 0 trains nothing")
    per_goal = parser.parse_args().per_goal
    params = load_params()
    pin(params.numerics)
    explored = list(read_trajectories(ROUND / "scored"))
    verdicts = read_json(ROUND / "evaluation" / "explored.json")["verdicts"]
    found: dict[str, dict[str, float]] = {}
    print(f"{'off':14} {'paths':>5} {'wrong':>10} {'needless':>8} {'rows':>5}  solved")
    for name, arm in arms(params).items():
        counts = row_of(arm, explored, verdicts)
        wrong = f"{counts['wrong']} of {counts['judged']}"
        line = f"{name:14} {counts['paths']:5} {wrong:>10} {counts['needless']:8} {counts['rows']:5}"
        found[name] = {"wrong": counts["wrong"] / max(1, counts["judged"])}
        if per_goal:
            solved, of = played(arm, explored, params, per_goal)
            line += f"  {solved}/{of} {within(solved, of)}"
            found[name]["solved"] = solved / of
        print(line, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
