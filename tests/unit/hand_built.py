"""Trajectories made by hand, for the tests of records, reward data and filter."""

from __future__ import annotations

import io
from functools import cache

from PIL import Image

from environments.types import (
    Action,
    Candidate,
    Element,
    End,
    Episode,
    Goal,
    Instance,
    Kind,
    Observation,
    Step,
)
from tasks.records import Origin, Trajectory

COMPLETE = Action(Kind.COMPLETE)
NAME = Element("textbox", "", (20, 30, 100, 20))
MAIL = Element("checkbox", "Mail", (20, 60, 12, 12))
POST = Element("checkbox", "Post", (20, 80, 12, 12))
SUBMIT = Element("button", "Submit", (20, 120, 60, 20))
FORM = (NAME, MAIL, POST, SUBMIT)


@cache
def picture(shade: int) -> bytes:
    """A plain PNG."""
    png = io.BytesIO()
    Image.new("L", (160, 210), shade).save(png, format="PNG")
    return png.getvalue()


def screen(shade: int, elements: tuple[Element, ...] = FORM) -> Observation:
    return Observation(picture(shade), elements)


def click(element: Element) -> Action:
    return Action.click(element)


def typed(text: str) -> Action:
    return Action(Kind.TYPE, text=text)


def tried(action: Action, score: float | None = None, count: int = 1) -> Candidate:
    return Candidate(action, count, score)


def trajectory(
    *actions: Action,
    instruction: str = 'Enter "Ann" and submit',
    goal: str = "form",
    seed: int = 0,
    place: int = 0,
    origin: Origin = Origin.SEARCH,
    outcome: float | None = 0.9,
    end: End = End.COMPLETED,
    candidates: dict[int, tuple[Candidate, ...]] | None = None,
    scores: dict[int, float] | None = None,
    parent: str = "",
    shared: int = 0,
    shade: int = 0,
    elements: tuple[Element, ...] = FORM,
) -> Trajectory:
    """A path whose screens differ in shade, lighter by one with each step. `complete` changes none."""
    steps = tuple(
        Step(screen(shade + index, elements), action, (candidates or {}).get(index, ()), (scores or {}).get(index))
        for index, action in enumerate(actions)
    )
    last = len(actions) - (bool(actions) and actions[-1] == COMPLETE)
    instance = Instance(Goal(goal, "worlds:World", goal, 1, 9), seed)
    episode = Episode(instance, instruction, steps, screen(shade + last), end, outcome)
    made = ("", "") if origin is Origin.DEMONSTRATION else ("a" * 12, "b" * 12)
    return Trajectory(f"round-0001/{goal}/{seed}/{place}", 1, origin, episode, *made, parent, shared)


def demonstration(*actions: Action, **about: object) -> Trajectory:
    """A path of a scripted oracle: not scored, and ending without `complete`."""
    return trajectory(*actions, origin=Origin.DEMONSTRATION, outcome=None, **about)  # type: ignore[arg-type]
