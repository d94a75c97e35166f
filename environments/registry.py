"""Goals from YAML files, and worlds by import path."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from environments.android.goals import AndroidFile
from environments.goalfile import Entry, Word, check, read
from environments.types import Goal, GoalError, World, WorldError
from environments.web.file import WebFile

WEB_WORLD, ANDROID_WORLD = "environments.web.app:WebApp", "environments.android:Android"


class _Listed(Entry):
    """A goal in a file that is a list of them."""

    world: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    page: Word


_List = RootModel[list[_Listed]]


def load_goals(path: Path) -> dict[str, Goal]:
    """The goals of a YAML file, or of all ``*.yaml`` files of a folder, by id, in file order.

    Raises:
        GoalError: in one line, when a file has none of the forms of a goal file, or an id comes twice.
    """
    files = sorted(path.glob("[!.]*.yaml")) if path.is_dir() else [path]
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
    match content := read(file):
        case list():
            return [entry.goal(entry.world, entry.page) for entry in check(_List, file, content).root]
        case {"app": _}:
            return [entry.goal(WEB_WORLD, f"{file}#{entry.id}") for entry in check(WebFile, file, content).goals]
        case {"android": _}:
            entries = check(AndroidFile, file, content).android.goals
            return [entry.goal(ANDROID_WORLD, f"{file}#{entry.id}") for entry in entries]
    forms = "a list of goals, a web application with app and goals, or android"
    raise GoalError(f"{file}: a goal file is {forms}, got {type(content).__name__}")
