"""Goals from YAML files, and worlds by import path."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from environments.android_goals import android_goals
from environments.types import Goal, GoalError, World, WorldError

__all__ = ["GoalError", "load_goals", "open_world"]

_Word = Annotated[str, Field(min_length=1)]


class _Entry(BaseModel):
    """One goal as it stands in a file. The fields are those of :class:`Goal`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    world: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    page: _Word
    tier: Annotated[int, Field(ge=1, le=4)]
    max_steps: Annotated[int, Field(ge=1)]


def load_goals(path: Path) -> dict[str, Goal]:
    """The goals of a YAML file, or of all ``*.yaml`` files of a folder, by id, in file order.

    Raises:
        GoalError: in one line, when a file is no list of goals, or an id comes twice.
    """
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise GoalError(f"{path}: no goal file (*.yaml) in this folder")
    goals: dict[str, Goal] = {}
    for file in files:
        for goal in _goals(file):
            if goal.id in goals:
                raise GoalError(f"{file}: goal {goal.id!r} comes twice; an id names one goal")
            goals[goal.id] = goal
    return goals


def open_world(path: str) -> World:
    """A new world of the class at an import path, such as ``environments.miniwob:MiniWoB``.

    Raises:
        WorldError: when there is no such class, or it cannot be made.
    """
    module_name, _, class_name = path.partition(":")
    try:
        world_class = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise WorldError(f"world {path!r}: {error}; give it as package.module:Class") from error
    world: World = world_class()
    return world


def _goals(file: Path) -> list[Goal]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoalError(f"{file}: the goal file cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise GoalError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    if isinstance(content, dict) and "android" in content:
        return android_goals(file, content)
    if not isinstance(content, list):
        raise GoalError(f"{file}: a goal file is a list of goals, got {type(content).__name__}")
    return [_goal(file, entry) for entry in content]


def _goal(file: Path, entry: object) -> Goal:
    try:
        return Goal(**_Entry.model_validate(entry).model_dump())
    except ValidationError as error:
        first = error.errors()[0]
        name = entry.get("id", "without an id") if isinstance(entry, dict) else "without an id"
        where = ".".join(map(str, first["loc"])) or "goal"
        raise GoalError(f"{file}: goal {name}: {where}={first['input']!r}: {first['msg']}") from error
