"""A round's rows as flat tables, each row with what its rules need: its trajectory, screen and click.

In every table an empty word is a missing one, ``row`` is the place in the file, and a score that is NaN is
infinite, since pandas takes NaN for "not scored" and that is something else.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, UnidentifiedImageError

from environments.types import Action, ActionError, Step
from tasks.errors import RecordError
from tasks.records import AgentRow, RewardRow, Trajectory, read_trajectories

TRAJECTORY_COLUMNS = (
    *("id", "row", "round", "origin", "goal", "seed", "instruction", "outcome"),
    *("agent", "reward", "parent"),
)
STEP_COLUMNS = ("id", "row", "score", "lowest", "highest", "x", "y", "width", "height")
DERIVED_COLUMNS = ("row", "known_trajectory", "origin", "steps", "kind", "x", "y", "width", "height")
_DTYPES = {"str": "str", "int": "int64", "bool": "bool"}
_NO_SIZE = {"width": math.nan, "height": math.nan}


@dataclass(frozen=True, slots=True)
class Frames:
    """The tables of a round: trajectories, their steps (taken actions), agent rows and reward rows."""

    trajectories: pd.DataFrame
    steps: pd.DataFrame
    agent_rows: pd.DataFrame
    reward_rows: pd.DataFrame


def read_frames(folder: Path) -> Frames:
    """Read the tables of ``data/round/rows``. Raises RecordError when one cannot be read."""
    trajectories, steps, known = list[dict[str, Any]](), list[dict[str, Any]](), dict[str, _Known]()
    for trajectory in read_trajectories(folder):
        about = _known(trajectory)
        known[trajectory.id] = about
        trajectories.append(_flat(trajectory))
        steps += _steps(trajectory, about)
    return Frames(
        _frame(trajectories, TRAJECTORY_COLUMNS),
        _frame(steps, STEP_COLUMNS),
        _rows(folder / "agent_rows.parquet", AgentRow, known),
        _rows(folder / "reward_rows.parquet", RewardRow, known),
    )


def dtypes(kind: type[AgentRow] | type[RewardRow]) -> dict[str, str]:
    """The columns of a row file, in order, with their pandas types."""
    return {field.name: _DTYPES[str(field.type)] for field in fields(kind)}


@dataclass(frozen=True, slots=True)
class _Known:
    """What the rules of a row ask about its trajectory; ``sizes`` are those of its screens, the last one included."""

    id: str
    origin: str
    sizes: tuple[dict[str, float], ...]


def _known(trajectory: Trajectory) -> _Known:
    episode = trajectory.episode
    screens = (*(step.observation for step in episode.steps), episode.last)
    return _Known(trajectory.id, trajectory.origin.value, tuple(_size(screen.screenshot) for screen in screens))


def _size(png: bytes) -> dict[str, float]:
    try:
        with Image.open(io.BytesIO(png)) as picture:
            return {"width": picture.width, "height": picture.height}
    except UnidentifiedImageError:
        return _NO_SIZE


def _flat(trajectory: Trajectory) -> dict[str, Any]:
    episode = trajectory.episode
    return {
        "id": trajectory.id,
        "round": trajectory.round,
        "origin": trajectory.origin.value,
        "goal": episode.instance.goal.id,
        "seed": episode.instance.seed,
        "instruction": episode.instruction,
        "outcome": _score(episode.outcome),
        "agent": trajectory.agent,
        "reward": trajectory.reward,
        "parent": trajectory.parent,
    }


def _steps(trajectory: Trajectory, about: _Known) -> Iterator[dict[str, Any]]:
    for index, step in enumerate(trajectory.episode.steps):
        yield {
            "id": f"{trajectory.id}#{index}",
            **_scores(step),
            **_point(step.action),
            **about.sizes[index],
        }


def _scores(step: Step) -> dict[str, float]:
    candidates = [_score(item.score) for item in step.candidates if item.score is not None]
    return {
        "score": _score(step.score),
        "lowest": min(candidates, default=math.nan),
        "highest": max(candidates, default=math.nan),
    }


def _score(score: float | None) -> float:
    if score is None:
        return math.nan
    return math.inf if math.isnan(score) else score


def _point(action: Action) -> dict[str, float]:
    x, y = action.point or (math.nan, math.nan)
    return {"x": x, "y": y}


def _rows(path: Path, kind: type[AgentRow] | type[RewardRow], known: Mapping[str, _Known]) -> pd.DataFrame:
    rows = _read(path)
    if {name: str(dtype) for name, dtype in rows.dtypes.items()} != dtypes(kind):
        return rows  # nothing can be derived; the first rules of its suite say so
    beside = [_beside(row, known.get(row["trajectory"])) for row in rows.to_dict("records")]
    return _blank(rows.join(_frame(beside, DERIVED_COLUMNS)))


def _beside(row: Mapping[Any, Any], about: _Known | None) -> dict[str, Any]:
    if about is None:
        return {**_read_action(row["action"]), **_NO_SIZE}
    return {
        "known_trajectory": about.id,
        "origin": about.origin,
        "steps": len(about.sizes) - 1,
        **_read_action(row["action"]),
        **(about.sizes[row["step"]] if 0 <= row["step"] < len(about.sizes) else _NO_SIZE),
    }


def _read_action(text: object) -> dict[str, Any]:
    try:
        action = Action.parse(str(text))  # a missing one is NaN
    except ActionError:
        return {}
    return {"kind": action.kind.value, **_point(action)}


def _frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    numbered = [{**row, "row": place} for place, row in enumerate(rows)]
    return _blank(pd.DataFrame(numbered, columns=list(columns)))


def _blank(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.replace("", None)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pq.read_table(path).to_pandas()
    except (OSError, pa.ArrowInvalid) as error:
        raise RecordError(f"{path}: {str(error).splitlines()[0]}; make it again with `dvc repro filter`") from error
