"""The goals of the simulated phone's app, and the way a person would go to each."""

from __future__ import annotations

from collections.abc import Callable

from desk import FILE

from environments.registry import load_goals
from environments.types import Action, Element, Kind, Observation, Start

DOWN = Action(Kind.SCROLL, text="down")
GOALS = load_goals(FILE)


def find(screen: Observation, text: str) -> Element:
    return next(item for item in screen.elements if item.text == text)


def on(kind: Kind, element: Element, text: str = "") -> Action:
    return Action(kind, element.point, (element.kind, element.text), text)


def plan(goal: str, start: Start) -> list[Callable[[Observation], Action]]:
    """The shortest way, as a person would go it; each step from the screen before it."""
    wanted = start.instruction.split('"')[1]
    return {
        "todo-add": [
            lambda seen: Action.click(next(item for item in seen.elements if item.kind == "textbox")),
            lambda seen: Action(Kind.TYPE, text=wanted),
            lambda seen: Action.click(find(seen, "Add")),
        ],
        "todo-tick": [lambda seen: Action.click(find(seen, wanted))],
        "todo-delete": [
            lambda seen: on(Kind.LONG_PRESS, find(seen, wanted)),
            lambda seen: Action.click(find(seen, "Delete")),
        ],
        "todo-archive": [lambda seen: on(Kind.SWIPE, find(seen, wanted), "left")],
        "todo-bottom": [lambda seen: DOWN],
    }[goal]
