"""Stage explore: reward-guided search in every goal instance of the round, spread over worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from environments.registry import load_goals, open_world
from environments.types import End, Episode, Goal, Instance, Observation, WorldError
from models.engine import Source
from models.roles import Agent, load_reward_model
from tasks.acceptance import rejection
from tasks.curriculum.plan import Plan, Proposal
from tasks.errors import ParamsError
from tasks.files import ROUND, STATE, digest
from tasks.params import Params
from tasks.progress import log
from tasks.records import Origin, Trajectory
from tasks.score import score_episode
from tasks.search import Proposer, Scorer, Search, find, roll_on
from tasks.stages import scratch
from tasks.workers import TRAJECTORIES, crew, hands, spread
from tasks.workers.serving import engines


def run(params: Params) -> None:
    """Search every instance of ``instances.json``. Writes ``data/round/explored``."""
    plan = Plan.read()
    goals = load_goals(Path(params.goals))
    if unknown := {one.goal for one in plan.instances} - goals.keys():
        raise ParamsError(
            f"goal {min(unknown)!r}: not in {params.goals}; put it back, or run `dvc repro -s -f propose`"
        )
    instances = [(_instance(goals, one), one.temperature) for one in plan.instances]
    units = [(unit[0].name, unit) for unit in instances]
    with (
        engines("explore", params, [STATE / "agent", STATE / "reward"]) as source,
        crew(make_worker, (plan.applied(params), plan.round, source), hands(params)) as workers,
    ):
        found = spread("explore", workers, units, scratch("explore"), TRAJECTORIES, lambda unit: unit[0].goal.max_steps)

    TRAJECTORIES.write(ROUND / "explored", found)


def make_worker(
    params: Params, number: int, source: Source
) -> Callable[[tuple[Instance, float | None]], list[Trajectory]]:
    """What explores one instance with the champions, at a temperature, None for that of the parameters."""
    agent, reward = source.engine(STATE / "agent"), load_reward_model(source, STATE / "reward")
    models = digest(STATE / "agent"), digest(STATE / "reward")

    def work(unit: tuple[Instance, float | None]) -> list[Trajectory]:
        instance, temperature = unit
        return explore(instance, Agent(agent.fresh()), reward.fresh(), _at(temperature, params), number, models)

    return work


def _instance(goals: Mapping[str, Goal], one: Proposal) -> Instance:
    goal = goals[one.goal]
    return Instance(replace(goal, max_steps=one.max_steps or goal.max_steps), one.seed, one.instruction)


def _at(temperature: float | None, params: Params) -> Params:
    if temperature is None:
        return params
    return params.model_copy(update={"explore": params.explore.model_copy(update={"temperature": temperature})})


def explore(
    instance: Instance, agent: Proposer, judge: Scorer, params: Params, number: int, models: tuple[str, str]
) -> list[Trajectory]:
    """The trajectories of one goal instance: the search's paths, scored, then continuations of those that failed.

    ``number`` is the round's, ``models`` the content hashes of agent and reward model. A world that breaks
    leaves one crashed trajectory, so that the round goes on and says so.
    """
    seed = f"{params.seed}/{number}/{instance.name}"
    prefix = f"round-{number:04d}/{instance.name}"

    def record(place: int, episode: Episode, origin: Origin, parent: str = "", shared: int = 0) -> Trajectory:
        return Trajectory(f"{prefix}/{place}", number, origin, episode, *models, parent, shared)

    with closing(open_world(instance.goal.world)) as world:
        try:
            search = Search(world, agent, judge, instance, params.explore, seed)
            found = [score_episode(episode, judge) for episode in find(search)]
            paths = [record(place, episode, Origin.SEARCH) for place, episode in enumerate(found)]
            continued = roll_on(search, failed(paths, params))
        except WorldError as error:
            log.warning("%s: the world broke: %s", instance.name, error)
            nothing = Episode(instance, "", (), Observation(b"", ()), End.CRASHED)
            return [record(0, nothing, Origin.SEARCH)]
    return paths + [
        record(len(paths) + place, item.episode, Origin.CONTINUATION, paths[item.parent].id, item.shared)
        for place, item in enumerate(continued)
    ]


def failed(paths: Sequence[Trajectory], params: Params) -> list[tuple[int, Episode]]:
    """The best of the failed paths, where no path counts as solved: (number, episode)."""
    if any(rejection(path, params.filter.bar) is None for path in paths):
        return []
    ranked = sorted(
        ((place, path.episode) for place, path in enumerate(paths)), key=lambda one: -(one[1].outcome or 0.0)
    )
    return [(number, episode) for number, episode in ranked if len(episode.steps) > 1][: params.explore.continue_paths]
