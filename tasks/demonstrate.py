"""Stage demonstrate: scripted oracles solve a few instances of each goal; the world says which ones they solved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from environments.oracles import next_action, pages
from environments.registry import load_goals, open_world
from environments.types import Action, End, Episode, Goal, Instance, Kind, Step, World
from tasks.curriculum import easy_enough
from tasks.errors import RatchetError
from tasks.files import SEED, write_whole
from tasks.filter import agent_rows
from tasks.params import Demonstrate, Params
from tasks.progress import Progress
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, write_rows, write_trajectories
from tasks.reward_data import reward_rows
from tasks.variations import variations


def run(params: Params) -> None:
    """Demonstrate each goal that is easy enough and has an oracle.

    Writes ``data/seed/demonstrations``: trajectories and rows.
    """
    easy = easy_enough(load_goals(Path(params.goals)), params.demonstrate.hardest_tier)
    goals = [goal for goal in easy.values() if goal.page in pages()]
    progress = Progress("demonstrate", len(goals))
    trajectories: list[Trajectory] = []
    for world_path in sorted({goal.world for goal in goals}):
        with closing(open_world(world_path)) as world:
            for goal in (goal for goal in goals if goal.world == world_path):
                trajectories += _of_goal(world, goal, params.demonstrate)
                progress.step(goal.id)
    write_whole(SEED / "demonstrations", lambda aside: _store(aside, trajectories, params))


def _of_goal(world: World, goal: Goal, settings: Demonstrate) -> list[Trajectory]:
    """The first ``per_goal`` solved instances, from seed 0 on, and these played otherwise.

    Raises:
        RatchetError: when the oracle solves too few of them.
    """
    solved: list[Trajectory] = []
    varied: list[Trajectory] = []
    for seed in range(settings.max_tries):
        episode = demonstrate(world, Instance(goal, seed))
        if world.verdict():
            solved.append(Trajectory(f"seed/{goal.id}/{seed}/0", 0, Origin.DEMONSTRATION, episode))
            varied += variations(world, solved[-1])
        if len(solved) == settings.per_goal:
            return [*solved, *varied]
    raise RatchetError(
        f"goal {goal.id!r}: its oracle solved {len(solved)} of {settings.max_tries} seeds, {settings.per_goal} are "
        "needed (demonstrate.per_goal); lower it, raise demonstrate.max_tries, or mend the oracle"
    )


def demonstrate(world: World, instance: Instance) -> Episode:
    """One oracle episode. Its ``complete`` is how it ends, not a step of it: a world that closes needs none."""
    start = world.reset(instance.goal, instance.seed)
    screen, steps, taken = start.observation, list[Step](), list[Action]()
    while not world.ended and len(steps) < instance.goal.max_steps:
        action = next_action(instance.goal.page, start.instruction, screen, taken)
        if action.kind is Kind.COMPLETE:
            break
        steps.append(Step(screen, action))
        taken.append(action)
        screen = world.step(action)
    end = End.WORLD if world.ended else End.COMPLETED
    return Episode(instance, start.instruction, tuple(steps), screen, end)


def _store(folder: Path, trajectories: list[Trajectory], params: Params) -> None:
    folder.mkdir()
    write_trajectories(folder, trajectories)
    solved = [one for one in trajectories if one.origin is Origin.DEMONSTRATION]
    write_rows(folder / "agent_rows.parquet", AgentRow, agent_rows(solved, 0.0))
    negatives, without = params.filter.max_negatives, params.filter.without
    rows = reward_rows(trajectories, accept=0.0, max_negatives=negatives, seed=params.seed, without=without)
    write_rows(folder / "reward_rows.parquet", RewardRow, rows)
