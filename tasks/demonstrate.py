"""Stage demonstrate: scripted oracles solve a few instances of each goal; the world says which ones they solved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from environments.oracles import next_action, pages
from environments.registry import load_goals, open_world
from environments.types import Action, End, Episode, Goal, Instance, Kind, Step, World
from tasks.acceptance import Bar
from tasks.curriculum import easy_enough
from tasks.errors import ParamsError, RatchetError
from tasks.files import CALIBRATION, DEMONSTRATIONS, write_whole
from tasks.filter import agent_rows
from tasks.params import Demonstrate, Params
from tasks.progress import Progress, log
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, write_rows, write_trajectories
from tasks.reward_data import reward_rows
from tasks.variations import variations


def run(params: Params) -> None:
    """Demonstrate each goal that is easy enough and has an oracle.

    Writes ``data/seed/demonstrations``: trajectories and rows, and in ``calibration`` those that nothing is trained on.

    Raises:
        ParamsError: no goal is.
        RatchetError: an oracle solves too few instances.
    """
    easy = easy_enough(load_goals(Path(params.goals)), params.demonstrate.hardest_tier)
    goals = [goal for goal in easy.values() if goal.page in pages()]
    if not goals:
        raise ParamsError(
            f"goals = {params.goals!r}: none of them has both an oracle and a tier up to demonstrate.hardest_tier = "
            f"{params.demonstrate.hardest_tier}, so the first models would have nothing to learn from; write an oracle "
            "(docs/adding-a-world.md) or raise demonstrate.hardest_tier"
        )
    progress = Progress("demonstrate", len(goals))
    trajectories: list[Trajectory] = []
    aside: list[Trajectory] = []
    for world_path in sorted({goal.world for goal in goals}):
        with closing(open_world(world_path)) as world:
            for goal in (goal for goal in goals if goal.world == world_path):
                for place, found in enumerate(_of_goal(world, goal, params.demonstrate)):
                    (trajectories if place < params.demonstrate.per_goal else aside).extend(found)
                progress.step(goal.id)

    def store(folder: Path) -> None:
        _store(folder, trajectories, params)
        if aside:
            _store(folder / CALIBRATION, aside, params)

    write_whole(DEMONSTRATIONS, store)


def _of_goal(world: World, goal: Goal, settings: Demonstrate) -> list[list[Trajectory]]:
    """The first solved instances, from seed 0 on, each with what the world says of it when it is played otherwise.

    Raises:
        RatchetError: when the oracle solves too few of them.
    """
    wanted = settings.per_goal + settings.calibration
    found: list[list[Trajectory]] = []
    for seed in range(settings.max_tries):
        episode = demonstrate(world, Instance(goal, seed))
        if episode.acts and world.verdict():
            solved = Trajectory(f"seed/{goal.id}/{seed}/0", 0, Origin.DEMONSTRATION, episode)
            found.append([solved, *variations(world, solved)])
        if len(found) == wanted:
            return found
    raise RatchetError(
        f"goal {goal.id!r}: its oracle solved {len(found)} of {settings.max_tries} seeds, {wanted} are "
        "needed (demonstrate.per_goal and .calibration); lower it, raise demonstrate.max_tries, or mend the oracle"
    )


def demonstrate(world: World, instance: Instance) -> Episode:
    """One oracle episode. Its ``complete`` is how it ends, not a step of it: a world that closes needs none."""
    start = world.reset(instance.goal, instance.seed)
    screen, steps, taken = start.observation, list[Step](), list[Action]()
    while not world.ended and len(steps) < instance.goal.max_steps:
        try:
            action = next_action(instance.goal.page, start.instruction, screen, taken)
        except Exception as error:  # a script off its way raises whatever its lists and patterns do
            log.warning("%s: its oracle does not know its way: %r", instance.name, error)
            break
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
    write_rows(folder / "agent_rows.parquet", AgentRow, agent_rows(solved, Bar(0.0)))
    negatives, without = params.filter.max_negatives, params.filter.without
    rows = reward_rows(trajectories, bar=Bar(0.0), max_negatives=negatives, seed=params.seed, without=without)
    write_rows(folder / "reward_rows.parquet", RewardRow, rows)
