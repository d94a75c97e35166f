"""What a few demonstrations of each goal teach the base: ``python -m benchmarks.demonstrations --demonstrations 5``.

The base learns from so many oracle episodes of each goal, and goes over exercises, as in its warm start; then it plays
instances it has not seen, greedily, the world being the judge, and goals that nothing was trained on. ``--way`` shows
it blank pictures throughout, or no element lists, so that all it knows of a screen is read off the picture.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.eyes import WAYS, Way
from environments.registry import load_goals, open_world
from environments.types import Action, Candidate, Goal, Instance
from models.inference import TorchEngine
from models.network import Network, load_base
from models.packing import Sample, imitation
from models.prompts import Context, context_at
from models.roles import Agent
from models.training import Schedule, train
from models.tuning import Tuning, tunable
from tasks.base import location
from tasks.demonstrate import demonstrate
from tasks.filter import agent_rows
from tasks.params import load_params
from tasks.records import Origin, Trajectory
from tasks.rehearse import exercises
from tasks.rollout import greedy
from tasks.statistics import wilson

GOALS = Path(__file__).parents[1] / "data" / "goals"
EYES = ("click-color", "identify-shape", "click-shape", "count-shape")
UNSEEN = (
    "click-test-transfer", "click-checkboxes-transfer", "enter-text-dynamic", "multi-orderings", "click-tab-2-hard",
    "email-inbox-noscroll", "read-table-2", "choose-date-medium",
)  # fmt: skip
FIRST_SEED = 1_800_000_000  # held out, and of no round
TOGETHER = 8  # episodes that advance side by side


class Shown:
    """An agent that is shown screens in another way."""

    def __init__(self, agent: Agent, way: Way) -> None:
        self._agent, self._way = agent, way

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = ""
    ) -> list[list[Candidate]]:
        return self._agent.propose([self._way(context) for context in contexts], samples, temperature, seed)


def groups() -> dict[str, list[Goal]]:
    """The goals that are trained on, by what they need, and those that are not."""
    known = load_goals(GOALS)
    text = [goal for goal in load_goals(GOALS / "starter.yaml").values() if goal.page not in EYES]
    return {
        "text": text,
        "eyes": [goal for goal in known.values() if goal.page in EYES],
        "unseen": [goal for goal in known.values() if goal.page in UNSEEN],
    }


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
        episode = trajectory.episode
        for row in agent_rows([trajectory], 0.0):
            screen = episode.acts[row.step].observation if row.step < len(episode.acts) else episode.last
            context = way(context_at(episode.instruction, episode.acts[: row.step], screen))
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


def learn(network: Network, found: Sequence[Sample], schedule: Schedule) -> float:
    """Train an adapter in place; returns the seconds it took."""
    began = time.perf_counter()
    with TemporaryDirectory(prefix="ratchet-demonstrations-") as scratch:
        train(network, found, schedule, Path(scratch), _report)
    return time.perf_counter() - began


def _report(update: int, loss: float) -> None:
    if update % 10 == 0:
        print(f"update {update}, loss {loss:.3f}", flush=True)


def success(agent: Shown, goal: Goal, episodes: int) -> int:
    """How many held-out instances of a goal are reached."""
    instances = [Instance(goal, FIRST_SEED + number) for number in range(episodes)]
    batches = [instances[start : start + TOGETHER] for start in range(0, episodes, TOGETHER)]
    return sum(verdict for batch in batches for _, verdict in greedy(agent, batch))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demonstrations", type=int, default=5, help="of each goal")
    parser.add_argument("--updates", type=int, default=40, help="of training")
    parser.add_argument("--episodes", type=int, default=50, help="held-out instances of each goal")
    parser.add_argument("--way", choices=WAYS, default="both", help="what is shown of a screen")
    arguments = parser.parse_args()
    params = load_params()
    network = load_base(location("agent"), params.numerics.dtype, params.prompt.screenshots)
    found, seconds, way = groups(), 0.0, WAYS[arguments.way]
    if arguments.demonstrations:
        network = tunable(network, Tuning(**params.tune.model_dump()), params.seed)
        shown = demonstrated(found["text"] + found["eyes"], arguments.demonstrations)
        taught = samples(network, [*shown, *exercises(params.rehearse.exercises)], way)
        settings = params.warm_agent
        schedule = Schedule(arguments.updates, settings.batch_rows, settings.learning_rate, params.seed)
        seconds = learn(network, taught, schedule)
        print(f"{len(taught)} steps, {arguments.updates} updates in {seconds:.0f} s", flush=True)
    engine = TorchEngine(network)
    ratios: dict[str, float] = {}
    for name, goals in found.items():
        wins = 0
        for goal in goals:
            reached = success(Shown(Agent(engine.fresh()), way), goal, arguments.episodes)
            wins += reached
            print(f"{name:8} {goal.id:28} {reached:3}/{arguments.episodes}", flush=True)
        count = len(goals) * arguments.episodes
        low, high = wilson(wins, count) or (0.0, 1.0)
        print(f"{name:8} {'all':28} {wins:3}/{count} = {wins / count:.3f} [{low:.3f}, {high:.3f}]", flush=True)
        ratios[name] = wins / count
    print(json.dumps({"demonstrations": arguments.demonstrations, "way": arguments.way, "seconds": seconds, **ratios}))


if __name__ == "__main__":
    main()
