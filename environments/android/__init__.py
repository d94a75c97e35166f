"""Apps on a phone or an emulator as a world, over adb. docs/android.md says what is deterministic, and what is not."""

from __future__ import annotations

from dataclasses import replace

from environments.android.adb import HOLD_MS, Phone
from environments.android.goals import read_job
from environments.android.tree import elements
from environments.episodic import EpisodicWorld, held
from environments.listing import cut
from environments.types import (
    WAYS,
    Action,
    Goal,
    GoalError,
    Kind,
    Observation,
    Start,
    WorldError,
    swipe_end,
)

LOOKS = 5  # at a screen that does not come to rest, before it is taken as it is
_SWIPE_MS = 300
_SCROLL_SHARE = 0.6  # of what scrolls, that a scroll covers
_SCROLL_MS = 800  # slow: a fling would go on by itself


class Android(EpisodicWorld):
    """A world of apps. ``Goal.page`` is a goal file and the id of a goal in it, such as ``data/goals/todo.yaml#add``.

    It holds a phone from the first reset until it is closed or breaks: as many episodes run side by side as there
    are phones, and a reset raises Busy when this process's other worlds hold all of them. An app ends no episode.
    """

    def __init__(self) -> None:
        super().__init__()
        self._phone: Phone | None = None
        self._whole = Observation(b"", ())  # what was seen last, with all elements

    def _begin(self, goal: Goal, seed: int) -> Start:
        try:
            self._job = read_job(goal.page, seed)
        except GoalError as error:
            raise WorldError(f"goal {goal.id}: {error}") from error
        phone = self._phone = self._phone or Phone()
        for line in self._job.before:
            phone.command(line)
        phone.start(self._job.app)
        return Start(self._job.instruction, self._observe(phone))

    def _act(self, action: Action) -> Observation:
        phone = held(self._phone)
        _perform(phone, action, self._whole)
        return self._observe(phone)

    def _observe(self, phone: Phone) -> Observation:
        self._whole = _look(phone)
        return replace(self._whole, elements=cut(self._whole.elements))

    def _reached(self) -> bool:
        return self._phone is not None and self._job.reached(self._phone, self._whole)

    def _release(self) -> None:
        """Leave the phone to others, as it is."""
        if self._phone is not None:
            self._phone.release()
            self._phone = None


def _look(phone: Phone) -> Observation:
    """The screen once two pictures in a row agree, with the tree that was read between them."""
    picture = phone.screenshot()
    for _ in range(LOOKS):
        before, tree = picture, phone.tree()
        picture = phone.screenshot()
        if picture == before:
            break
    return Observation(picture, elements(tree, Observation(picture, ()).size))


def _perform(phone: Phone, action: Action, screen: Observation) -> None:
    if action.point is not None and not screen.shows(action.point):
        return  # there is no glass to touch
    if action.kind is Kind.CLICK and action.point is not None:
        phone.tap(*action.point)
    elif action.kind is Kind.LONG_PRESS and action.point is not None:
        phone.swipe(action.point, action.point, HOLD_MS)
    elif action.kind is Kind.SWIPE and action.point is not None:
        phone.swipe(action.point, swipe_end(action.point, action.text, screen.size), _SWIPE_MS)
    elif action.kind is Kind.TYPE:
        phone.type(action.text)
    elif action.kind is Kind.PRESS:
        phone.press(action.text)
    elif action.kind is Kind.SCROLL:
        phone.swipe(*_scroll_line(screen, action.text), _SCROLL_MS)
    elif action.kind is Kind.WAIT:
        phone.shell("sleep 1")


def _scroll_line(screen: Observation, way: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The finger's way in the largest thing that scrolls: against the direction in which the view goes."""
    left, top, width, height = _scroller(screen, way)
    across, down = (
        round(step * _SCROLL_SHARE / 2 * side) for step, side in zip(WAYS[way], (width, height), strict=True)
    )
    x, y = left + width // 2, top + height // 2
    return (x + across, y + down), (x - across, y - down)


def _scroller(screen: Observation, way: str) -> tuple[int, int, int, int]:
    """The box of what scrolls that way, as far as its kind tells; else of anything that scrolls; else the screen."""
    moving = [element for element in screen.elements if "scrollable" in element.states]
    fitting = [element for element in moving if (element.kind == "pager") == (way in ("left", "right"))]
    boxes = (element.box for element in fitting or moving)
    return max(boxes, key=lambda box: box[2] * box[3], default=(0, 0, *screen.size))
