"""A small round on disk, made through tasks.records with real PNGs: what validate and decide read."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from environments.types import Action, Candidate, Element, End, Episode, Goal, Instance, Observation, Step
from tasks.curriculum import Curriculum
from tasks.params import Params, load_params
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, write_rows, write_trajectories

PARAMS = Path(__file__).parents[2] / "params.yaml"
WIDTH, HEIGHT = 160, 210
OK = Element("button", "OK", (20, 40, 60, 20))
COMPLETE = "complete"


def params(**sections: dict[str, object]) -> Params:
    """The repository's own parameters, with those these tests count on, and some keys of some sections, set."""
    written = load_params(PARAMS).model_dump(by_alias=True) | {"goals": "data/goals"}
    fixed = {"propose": {"per_goal": 4}, "evaluate": {"first_seed": 1_000_000}}
    keys = {name: {**fixed.get(name, {}), **sections.get(name, {})} for name in fixed.keys() | sections.keys()}
    return Params.model_validate(written | {name: written[name] | more for name, more in keys.items()})


def goal(name: str = "click-ok", tier: int = 1) -> Goal:
    return Goal(name, "environments.miniwob:MiniWoB", name, tier, 4)


def observation(shade: int = 255) -> Observation:
    png = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (shade, shade, shade)).save(png, format="PNG")
    return Observation(png.getvalue(), (OK,))


def trajectory(
    number: int,
    outcome: float | None = 0.9,
    *,
    of: str = "click-ok",
    seed: int = 10_000,
    score: float | None = 0.8,
    origin: Origin = Origin.SEARCH,
) -> Trajectory:
    """One click on OK: a path of round 1."""
    click = Action.click(OK)
    step = Step(observation(), click, (Candidate(click, 3, score),), score)
    episode = Episode(Instance(goal(of), seed), "Click OK", (step,), observation(200), End.COMPLETED, outcome)
    return Trajectory(f"round-0001/{of}/{seed}/{number}", 1, origin, episode, "a" * 12, "b" * 12)


def agent_row(made: Trajectory, step: int = 0, action: str = "") -> AgentRow:
    """The action of a step, or ``action``."""
    instance = made.episode.instance
    return AgentRow(
        id=f"{made.id}#{step}",
        trajectory=made.id,
        step=step,
        goal=instance.goal.id,
        seed=instance.seed,
        round=made.round,
        action=action or str(made.episode.steps[step].action),
        source="accepted",
        agent=made.agent,
        reward=made.reward,
    )


def reward_row(made: Trajectory, action: str, label: bool, number: int = 0, step: int = 0) -> RewardRow:
    """A judgement of ``action`` at a step."""
    instance = made.episode.instance
    return RewardRow(
        id=f"{made.id}#{step}.{number}",
        trajectory=made.id,
        step=step,
        goal=instance.goal.id,
        seed=instance.seed,
        round=made.round,
        instruction=made.episode.instruction,
        action=action,
        label=label,
        generator="executed" if label else "early",
        agent=made.agent,
        reward=made.reward,
    )


def rows_of(made: Trajectory) -> tuple[list[AgentRow], list[RewardRow]]:
    """Two agent rows (the click, then `complete`) and two reward rows, one of each label."""
    for_agent = [agent_row(made), agent_row(made, 1, COMPLETE)]
    click = str(made.episode.steps[0].action)
    return for_agent, [reward_row(made, click, True), reward_row(made, COMPLETE, False, 1)]


def write_round_rows(
    folder: Path,
    trajectories: list[Trajectory],
    for_agent: list[AgentRow],
    for_reward: list[RewardRow],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_trajectories(folder, trajectories)
    write_rows(folder / "agent_rows.parquet", AgentRow, for_agent)
    write_rows(folder / "reward_rows.parquet", RewardRow, for_reward)


def write_goals(folder: Path, *goals: Goal) -> None:
    folder.mkdir(parents=True)
    lines = [
        f'- {{id: {g.id}, world: "{g.world}", page: {g.page}, tier: {g.tier}, max_steps: {g.max_steps}}}' for g in goals
    ]
    (folder / "goals.yaml").write_text("\n".join(lines) + "\n")


def write_curriculum(path: Path, *goals: Goal) -> Curriculum:
    curriculum = Curriculum.first(goal.id for goal in goals)
    curriculum.write(path)
    return curriculum
