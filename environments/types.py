"""The words a world and an agent share: actions, elements, observations, goals.

An action is written the way the agent answers: a click repeats the line of the element it hits
(``click button "Submit" 50,115``), because copying a line is far easier to learn than naming an
index or a bare coordinate.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol


class Kind(StrEnum):
    """What an action does."""

    CLICK = "click"  # press and release the left button at a point; tap it on a touch screen
    LONG_PRESS = "long_press"  # the same, held for a second
    SWIPE = "swipe"  # press at a point, move "up", "down", "left" or "right", release
    TYPE = "type"  # type text into what has the focus
    PRESS = "press"  # press one key by its DOM name, such as Enter, or a phone's button, such as Back
    SCROLL = "scroll"  # show what lies "up", "down", "left" or "right" of what the screen shows
    WAIT = "wait"  # do nothing for a second
    COMPLETE = "complete"  # say that the goal is reached; ends the episode


class End(StrEnum):
    """Why an episode ended."""

    COMPLETED = "completed"  # the agent said so
    WORLD = "world"  # the world takes no more actions (the page closed the episode)
    STEP_LIMIT = "step_limit"  # the goal's step limit was reached
    PRUNED = "pruned"  # the search went on with better paths
    BUDGET = "budget"  # the search had no more steps or seconds for it
    INVALID = "invalid"  # the agent's answer could not be read as an action
    CRASHED = "crashed"  # the world broke; the episode says nothing about the agent


class ActionError(ValueError):
    """Text that is no action, or an action without what its kind needs."""


class GoalError(ValueError):
    """A goal file that cannot be read as goals."""


class EpisodeOver(RuntimeError):
    """A step was asked of an episode that has ended."""


class WorldError(RuntimeError):
    """A world could not start, reset or step. Raised for the episode, never swallowed."""


class Busy(WorldError):
    """This process's other worlds hold all the devices there are: one of them must be closed first."""


@dataclass(frozen=True, slots=True)
class Element:
    """A visible element. Boxes are CSS pixels of the viewport, or a phone's pixels: left, top, width, height."""

    kind: str
    text: str
    box: tuple[int, int, int, int]
    states: tuple[str, ...] = ()

    @property
    def point(self) -> tuple[int, int]:
        """Centre of the box (x, y) in the box's pixels."""
        left, top, width, height = self.box
        return left + width // 2, top + height // 2

    @property
    def label(self) -> str:
        """Kind, text and point: the tail of its line, and what a click on it repeats."""
        x, y = self.point
        return f"{self.kind} {_quote(self.text)} {x},{y}"

    @property
    def line(self) -> str:
        """How the element stands in a prompt: its states, then its label."""
        return " ".join((*self.states, self.label))

    def contains(self, point: tuple[int, int]) -> bool:
        """Whether a point (x, y) lies in the box, edges included."""
        left, top, width, height = self.box
        return left <= point[0] <= left + width and top <= point[1] <= top + height


_LABEL = re.compile(r'(?P<kind>\S+) (?P<text>"(?:[^"\\]|\\.)*") (?P<x>\d{1,4}),(?P<y>\d{1,4})')
_WHOLE = re.compile(rf'((click|long_press|swipe \S+) {_LABEL.pattern}(?!\d)|type "(?:[^"\\]|\\.)*"(?=\s))')
_POINTED = (Kind.CLICK, Kind.LONG_PRESS, Kind.SWIPE)
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}  # x to the right, y down
_SWIPE_SHARE = 0.4  # of the screen's side, that a swipe covers


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    ``target`` is the kind and text of the element under a click, long press or swipe, ``point`` its place in
    CSS pixels or a phone's, ``text`` what is typed, the key that is pressed, or the direction of a scroll (where
    to look) or of a swipe (where the finger goes).

    Raises:
        ActionError: when the kind lacks what it needs, or has what it cannot use.
    """

    kind: Kind
    point: tuple[int, int] | None = None
    target: tuple[str, str] | None = None
    text: str = ""

    def __post_init__(self) -> None:
        pointed = self.kind in _POINTED
        if pointed != (self.point is not None) or pointed != (self.target is not None):
            raise ActionError(f"{self.kind}: {', '.join(_POINTED)}, and only they, have a point and a target")
        if self.kind in (Kind.SCROLL, Kind.SWIPE) and self.text not in OPPOSITE:
            raise ActionError(f"{self.kind} {self.text!r}: the direction must be one of {', '.join(OPPOSITE)}")
        if self.kind is Kind.PRESS and not re.fullmatch(r"\S+", self.text):
            raise ActionError(f"press {self.text!r}: a key is one word, such as Enter")
        if self.kind in (Kind.CLICK, Kind.LONG_PRESS, Kind.WAIT, Kind.COMPLETE) and self.text:
            raise ActionError(f"{self.kind} takes no text, got {self.text!r}")

    @classmethod
    def click(cls, element: Element) -> Action:
        """A click on the centre of an element."""
        return cls(Kind.CLICK, point=element.point, target=(element.kind, element.text))

    def on(self, element: Element) -> Action:
        """The same click, long press or swipe, on the centre of another element."""
        return replace(self, point=element.point, target=(element.kind, element.text))

    def __str__(self) -> str:
        if self.point is not None and self.target is not None:
            way = f" {self.text}" if self.text else ""
            return f"{self.kind}{way} {self.target[0]} {_quote(self.target[1])} {self.point[0]},{self.point[1]}"
        if self.kind is Kind.TYPE:
            return f"type {_quote(self.text)}"
        return f"{self.kind} {self.text}".rstrip()

    @classmethod
    def parse(cls, text: str) -> Action:
        """Read an action from an agent's answer; the inverse of ``str``.

        Raises:
            ActionError: when the text is not exactly one action.
        """
        verb, _, rest = text.strip().partition(" ")
        way, _, label = rest.partition(" ") if verb == Kind.SWIPE else ("", "", rest)
        if verb in _POINTED and (match := _LABEL.fullmatch(label)):
            target = (match["kind"], _unquote(match["text"]))
            return cls(Kind(verb), point=(int(match["x"]), int(match["y"])), target=target, text=way)
        if verb == Kind.TYPE:
            return cls(Kind.TYPE, text=_unquote(rest))
        if verb in (Kind.PRESS, Kind.SCROLL, Kind.WAIT, Kind.COMPLETE):
            return cls(Kind(verb), text=rest)
        raise ActionError(f"{text[:80]!r} is no action; the kinds are {', '.join(Kind)}")

    @classmethod
    def begun(cls, answer: str) -> Action:
        """Read the action that an agent's answer begins with: the first line, as far as it is one.

        So ``type "June" 61,88`` types, and does not say where. What is an action is read as :meth:`parse` does.

        Raises:
            ActionError: when the first line begins with none.
        """
        line = answer.strip().partition("\n")[0].strip()
        whole = _WHOLE.match(line)
        return cls.parse(whole[1] if whole else line)


COMPLETE = Action(Kind.COMPLETE)
_NEAR = 0.02  # of the screen's diagonal: less than a button


def swipe_end(point: tuple[int, int], way: str, size: tuple[int, int]) -> tuple[int, int]:
    """Where a swipe from a point ends on a screen of a size (width, height): at its edge at the furthest."""
    x, y = (
        min(max(at + round(step * _SWIPE_SHARE * side), 0), side - 1)
        for at, step, side in zip(point, WAYS[way], size, strict=True)
    )
    return x, y


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _unquote(text: str) -> str:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ActionError(f"{text[:80]!r} is not a quoted string") from error
    if not isinstance(value, str):
        raise ActionError(f"{text[:80]!r} is not a quoted string")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ActionError(f"{text[:80]!r} has half a pair of code units, which is no text")
    return value


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent is shown: a PNG screenshot of the viewport and the visible elements in page order."""

    screenshot: bytes
    elements: tuple[Element, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the screen in pixels, as they stand in the PNG's header."""
        width, height = (int.from_bytes(self.screenshot[at : at + 4], "big") for at in (16, 20))
        return width, height

    def shows(self, point: tuple[int, int]) -> bool:
        """Whether a point (x, y) lies on the screen."""
        width, height = self.size
        return 0 <= point[0] < width and 0 <= point[1] < height

    def near(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two points mean the same place, as far as can be told where neither is on an element."""
        return math.dist(one, other) <= _NEAR * math.hypot(*self.size)


@dataclass(frozen=True, slots=True)
class Goal:
    """A job in words, with its world. A goal and a seed make a goal instance.

    ``world`` is the import path of a :class:`World` class (``package.module:Class``), ``page`` what that
    world opens, ``tier`` 1 (one action) to 4 (long), ``max_steps`` the step limit of an episode.
    """

    id: str
    world: str
    page: str
    tier: int
    max_steps: int


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of an episode: the instruction in words and the first observation."""

    instruction: str
    observation: Observation


class World(Protocol):
    """The contract of every world. One world object runs one episode at a time.

    A world is deterministic: the same goal, seed and actions give the same bytes (docs/android.md says where a
    real phone falls short of it). ``verdict`` is for evaluation and demonstrations alone: nothing that chooses,
    scores, filters or trains may call it.
    """

    def reset(self, goal: Goal, seed: int) -> Start:
        """Begin the episode of a goal instance. Raises WorldError when the world cannot start."""
        ...

    def step(self, action: Action) -> Observation:
        """Act, let the world settle, observe.

        ``complete`` changes nothing and ends the episode. Raises EpisodeOver after the end,
        WorldError when the world broke.
        """
        ...

    @property
    def ended(self) -> bool:
        """Whether the episode takes no more actions (for whatever reason, never why)."""
        ...

    def verdict(self) -> bool:
        """Whether the goal is reached, as the world itself judges; asked before ``close``.

        Raises EpisodeOver before a reset, WorldError when the world can no longer tell.
        """
        ...

    def close(self) -> None:
        """Release the browser or phone, and files. A second call has no effect."""
        ...


@dataclass(frozen=True, slots=True)
class Instance:
    """A goal instance: a goal and the seed that fixes its wording and layout.

    ``asked`` is what is asked for instead of what the world would say; "" for the world's own instruction.
    """

    goal: Goal
    seed: int
    asked: str = ""

    @property
    def name(self) -> str:
        """``goal-id/seed``."""
        return f"{self.goal.id}/{self.seed}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed action at a step: how many of the samples it stands for, and the reward model's score.

    ``score`` is p(+)/(p(+)+p(-)) in 0..1; None means not scored, which is not zero.
    """

    action: Action
    count: int = 1
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One observation and the action taken on it, with all the candidates that were considered."""

    observation: Observation
    action: Action
    candidates: tuple[Candidate, ...] = ()
    score: float | None = None

    def share(self, action: Action) -> float:
        """How many of the samples drawn here proposed an action, 0..1; 1 where none was drawn."""
        drawn = {candidate.action: candidate.count for candidate in self.candidates}
        return drawn.get(action, 0) / sum(drawn.values()) if drawn else 1.0


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a goal instance: its steps, the screen it ended on, and why it ended.

    A ``complete`` that was said is the last step; ``acts`` are the steps without it. ``outcome`` is the
    reward model's score of ``complete`` on the last screen, None when not scored.
    """

    instance: Instance
    instruction: str
    steps: tuple[Step, ...]
    last: Observation
    end: End
    outcome: float | None = None

    @property
    def acts(self) -> tuple[Step, ...]:
        """The steps that changed something: all but a closing ``complete``."""
        done = self.end is End.COMPLETED and self.steps and self.steps[-1].action.kind is Kind.COMPLETE
        return self.steps[:-1] if done else self.steps


def idle(steps: Sequence[Step], screen: Observation) -> set[Action]:
    """What was taken in ``steps``, which lead to ``screen``, on that very screen, and left it as it was.

    To wait may be right more than once.
    """
    screens = [*(step.observation for step in steps), screen]
    return {
        step.action
        for step, seen in zip(steps, screens[1:], strict=True)
        if step.observation == seen == screen and step.action.kind is not Kind.WAIT
    }
