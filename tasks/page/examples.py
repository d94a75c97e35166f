"""Goals that a promoted agent solved and that no agent in use before it had: how it went about them."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tasks import versions
from tasks.files import ROUND
from tasks.records import Trajectory, read_trajectories
from tasks.rounds import PastRound

SHOWN = 8  # goals of a round
LARGEST_PX = (320, 480)  # width and height of a picture: a phone's screens would make the page huge


@dataclass(frozen=True, slots=True)
class Example:
    """A goal solved for the first time: each screen as a data URL, with the action taken on it; the last has none."""

    trajectory: str
    goal: str
    tier: int
    instruction: str
    screens: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class News:
    """What a round's agent solved that none in use had: all the goals, and examples of the first :data:`SHOWN`."""

    tag: str
    goals: tuple[str, ...]
    examples: tuple[Example, ...]


def newly_solved(rounds: Sequence[PastRound]) -> list[News]:
    """The news of each round that promoted its agent, as the world judged held-out instances.

    Raises:
        WorkspaceError: a round's evaluation is in no cache and no remote.
    """
    known, found = set[str](), list[News]()
    for made in rounds:
        with versions.checked_out(made.tag, (ROUND / "evaluation").as_posix()) as folder:
            known |= {goal_of(one) for one in _solved(folder, "champion")}
            if made.promoted("agent"):
                first = _first_of_each_goal(_solved(folder, "challenger"), known)
                found.append(News(made.tag, tuple(sorted(first)), _examples(folder, sorted(first.values())[:SHOWN])))
                known |= first.keys()
    return found


def goal_of(trajectory: Trajectory) -> str:
    """The id of the goal that a trajectory is about."""
    return trajectory.episode.instance.goal.id


def _solved(folder: Path, model: str) -> Iterable[Trajectory]:
    return (one for one in read_trajectories(folder) if one.verdict and one.id.endswith(f"/{model}"))


def _first_of_each_goal(solved: Iterable[Trajectory], known: set[str]) -> dict[str, str]:
    """By goal id, the id of the first trajectory that solves a goal not yet known to be solved."""
    first: dict[str, str] = {}
    for trajectory in solved:
        if goal_of(trajectory) not in known:
            first.setdefault(goal_of(trajectory), trajectory.id)
    return first


def _examples(folder: Path, wanted: Sequence[str]) -> tuple[Example, ...]:
    return tuple(_example(trajectory) for trajectory in read_trajectories(folder) if trajectory.id in wanted)


def _example(trajectory: Trajectory) -> Example:
    episode, goal = trajectory.episode, trajectory.episode.instance.goal
    screens = [(_picture(step.observation.screenshot), str(step.action)) for step in episode.steps]
    screens.append((_picture(episode.last.screenshot), ""))
    return Example(trajectory.id, goal.id, goal.tier, episode.instruction, tuple(screens))


def _picture(png: bytes) -> str:
    """A screenshot as a data URL, made smaller where it is larger than :data:`LARGEST_PX`."""
    with Image.open(io.BytesIO(png)) as picture:
        if picture.width > LARGEST_PX[0] or picture.height > LARGEST_PX[1]:
            picture.thumbnail(LARGEST_PX)
            small = io.BytesIO()
            picture.save(small, format="PNG")
            png = small.getvalue()
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
