"""What the search makes of its time: ``python -m benchmarks.search`` in a workspace that ``make round`` has seeded.

Three questions, on this workspace's champions: how many candidate actions a second are scored, by what they share;
what share of the time the models and the worlds are at work; and how often greedy, best-of-N and beam reach the goal
within the same budget of steps, the world being the judge.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import within
from environments.registry import load_goals, open_world
from environments.types import Action, Candidate, Goal, Instance, Observation, Start, World
from models.calibration import Calibration
from models.engine import Source, members
from models.prompts import Context, context_of
from models.roles import Agent, RewardModel, load_reward_model
from tasks.files import DEMONSTRATIONS, STATE
from tasks.params import Params, load_params
from tasks.records import read_trajectories
from tasks.search import Proposer, Scorer, Search, find
from tasks.search.walker import Walker
from tasks.stages import pin
from tasks.workers import JSON, crew, hands, spread
from tasks.workers.serving import engines

FIRST_SEED = 1_900_000_000  # held out, and of no round
CANDIDATES, REPEATS = 10, 3
SCREENSHOTS = 5  # past ones in the prompts that are scored, as in UI-Genie's
NAIVE, STEP, STEPS, TRAJECTORY = "nothing shared", "a step", "a step, the past remembered", "a trajectory"


@dataclass
class Clock:
    """Seconds at work, by what."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] = self.spent.get(what, 0.0) + time.perf_counter() - began


class TimedWorld:
    """A world whose resets and steps are timed."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world, self._clock = world, clock

    def reset(self, goal: Goal, seed: int) -> Start:
        with self._clock.of("world"):
            return self._world.reset(goal, seed)

    def step(self, action: Action) -> Observation:
        with self._clock.of("world"):
            return self._world.step(action)

    @property
    def ended(self) -> bool:
        return self._world.ended

    def verdict(self) -> bool:
        return self._world.verdict()

    def close(self) -> None:
        self._world.close()


class TimedModels:
    """Agent and reward model whose work is timed."""

    def __init__(self, agent: Proposer, judge: Scorer, clock: Clock) -> None:
        self._agent, self._judge, self._clock = agent, judge, clock

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        with self._clock.of("model"):
            return self._agent.propose(contexts, samples, temperature, seed, likeliest)

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        with self._clock.of("model"):
            return self._judge.score(contexts, actions)


class Greedily:
    """An agent asked for its one best answer."""

    def __init__(self, models: TimedModels) -> None:
        self._models = models

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[replace(option, count=samples) for option in row] for row in self._models.propose(contexts, 1, 0.0)]

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        return self._models.score(contexts, actions)


METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "best_of_n", "paths": 1},
    "best-of-N": {"method": "best_of_n", "paths": 4},
    "beam": {"method": "beam", "paths": 2},
    "beam, rewards alone": {"method": "beam", "paths": 2, "prior": 0.0},
}


def make_player(params: Params, source: Source) -> Callable[[tuple[str, Instance]], list[dict[str, Any]]]:
    """What searches one instance by one method: the verdict on the path it chose, on any path, steps, seconds."""
    engine, reward = source.engine(STATE / "agent"), load_reward_model(source, STATE / "reward")

    def play(unit: tuple[str, Instance]) -> list[dict[str, Any]]:
        method, instance = unit
        clock, began = Clock(), time.perf_counter()
        models = TimedModels(Agent(engine.fresh()), reward.fresh(), clock)
        budget = 2 * instance.goal.max_steps
        explore = params.explore.model_copy(update={**METHODS[method], "budget_steps": budget})
        with closing(TimedWorld(open_world(instance.goal.world), clock)) as world:
            proposer = Greedily(models) if method == "greedy" else models
            search = Search(world, proposer, models, instance, explore, instance.name)
            episodes = find(search)
            wall = time.perf_counter() - began
            judge = Walker(world, instance)
            chosen = max(episodes, key=lambda episode: episode.outcome or 0.0)
            line = {"method": method, "steps": search.walker.taken, "replayed": search.walker.replayed, "wall": wall}
            return [
                {
                    **line,
                    **clock.spent,
                    "success": judge.verdict(chosen),
                    "any": any(judge.verdict(episode) for episode in episodes),
                }
            ]

    return play


def scoring(params: Params, source: Source) -> dict[str, float]:
    """Candidate actions scored a second, by what is encoded once: nothing, a step's prompt, what steps share.

    ``a trajectory`` has all its steps and candidates in one pass.
    """
    import torch

    torch.set_num_threads(params.numerics.threads)
    engine = source.engine(members(STATE / "reward")[0])
    paths = list(_paths())
    actions = [[_candidates(context) for context in path] for path in paths]

    def one_by_one(path: list[Context], options: list[list[Action]]) -> None:
        for context, candidates in zip(path, options, strict=True):
            for candidate in candidates:
                RewardModel(engine.fresh(), Calibration()).score([context], [[candidate]])

    def step_by_step(path: list[Context], options: list[list[Action]]) -> None:
        for context, candidates in zip(path, options, strict=True):
            RewardModel(engine.fresh(), Calibration()).score([context], [candidates])

    def remembered(path: list[Context], options: list[list[Action]]) -> None:
        judge = RewardModel(engine.fresh(), Calibration())
        for context, candidates in zip(path, options, strict=True):
            judge.score([context], [candidates])

    def at_once(path: list[Context], options: list[list[Action]]) -> None:
        RewardModel(engine.fresh(), Calibration()).score(path, options)

    ways = {NAIVE: one_by_one, STEP: step_by_step, STEPS: remembered, TRAJECTORY: at_once}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    count = sum(len(candidates) for options in actions for candidates in options)
    for _ in range(REPEATS):
        for name, way in ways.items():
            began = time.perf_counter()
            for path, options in zip(paths, actions, strict=True):
                way(path, options)
            rates[name].append(count / (time.perf_counter() - began))
    return {name: median(found) for name, found in rates.items()}


def _paths() -> Iterator[list[Context]]:
    """The steps of the longest demonstrations: the most that steps share."""
    longest = sorted(read_trajectories(DEMONSTRATIONS), key=lambda item: -len(item.episode.acts))
    for trajectory in longest[:3]:
        yield [context_of(trajectory.episode, place) for place in range(len(trajectory.episode.acts))]


def _candidates(context: Context) -> list[Action]:
    clicks = [Action.click(element) for element in context.observation.elements]
    return [clicks[place % len(clicks)] for place in range(CANDIDATES)]


def searches(params: Params, source: Source, per_goal: int, scratch: Path) -> list[dict[str, Any]]:
    """Every method on every goal's instances."""
    goals = load_goals(Path(params.goals)).values()
    units = [
        (f"{method}-{goal.id}-{n}.json", (method, Instance(goal, FIRST_SEED + n)))
        for method in METHODS
        for goal in goals
        for n in range(per_goal)
    ]
    with crew(make_player, (params, source), hands(params)) as workers:
        return list(spread("search", workers, units, scratch, JSON, lambda unit: unit[1].goal.max_steps))


def report(rates: dict[str, float], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Print the tables; returns the ratios."""
    print(f"\n{'scoring, ' + str(CANDIDATES) + ' candidates a step':34}  actions/s   ratio")
    for name, rate in rates.items():
        print(f"{name:34}  {rate:9.1f}  {rate / rates[NAIVE]:6.2f}")
    print(f"\n{'method':20}  {'success':>22}  any path  steps  replayed  s/instance  model  world")
    ratios: dict[str, Any] = {
        "prefix_over_naive": rates[STEP] / rates[NAIVE],
        "steps_over_step": rates[STEPS] / rates[STEP],
        "trajectory_over_step": rates[TRAJECTORY] / rates[STEP],
    }
    for method in METHODS:
        rows = [row for row in found if row["method"] == method]
        wins, count = sum(row["success"] for row in rows), len(rows)
        mean = {key: sum(row[key] for row in rows) / count for key in ("any", "steps", "replayed", "wall")}
        wall = sum(row["wall"] for row in rows)
        model, world = (sum(row.get(key, 0.0) for row in rows) / wall for key in ("model", "world"))
        name = method.replace(", ", "_").replace(" ", "_")
        ratios[f"success_{name}"], ratios[f"busier_share_{name}"] = wins / count, max(model, world)
        print(
            f"{method:20}  {wins:3}/{count:3} = {wins / count:.2f} {within(wins, count)}  {mean['any']:8.2f}  "
            f"{mean['steps']:5.1f}  {mean['replayed']:8.1f}  {mean['wall']:10.1f}  {model:.3f}  {world:.3f}"
        )
    ratios["busier_share"] = ratios["busier_share_beam"]
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-goal", type=int, default=3, help="instances of each goal")
    arguments = parser.parse_args()
    params = load_params()
    pin(params.numerics)
    adapters = [STATE / "agent", STATE / "reward"]
    with engines("search", params, adapters) as source, TemporaryDirectory(prefix="ratchet-search-") as scratch:
        rates = scoring(params, replace(source, screenshots=SCREENSHOTS))
        found = searches(params, source, arguments.per_goal, Path(scratch))
    print(json.dumps(report(rates, found)))


if __name__ == "__main__":
    main()
