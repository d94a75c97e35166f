"""What judges are asked: labelled actions at the steps of recorded episodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from environments.types import COMPLETE, Action, Candidate, Episode
from models.prompts import Context, context_of
from tasks.errors import RecordError
from tasks.files import read_json, write_json, write_whole
from tasks.records import Origin, Trajectory, read_trajectories, write_trajectories
from tasks.workers import Keep

Part = Literal["held-out", "unseen", "live", "canary"]
Query = Literal["step", "outcome"]


@dataclass(frozen=True, slots=True)
class Case:
    """An action at a step of a trajectory, and whether it is right.

    ``step`` may be one past the last: the screen the episode ended on. ``source`` is what made the case: the
    generator of a pair, the agent of a live one, the name of a canary. ``count`` is how often it was drawn.
    ``length`` is the trajectory's, in actions. Cases of one ``group`` compete with each other: the candidates of a
    step, the rollouts of an agent in a goal instance.
    """

    trajectory: str
    step: int
    instruction: str
    action: str
    label: bool
    part: Part
    query: Query
    source: str
    kind: str
    instance: str
    length: int
    group: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Labelled:
    """A trajectory and the cases on it."""

    trajectory: Trajectory
    cases: tuple[Case, ...]

    @property
    def taken(self) -> list[tuple[Context, Action]]:
        """What was done at each step."""
        episode = self.trajectory.episode
        return [(context_of(episode, place), step.action) for place, step in enumerate(episode.acts)]


def trajectory_of(name: str, episode: Episode, verdict: bool | None = None) -> Trajectory:
    """The record of an episode of the audit, which ``name`` tells from others of its instance."""
    origin = Origin.DEMONSTRATION if name == "strong" else Origin.EVALUATION
    return Trajectory(f"audit/{episode.instance.name}/{name}", 0, origin, episode, verdict=verdict)


def step_cases(
    trajectory: Trajectory, step: int, source: str, labelled: Sequence[tuple[Candidate, bool]]
) -> list[Case]:
    """The candidates of a step, which compete with each other."""
    return [
        _case(trajectory, step, option.action, label, "live", "step", source, f"{trajectory.id}#{step}", option.count)
        for option, label in labelled
    ]


def outcome_case(trajectory: Trajectory, part: Part, source: str, count: int = 1) -> Case:
    """Whether the goal is reached where the trajectory ends: its verdict is the label."""
    episode = trajectory.episode
    group = f"{episode.instance.name}/{source}"
    return _case(
        trajectory, len(episode.acts), COMPLETE, bool(trajectory.verdict), part, "outcome", source, group, count
    )


def pair_case(
    trajectory: Trajectory, step: int, instruction: str, action: Action, label: bool, part: Part, source: str
) -> Case:
    """A row of reward data: ``source`` is its generator."""
    query: Query = "outcome" if action == COMPLETE else "step"
    group = f"{trajectory.id}#{step}/{instruction}"
    return _case(trajectory, step, action, label, part, query, source, group, 1, instruction)


def _case(
    trajectory: Trajectory,
    step: int,
    action: Action,
    label: bool,
    part: Part,
    query: Query,
    source: str,
    group: str,
    count: int,
    instruction: str = "",
) -> Case:
    episode = trajectory.episode
    return Case(
        trajectory=trajectory.id,
        step=step,
        instruction=instruction or episode.instruction,
        action=str(action),
        label=label,
        part=part,
        query=query,
        source=source,
        kind=action.kind.value,
        instance=episode.instance.name,
        length=len(episode.acts),
        group=group,
        count=count,
    )


def _write(path: Path, found: Iterable[Labelled]) -> None:
    kept = list(found)

    def store(folder: Path) -> None:
        folder.mkdir()
        write_trajectories(folder, (item.trajectory for item in kept))
        write_json(folder / "cases.json", [asdict(case) for item in kept for case in item.cases])

    write_whole(path, store)


def _read(path: Path) -> Iterator[Labelled]:
    try:
        cases = [Case(**row) for row in read_json(path / "cases.json")]
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{path}: {error}; delete it and run `ratchet evaluate reward` again") from error
    of: dict[str, list[Case]] = {}
    for case in cases:
        of.setdefault(case.trajectory, []).append(case)
    for trajectory in read_trajectories(path):
        yield Labelled(trajectory, tuple(of.get(trajectory.id, ())))


LABELLED: Keep[Labelled] = Keep(_write, _read)
