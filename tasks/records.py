"""The records of a round, as Parquet: trajectories, their screenshots (each stored once), agent and reward rows.

A dataset is a directory of these files; every one carries ``schema_version`` in its metadata. Written by
demonstrate, explore, score, filter and decide; read by every stage after them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from environments.types import Action, Candidate, Element, End, Episode, Goal, Instance, Observation, Step
from tasks.errors import RecordError
from tasks.files import write_whole

SCHEMA_VERSION = 1
_METADATA = {"schema_version": str(SCHEMA_VERSION)}


class Origin(StrEnum):
    """How a trajectory came about."""

    DEMONSTRATION = "demonstration"  # a scripted oracle
    SEARCH = "search"  # reward-guided search
    CONTINUATION = "continuation"  # a rollout from a step of a failed path
    EVALUATION = "evaluation"  # a greedy episode on a held-out instance


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of an episode and what made it.

    ``id`` is ``round-0001/goal/seed/n`` (``seed/goal/seed/n`` for demonstrations). ``agent`` and ``reward``
    are content hashes of the models, "" where none was used. A continuation names the trajectory it continues
    in ``parent`` and how many of its steps it shares in ``shared``. ``verdict`` is the world's own, and only
    evaluation fills it: nothing that chooses, scores, filters or trains has it.
    """

    id: str
    round: int
    origin: Origin
    episode: Episode
    agent: str = ""
    reward: str = ""
    parent: str = ""
    shared: int = 0
    verdict: bool | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One thing to imitate: the action at a step of an accepted trajectory."""

    id: str
    trajectory: str
    step: int
    goal: str
    seed: int
    round: int
    action: str
    source: str
    agent: str
    reward: str


@dataclass(frozen=True, slots=True)
class RewardRow:
    """One judgement to learn: whether ``action`` at ``step`` of a trajectory serves ``instruction``.

    ``step`` may be one past the last: the screen the episode ended on. ``instruction`` is the trajectory's
    own but for rows that swap the goal. ``generator`` names what made the row.
    """

    id: str
    trajectory: str
    step: int
    goal: str
    seed: int
    round: int
    instruction: str
    action: str
    label: bool
    generator: str
    agent: str
    reward: str


Row = TypeVar("Row", AgentRow, RewardRow)

_ELEMENTS = pa.list_(
    pa.struct(
        [
            ("kind", pa.string()),
            ("text", pa.string()),
            ("box", pa.list_(pa.int32())),
            ("states", pa.list_(pa.string())),
        ]
    )
)
_OBSERVATION = pa.struct([("screenshot", pa.string()), ("elements", _ELEMENTS)])
_CANDIDATE = pa.struct([("action", pa.string()), ("count", pa.int32()), ("score", pa.float64())])
_STEP = pa.struct(
    [
        ("observation", _OBSERVATION),
        ("action", pa.string()),
        ("candidates", pa.list_(_CANDIDATE)),
        ("score", pa.float64()),
    ]
)
_TRAJECTORY = pa.schema(
    [
        ("id", pa.string()),
        ("round", pa.int32()),
        ("origin", pa.string()),
        ("goal", pa.string()),
        ("world", pa.string()),
        ("page", pa.string()),
        ("tier", pa.int32()),
        ("max_steps", pa.int32()),
        ("seed", pa.int64()),
        ("instruction", pa.string()),
        ("steps", pa.list_(_STEP)),
        ("last", _OBSERVATION),
        ("end", pa.string()),
        ("outcome", pa.float64()),
        ("agent", pa.string()),
        ("reward", pa.string()),
        ("parent", pa.string()),
        ("shared", pa.int32()),
        ("verdict", pa.bool_()),
    ],
    metadata=_METADATA,
)
_SCREENSHOT = pa.schema([("hash", pa.string()), ("png", pa.binary())], metadata=_METADATA)
_ARROW = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_()}


def _row_schema(row: type) -> pa.Schema:
    return pa.schema([(field.name, _ARROW[str(field.type)]) for field in fields(row)], metadata=_METADATA)


def write_trajectories(folder: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write ``trajectories.parquet`` and ``screenshots.parquet`` into an existing folder, in the order given."""
    screenshots: dict[str, bytes] = {}
    rows = [_flatten(trajectory, screenshots) for trajectory in trajectories]
    pictures = [{"hash": name, "png": png} for name, png in sorted(screenshots.items())]
    _write(folder / "trajectories.parquet", rows, _TRAJECTORY)
    _write(folder / "screenshots.parquet", pictures, _SCREENSHOT)


def read_trajectories(folder: Path) -> list[Trajectory]:
    """Read what :func:`write_trajectories` wrote.

    Raises:
        RecordError: when a file is missing, broken or of another schema version, or a screenshot is not what
            its hash says.
    """
    pictures = {row["hash"]: row["png"] for row in _read(folder / "screenshots.parquet")}
    for name, png in pictures.items():
        if _hash(png) != name:
            raise RecordError(_corrupt(folder / "screenshots.parquet", f"screenshot {name} has other content"))
    return [_unflatten(row, pictures, folder) for row in _read(folder / "trajectories.parquet")]


def write_rows(path: Path, kind: type[AgentRow] | type[RewardRow], rows: Sequence[AgentRow | RewardRow]) -> None:
    """Write agent or reward rows as one Parquet file."""
    _write(path, [asdict(row) for row in rows], _row_schema(kind))


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """Read agent or reward rows. Raises RecordError when the file is missing, broken or of another version."""
    return [kind(**row) for row in _read(path)]


def _flatten(trajectory: Trajectory, screenshots: dict[str, bytes]) -> dict[str, Any]:
    def observe(observation: Observation) -> dict[str, Any]:
        name = _hash(observation.screenshot)
        screenshots[name] = observation.screenshot
        return {"screenshot": name, "elements": [asdict(element) for element in observation.elements]}

    episode, goal = trajectory.episode, trajectory.episode.instance.goal
    return {
        "id": trajectory.id,
        "round": trajectory.round,
        "origin": trajectory.origin.value,
        "goal": goal.id,
        "world": goal.world,
        "page": goal.page,
        "tier": goal.tier,
        "max_steps": goal.max_steps,
        "seed": episode.instance.seed,
        "instruction": episode.instruction,
        "steps": [
            {
                "observation": observe(step.observation),
                "action": str(step.action),
                "candidates": [{**asdict(item), "action": str(item.action)} for item in step.candidates],
                "score": step.score,
            }
            for step in episode.steps
        ],
        "last": observe(episode.last),
        "end": episode.end.value,
        "outcome": episode.outcome,
        "agent": trajectory.agent,
        "reward": trajectory.reward,
        "parent": trajectory.parent,
        "shared": trajectory.shared,
        "verdict": trajectory.verdict,
    }


def _unflatten(row: dict[str, Any], pictures: dict[str, bytes], folder: Path) -> Trajectory:
    def observation(value: dict[str, Any]) -> Observation:
        if value["screenshot"] not in pictures:
            raise RecordError(_corrupt(folder, f"{row['id']}: screenshot {value['screenshot']} is not there"))
        elements = (
            Element(item["kind"], item["text"], tuple(item["box"]), tuple(item["states"])) for item in value["elements"]
        )
        return Observation(pictures[value["screenshot"]], tuple(elements))

    steps = tuple(
        Step(
            observation(step["observation"]),
            Action.parse(step["action"]),
            tuple(Candidate(Action.parse(c["action"]), c["count"], c["score"]) for c in step["candidates"]),
            step["score"],
        )
        for step in row["steps"]
    )
    goal = Goal(row["goal"], row["world"], row["page"], row["tier"], row["max_steps"])
    instance = Instance(goal, row["seed"])
    last = observation(row["last"])
    episode = Episode(instance, row["instruction"], steps, last, End(row["end"]), row["outcome"])
    return Trajectory(
        row["id"],
        row["round"],
        Origin(row["origin"]),
        episode,
        row["agent"],
        row["reward"],
        row["parent"],
        row["shared"],
        row["verdict"],
    )


def _write(path: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
    table = pa.Table.from_pylist(list(rows), schema=schema)
    write_whole(path, lambda aside: pq.write_table(table, aside, compression="zstd"))


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise RecordError(_corrupt(path, str(error).splitlines()[0])) from error
    version = (table.schema.metadata or {}).get(b"schema_version", b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise RecordError(f"{path}: schema version {version}, this Ratchet reads {SCHEMA_VERSION}")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _corrupt(path: Path, why: str) -> str:
    return f"{path}: {why}; fetch it again with `ratchet pull` or make it again with `dvc repro`"


def _hash(png: bytes) -> str:
    return hashlib.sha256(png).hexdigest()[:16]
