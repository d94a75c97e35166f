"""Goals from YAML files, and worlds by import path."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from environments.android.goals import android_goals
from environments.types import Goal, GoalError, World, WorldError
from environments.web.file import WebFile

_Word = Annotated[str, Field(min_length=1)]
WEB_WORLD = "environments.web.app:WebApp"


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
        GoalError: in one line, when a file has none of the forms of a goal file, or an id comes twice.
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


def load_web_file(path: Path) -> WebFile:
    """The application and the goals of a file that describes one.

    Raises:
        GoalError: in one line, when it does not.
    """
    return _web_file(path, _read(path))


def _goals(file: Path) -> list[Goal]:
    match content := _read(file):
        case list():
            return [_goal(file, entry) for entry in content]
        case {"app": _}:
            goals = _web_file(file, content).goals
            return [Goal(goal.id, WEB_WORLD, f"{file}#{goal.id}", goal.tier, goal.max_steps) for goal in goals]
        case {"android": _}:
            return android_goals(file, content)
    forms = "a list of goals, a web application with app and goals, or android"
    raise GoalError(f"{file}: a goal file is {forms}, got {type(content).__name__}")


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoalError(f"{file}: the goal file cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise GoalError(f"{file}: not YAML: {' '.join(str(error).split())}") from error


def _goal(file: Path, entry: object) -> Goal:
    try:
        return Goal(**_Entry.model_validate(entry).model_dump())
    except ValidationError as error:
        raise GoalError(f"{file}: {_name(entry)}: {_first_wrong(error)}") from error


def _web_file(file: Path, content: Any) -> WebFile:
    try:
        return WebFile.model_validate(content)
    except ValidationError as error:
        match error.errors()[0]["loc"]:
            case ("goals", int(place), *_):
                wrong = f"{_name(content['goals'][place])}: {_first_wrong(error, skipped=2)}"
            case _:
                wrong = _first_wrong(error)
        raise GoalError(f"{file}: {wrong}") from error


def _name(entry: object) -> str:
    return f"goal {entry.get('id', 'without an id') if isinstance(entry, dict) else 'without an id'}"


def _first_wrong(error: ValidationError, skipped: int = 0) -> str:
    """Key, value and rule of the first thing that is wrong; ``skipped`` parts of the key say where it stands."""
    first = error.errors()[0]
    if first["type"] == "value_error":  # a rule over several keys: it names them
        return str(first["ctx"]["error"])
    where = ".".join(map(str, first["loc"][skipped:])) or "goal"
    return f"{where}={first['input']!r}: {first['msg']}"
