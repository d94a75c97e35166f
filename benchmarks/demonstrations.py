"""What a few demonstrations of each goal teach the base: ``python -m benchmarks.demonstrations --demonstrations 5``.

The base learns from so many oracle episodes of each goal, and goes over exercises, as in its warm start; then it plays
instances it has not seen, greedily, the world being the judge, and goals that nothing was trained on. ``--way`` shows
it blank pictures throughout, or no element lists, so that all it knows of a screen is read off the picture; or lets a
random agent play.

A benchmark that was stopped goes on; delete its ``--folder`` to begin anew.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.climb import UNSEEN
from benchmarks.eyes import WAYS, Way
from benchmarks.figures import within
from benchmarks.held_out import measure
from benchmarks.wander import RandomAgent
from environments.registry import load_goals, open_world
from environments.types import Action, Candidate, Goal, Instance
from models.engine import Engine
from models.network import Network, load_base
from models.packing import Sample, imitation
from models.prompts import Context, context_of
from models.roles import Agent
from models.training import Schedule, train
from models.tuning import Tuning, save_tuned, tunable
from tasks.acceptance import Bar
from tasks.base import location
from tasks.demonstrate import demonstrate
from tasks.files import WORK, read_json, write_json, write_whole
from tasks.filter import agent_rows
from tasks.params import load_params
from tasks.records import Origin, Trajectory
from tasks.rehearse import exercises
from tasks.search import Proposer
from tasks.stages import pin

GOALS = Path(__file__).parents[1] / "data" / "goals"
TEXT = (
    "click-test-2", "click-button", "click-link", "click-dialog-2", "click-tab", "focus-text-2",
    "click-option", "click-checkboxes", "enter-text", "choose-list", "enter-password", "login-user",
)  # fmt: skip
EYES = ("click-color", "identify-shape", "click-shape", "count-shape")
RANDOM = "random"


class Shown:
    """An agent that is shown screens in another way."""

    def __init__(self, agent: Agent, way: Way) -> None:
        self._agent, self._way = agent, way

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return self._agent.propose([self._way(context) for context in contexts], samples, temperature, seed, likeliest)


def groups() -> dict[str, list[Goal]]:
    """The goals that are trained on, by what they need, and those that are not."""
    known = load_goals(GOALS)
    named = {"text": TEXT, "eyes": EYES, "unseen": UNSEEN}
    return {name: [known[goal] for goal in ids] for name, ids in named.items()}


def demonstrated(goals: Sequence[Goal], count: int) -> Iterator[Trajectory]:
    """``count`` solved oracle episodes of each goal."""
    with closing(open_world("environments.miniwob:MiniWoB")) as world:
        for goal in goals:
            solved, seed = 0, 0
            while solved < count:
                episode = demonstrate(world, Instance(goal, seed))
                seed += 1
                if world.verdict():
                    solved += 1
                    yield Trajectory(f"{goal.id}/{seed}", 0, Origin.DEMONSTRATION, episode)


def samples(network: Network, solved: Iterable[Trajectory], way: Way) -> list[Sample]:
    """The steps of solved trajectories, shown in one way."""
    found = []
    for trajectory in solved:
        for row in agent_rows([trajectory], Bar(0.0)):
            context = way(context_of(trajectory.episode, row.step))
            found.append(imitation(network, context, named(network, context, row.action)))
    return found


def named(network: Network, context: Context, answer: str) -> str:
    """An answer by the names of the list that the network reads: a click on what it has nearest."""
    action = Action.parse(answer)
    if context.observation.elements or network.parser is None or action.point is None:
        return answer
    x, y = action.point
    listed = network.parser.listed(context.observation).elements
    nearest = min(listed, key=lambda one: (one.point[0] - x) ** 2 + (one.point[1] - y) ** 2, default=None)
    return str(action.on(nearest)) if nearest else answer


def learn(folder: Path, demonstrations: Iterable[Trajectory], updates: int, way: Way) -> float:
    """Train an adapter into ``folder/agent``, or put an untaught one there; returns the seconds of the training."""
    params = load_params()
    pin(params.numerics)
    network = load_base(location("agent"), params.numerics.dtype, params.prompt.screenshots)
    network = tunable(network, Tuning(**params.tune.model_dump()), params.seed)
    seconds = 0.0
    if taught := samples(network, demonstrations, way):
        taught += samples(network, exercises(params.rehearse.exercises), way)
        settings = params.warm_agent
        schedule = Schedule(updates, settings.batch_rows, settings.learning_rate, params.seed)
        began = time.perf_counter()
        train(network, taught, schedule, folder / "training", _report)
        seconds = time.perf_counter() - began
    write_whole(folder / "agent", partial(_store, network, {"steps": len(taught), "seconds": seconds}))
    return seconds


def _store(network: Network, told: dict[str, float], folder: Path) -> None:
    folder.mkdir()
    save_tuned(network, folder)
    write_json(folder / "history.json", told)


def _report(update: int, loss: float) -> None:
    if update % 10 == 0:
        print(f"update {update}, loss {loss:.3f}", flush=True)


def player(way: str, engine: Engine) -> Proposer:
    """What plays: the agent, shown screens in one way, or the random one."""
    return RandomAgent() if way == RANDOM else Shown(Agent(engine), WAYS[way])


def rates(counts: dict[str, dict[str, int]], group: str, goals: Sequence[Goal]) -> float:
    """Print how often each goal of a group was reached, and all; returns the share."""
    wins, count = (sum(counts[goal.id][key] for goal in goals) for key in ("solved", "n"))
    for goal in goals:
        print(f"{group:8} {goal.id:28} {counts[goal.id]['solved']:3}/{counts[goal.id]['n']}")
    print(f"{group:8} {'all':28} {wins:3}/{count} = {wins / count:.3f} {within(wins, count, 3)}", flush=True)
    return wins / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demonstrations", type=int, default=5, help="of each goal")
    parser.add_argument("--updates", type=int, default=50, help="of training: some three minutes on two cores")
    parser.add_argument("--episodes", type=int, default=50, help="held-out instances of each goal")
    parser.add_argument("--way", choices=[*WAYS, RANDOM], default="both", help="what is shown of a screen, or no model")
    parser.add_argument("--groups", nargs="+", choices=list(groups()), default=list(groups()), help="that are played")
    parser.add_argument("--folder", type=Path, default=WORK / "demonstrations")
    asked = parser.parse_args()
    folder = asked.folder / f"{asked.demonstrations}-{asked.updates}-{asked.way.replace(' ', '-')}"
    found = groups()
    if not (folder / "agent").exists():
        taught = demonstrated(found["text"] + found["eyes"], asked.demonstrations)
        learn(folder, taught, asked.updates, WAYS.get(asked.way, WAYS["both"]))
    told = read_json(folder / "agent" / "history.json")
    print(f"learnt {told['steps']} steps in {told['seconds']:.0f} s", flush=True)
    goals = [goal for group in asked.groups for goal in found[group]]
    counts = measure(goals, asked.episodes, folder / "agent", folder / "played", partial(player, asked.way))
    ratios = {group: rates(counts, group, found[group]) for group in asked.groups}
    print(json.dumps({"demonstrations": asked.demonstrations, "way": asked.way, **told, **ratios}))


if __name__ == "__main__":
    main()
