"""The records of a round, as Parquet: trajectories with their screenshots, agent and reward rows.

A dataset is a folder. Its trajectories lie in shards, ``steps-00000-of-00003.parquet`` and so on, one row a screen,
and its rows in one file each; every file carries ``schema_version`` in its metadata. A shard's screenshots are a
dictionary-encoded column of images: the library ``datasets`` and any other reader of Parquet finds the image in each
row, and yet each distinct one is stored once. Shards are bounded, so trajectories are written and read one at a time
in constant memory. ``README.md`` tells ``datasets`` which file belongs to which table (docs/data.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from environments.types import Action, Candidate, Element, End, Episode, Goal, Instance, Observation, Step
from tasks.errors import RecordError
from tasks.files import write_whole

SCHEMA_VERSION = 2
SHARD_BYTES = 32 * 2**20  # of distinct screenshots: a shard is closed after the trajectory that reaches this
SHARD_ROWS = 10_000  # or this many rows, for worlds with small screens


class Origin(StrEnum):
    """How a trajectory came about."""

    DEMONSTRATION = "demonstration"  # a scripted oracle
    SPOILED = "spoiled"  # a demonstration with one thing done otherwise, which the world says failed
    REORDERED = "reordered"  # with two moves exchanged, which it says is right
    SLIPPED = "slipped"  # after a click that did no harm, which it says is right
    EXERCISE = "exercise"  # an exercise on a random page
    SEARCH = "search"  # reward-guided search
    CONTINUATION = "continuation"  # a rollout from a step of a failed path
    EVALUATION = "evaluation"  # a greedy episode on a held-out instance


VARIED = (Origin.SPOILED, Origin.REORDERED, Origin.SLIPPED)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of an episode and what made it.

    ``id`` is ``round-0001/goal/seed/n`` (``seed/goal/seed/n`` for demonstrations). ``agent`` and ``reward``
    are content hashes of the models, "" where none was used. A continuation names the trajectory it continues
    in ``parent`` and how many of its steps it shares in ``shared``. ``verdict`` is the world's own, and only
    evaluation and the audit fill it: nothing that chooses, scores, filters or trains has it.
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

_ELEMENT = pa.struct(
    [
        ("kind", pa.string()),
        ("text", pa.string()),
        ("box", pa.list_(pa.int32())),
        ("states", pa.list_(pa.string())),
    ]
)
_CANDIDATE = pa.struct([("action", pa.string()), ("count", pa.int32()), ("score", pa.float64())])
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])  # what `datasets` opens as an image
_STEPS = pa.schema(
    [
        ("trajectory", pa.string()),
        ("step", pa.int32()),
        ("goal", pa.string()),
        ("seed", pa.int64()),
        ("instruction", pa.string()),
        ("screenshot", _IMAGE),
        ("elements", pa.list_(_ELEMENT)),
        ("action", pa.string()),  # null on the screen the episode ended on
        ("score", pa.float64()),
        ("candidates", pa.list_(_CANDIDATE)),
        ("end", pa.string()),
        ("outcome", pa.float64()),
        ("verdict", pa.bool_()),
        ("origin", pa.string()),
        ("round", pa.int32()),
        ("agent", pa.string()),
        ("reward", pa.string()),
        ("parent", pa.string()),
        ("shared", pa.int32()),
        ("world", pa.string()),
        ("page", pa.string()),
        ("tier", pa.int32()),
        ("max_steps", pa.int32()),
    ]
)
_ARROW = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_()}
_VERSION = {"schema_version": str(SCHEMA_VERSION)}
_CARD = """---
{tables}---
Records of a Ratchet workspace, schema version {version}. `datasets.load_dataset(folder, table)` opens each table listed
above; in `steps` a row is a screen, and `screenshot` an image.
"""
_IMAGES = {"huggingface": json.dumps({"info": {"features": {"screenshot": {"_type": "Image"}}}})}


def write_trajectories(folder: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write the shards of ``trajectories`` into an existing folder, in the order given.

    One shard's worth is held in memory. Until the last one is written their names are not those of a whole dataset.
    """
    shard, parts = _Shard(), list[Path]()
    for trajectory in trajectories:
        if shard.full:
            parts.append(shard.write(folder / f"part-{len(parts)}"))
            shard = _Shard()
        shard.add(trajectory)
    parts.append(shard.write(folder / f"part-{len(parts)}"))
    for part, name in zip(parts, _names(len(parts)), strict=True):
        part.rename(folder / name)
    _write_card(folder)


def read_trajectories(folder: Path) -> Iterator[Trajectory]:
    """The trajectories :func:`write_trajectories` wrote, one by one; one shard is held in memory.

    Raises:
        RecordError: when a shard is missing, broken or of another schema version.
    """
    for shard in shards(folder):
        yield from _read_shard(shard)


def shards(folder: Path) -> list[Path]:
    """The shards of a folder, in order. Raises RecordError when one is missing."""
    found = sorted(folder.glob("steps-*-of-*.parquet"))
    if not found:
        raise RecordError(_corrupt(folder, "it has no steps-*.parquet"))
    whole = [folder / name for name in _names(int(found[-1].stem.rpartition("-")[2]))]
    for shard in whole:
        if shard not in found:
            raise RecordError(_corrupt(shard, "it is not there"))
    return whole


def write_rows(path: Path, kind: type[AgentRow] | type[RewardRow], rows: Sequence[AgentRow | RewardRow]) -> None:
    """Write agent or reward rows as one Parquet file."""
    schema = pa.schema([(field.name, _ARROW[str(field.type)]) for field in fields(kind)])
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=schema)
    write_whole(path, lambda aside: _write(aside, table, _VERSION))
    _write_card(path.parent)


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """Read agent or reward rows. Raises RecordError when the file is missing, broken or of another version."""
    return [kind(**row) for row in _read(path).to_pylist()]


class _Shard:
    """Rows for one file, and each distinct screenshot of them once."""

    def __init__(self) -> None:
        self._steps = [_STEPS.empty_table()]
        self._screens: list[int | None] = []  # of each row, the place of its screenshot
        self._screenshots: dict[bytes, int] = {}
        self._bytes = 0

    @property
    def full(self) -> bool:
        return self._bytes >= SHARD_BYTES or len(self._screens) >= SHARD_ROWS

    def add(self, trajectory: Trajectory) -> None:
        episode = trajectory.episode
        for screen in (*(step.observation for step in episode.steps), episode.last):
            self._screens.append(self._place(screen.screenshot) if screen.screenshot else None)
        self._steps.append(pa.Table.from_pylist(_flatten(trajectory), schema=_STEPS))

    def write(self, path: Path) -> Path:
        steps = pa.concat_tables(self._steps).combine_chunks()
        at = steps.schema.get_field_index("screenshot")
        _write(path, steps.set_column(at, "screenshot", self._images()), _VERSION | _IMAGES)
        return path

    def _place(self, png: bytes) -> int:
        if png not in self._screenshots:
            self._screenshots[png] = len(self._screenshots)
            self._bytes += len(png)
        return self._screenshots[png]

    def _images(self) -> pa.StructArray:
        """The column of screenshots: the place of each row's in a dictionary of them, null where there is none."""
        places = pa.array(self._screens, pa.int32())
        pngs = pa.array(list(self._screenshots), pa.binary())
        names = pa.array([f"{hashlib.sha256(png).hexdigest()[:16]}.png" for png in self._screenshots], pa.string())
        columns = [pa.DictionaryArray.from_arrays(places, values) for values in (pngs, names)]
        return pa.StructArray.from_arrays(columns, ["bytes", "path"], mask=places.is_null())


def _flatten(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The rows of a trajectory without their screenshots: one a step, and one for the screen it ended on."""
    about, episode = _about(trajectory), trajectory.episode
    taken: list[dict[str, Any]] = [
        {
            "elements": _elements(step.observation),
            "action": str(step.action),
            "score": step.score,
            "candidates": [{"action": str(c.action), "count": c.count, "score": c.score} for c in step.candidates],
        }
        for step in episode.steps
    ]
    last = {"elements": _elements(episode.last), "candidates": []}
    return [{**about, "step": place, **row} for place, row in enumerate([*taken, last])]


def _elements(screen: Observation) -> list[dict[str, Any]]:
    # Writing takes a quarter of the time it does with dataclasses.asdict.
    return [{"kind": e.kind, "text": e.text, "box": e.box, "states": e.states} for e in screen.elements]


def _about(trajectory: Trajectory) -> dict[str, Any]:
    """What every row of a trajectory says."""
    episode, goal = trajectory.episode, trajectory.episode.instance.goal
    return {
        "trajectory": trajectory.id,
        "goal": goal.id,
        "seed": episode.instance.seed,
        "instruction": episode.instruction,
        "end": episode.end.value,
        "outcome": episode.outcome,
        "verdict": trajectory.verdict,
        "origin": trajectory.origin.value,
        "round": trajectory.round,
        "agent": trajectory.agent,
        "reward": trajectory.reward,
        "parent": trajectory.parent,
        "shared": trajectory.shared,
        "world": goal.world,
        "page": goal.page,
        "tier": goal.tier,
        "max_steps": goal.max_steps,
    }


def _read_shard(path: Path) -> Iterator[Trajectory]:
    table = _read(path, ["screenshot.bytes"]).combine_chunks()
    images = table["screenshot"].combine_chunks().field("bytes")
    pngs = [b"" if png is None else png for png in images.dictionary.to_pylist()]
    places = images.indices.to_pylist()
    steps = table.drop_columns("screenshot")
    start = 0
    for last in (place for place, action in enumerate(steps["action"].to_pylist()) if action is None):
        rows = steps.slice(start, last + 1 - start).to_pylist()
        yield _unflatten(rows, [b"" if place is None else pngs[place] for place in places[start : last + 1]])
        start = last + 1


def _unflatten(rows: list[dict[str, Any]], screenshots: Sequence[bytes]) -> Trajectory:
    screens = [
        Observation(
            png, tuple(Element(e["kind"], e["text"], tuple(e["box"]), tuple(e["states"])) for e in row["elements"])
        )
        for row, png in zip(rows, screenshots, strict=True)
    ]
    steps = tuple(
        Step(
            screen,
            Action.parse(row["action"]),
            tuple(Candidate(Action.parse(c["action"]), c["count"], c["score"]) for c in row["candidates"]),
            row["score"],
        )
        for row, screen in zip(rows[:-1], screens[:-1], strict=True)
    )
    row = rows[-1]
    instance = Instance(Goal(row["goal"], row["world"], row["page"], row["tier"], row["max_steps"]), row["seed"])
    return Trajectory(
        row["trajectory"],
        row["round"],
        Origin(row["origin"]),
        Episode(instance, row["instruction"], steps, screens[-1], End(row["end"]), row["outcome"]),
        row["agent"],
        row["reward"],
        row["parent"],
        row["shared"],
        row["verdict"],
    )


def _write(path: Path, table: pa.Table, metadata: dict[str, str]) -> None:
    """Write one row group, with dictionaries of any size.

    The Arrow schema is left out: with it a dictionary would be read as one, and no longer as an image.
    """
    how = {"compression": "zstd", "store_schema": False, "write_page_checksum": True}
    with pq.ParquetWriter(path, table.schema, dictionary_pagesize_limit=2**31 - 1, **how) as writer:
        writer.write_table(table, row_group_size=max(1, len(table)))
        writer.add_key_value_metadata(metadata)


def _read(path: Path, dictionaries: Sequence[str] = ()) -> pa.Table:
    """The table of a file; ``dictionaries`` are the columns to be left encoded as such."""
    try:
        version = (pq.read_schema(path).metadata or {}).get(b"schema_version", b"none").decode()
        if version != str(SCHEMA_VERSION):
            raise RecordError(
                f"{path}: schema version {version}, this Ratchet reads {SCHEMA_VERSION}; make it again with "
                "`dvc repro -f`, or read it with the Ratchet that wrote it"
            )
        with pq.ParquetFile(path, read_dictionary=dictionaries, page_checksum_verification=True) as file:
            return file.read()
    except (OSError, pa.ArrowInvalid) as error:
        raise RecordError(_corrupt(path, str(error).splitlines()[0])) from error


def _write_card(folder: Path) -> None:
    """``README.md``: the tables of a folder, as the library ``datasets`` looks for them."""
    names = sorted({file.stem.partition("-")[0] for file in folder.glob("*.parquet")})
    tables = [
        {"config_name": name, "data_files": f"{name}*.parquet", **({"default": True} if name == "steps" else {})}
        for name in names
    ]
    (folder / "README.md").write_text(_CARD.format(tables=yaml.safe_dump({"configs": tables}), version=SCHEMA_VERSION))


def _names(count: int) -> list[str]:
    return [f"steps-{place:05d}-of-{count:05d}.parquet" for place in range(count)]


def _corrupt(path: Path, why: str) -> str:
    return f"{path}: {why}; fetch it again with `ratchet pull` or make it again with `dvc repro`"
