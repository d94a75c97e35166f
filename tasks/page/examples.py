"""Held-out goal instances that a promoted agent solved and the one before it did not: how it went about them."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from environments.types import End
from tasks import versions
from tasks.files import ROUND
from tasks.records import Trajectory, read_trajectories
from tasks.rounds import PastRound

SHOWN = 8  # goals of a round
LARGEST_PX = (320, 480)  # width and height of a picture: a phone's screens would make the page huge


@dataclass(frozen=True, slots=True)
class Example:
    """An instance newly solved: each screen as a data URL, with the action taken on it; the last has none.

    ``first`` is whether no agent in use had solved any instance of its goal.
    """

    trajectory: str
    goal: str
    tier: int
    first: bool
    instruction: str
    screens: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class News:
    """How many instances of each goal a round's agent newly solved, and an example of the first :data:`SHOWN` goals."""

    tag: str
    goals: Mapping[str, int]
    examples: tuple[Example, ...]


def newly_solved(rounds: Sequence[PastRound]) -> list[News]:
    """The news of each round that promoted its agent, as the world judged held-out instances.

    Raises:
        WorkspaceError: a round's evaluation is in no cache and no remote.
    """
    known, found = set[str](), list[News]()
    for made in rounds:
        with versions.checked_out(made.tag, (ROUND / "evaluation").as_posix()) as folder:
            known |= {goal for goal, solved in _played(folder, "champion").values() if solved}
            if made.promoted("agent"):
                found.append(news(made.tag, folder, known))
                known |= set(found[-1].goals)
    return found


def news(tag: str, evaluation: Path, known: Collection[str]) -> News:
    """What the challenger of an evaluation solved and the champion did not; ``known`` are goals solved before."""
    failed = {name for name, (_, solved) in _played(evaluation, "champion").items() if not solved}
    challenger = _played(evaluation, "challenger")
    won = {name: goal for name, (goal, solved) in challenger.items() if solved and name in failed}
    return News(tag, Counter(won.values()), _examples(evaluation, won, known))


def goal_of(trajectory: Trajectory) -> str:
    """The id of the goal that a trajectory is about."""
    return trajectory.episode.instance.goal.id


def _played(folder: Path, model: str) -> dict[str, tuple[str, bool]]:
    """Of each instance by its name that an agent played to an end: its goal's id, and whether it was solved."""
    return {
        one.episode.instance.name: (goal_of(one), bool(one.verdict))
        for one in read_trajectories(folder)
        if one.id.endswith(f"/{model}") and one.episode.end is not End.CRASHED
    }


def _examples(folder: Path, won: Mapping[str, str], known: Collection[str]) -> tuple[Example, ...]:
    """The first instance won of each goal, goals never solved before in front."""
    first = {goal: name for name, goal in reversed([*won.items()])}
    shown = sorted(first, key=lambda goal: (goal in known, goal))[:SHOWN]
    paths = {
        goal_of(one): one
        for one in read_trajectories(folder)
        if one.id.endswith("/challenger") and one.episode.instance.name == first.get(goal_of(one))
    }
    return tuple(_example(paths[goal], goal not in known) for goal in shown)


def _example(trajectory: Trajectory, first: bool) -> Example:
    episode, goal = trajectory.episode, trajectory.episode.instance.goal
    screens = [(_picture(step.observation.screenshot), str(step.action)) for step in episode.steps]
    screens.append((_picture(episode.last.screenshot), ""))
    return Example(trajectory.id, goal.id, goal.tier, first, episode.instruction, tuple(screens))


def _picture(png: bytes) -> str:
    """A screenshot as a data URL, made smaller where it is larger than :data:`LARGEST_PX`."""
    with Image.open(io.BytesIO(png)) as picture:
        if picture.width > LARGEST_PX[0] or picture.height > LARGEST_PX[1]:
            picture.thumbnail(LARGEST_PX)
            small = io.BytesIO()
            picture.save(small, format="PNG")
            png = small.getvalue()
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
