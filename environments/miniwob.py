"""MiniWoB++ pages as a world: 130 small web pages that come with the `miniwob` package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from environments.chromium import ACTION_MS, VIEWPORT_PX, WAIT_MS, Browser
from environments.types import (
    Action,
    Element,
    EpisodeOver,
    Goal,
    Kind,
    Observation,
    Start,
    WorldError,
    swipe_end,
)

_SCRIPT = Path(__file__).with_name("miniwob.js")
_SUCCESS = 1.0  # some pages pay part of it for part of the work, which does not count


class MiniWoB:
    """A world of MiniWoB++ pages. ``Goal.page`` is a page's name, such as ``click-button``.

    The browser starts with the first reset, and is replaced by the next reset after it broke.
    """

    def __init__(self) -> None:
        self._browser: Browser | None = None
        self._last: Observation | None = None
        self._ended = True
        self._reward = 0.0

    def reset(self, goal: Goal, seed: int) -> Start:
        """Begin the episode of a goal instance.

        Raises:
            WorldError: when there is no such page or browser, or the browser broke.
        """
        root = _pages()
        if not (root / f"miniwob/{goal.page}.html").is_file():
            raise WorldError(f"goal {goal.id}: page {goal.page!r} is not one of {root / 'miniwob'}")
        self._ended, self._last, self._reward = True, None, 0.0
        try:
            if self._browser is None:
                self._browser = Browser(root, [_SCRIPT])
            self._browser.open(f"miniwob/{goal.page}.html")
            instruction = self._browser.evaluate(f"__ratchet.begin({seed})")
            self._browser.pass_time(0)
            observation = self._observe(self._browser)
        except WorldError:
            self.close()
            raise
        return Start(" ".join(instruction.split()), observation)

    def step(self, action: Action) -> Observation:
        """Act, let the page settle, observe. ``complete`` changes nothing and ends the episode.

        Raises:
            EpisodeOver: when the episode has ended, or none has begun.
            WorldError: when the browser broke; the episode is over.
        """
        if self._ended or self._browser is None or self._last is None:
            raise EpisodeOver(f"{action}: the episode has ended or not begun; call reset first")
        if action.kind is Kind.COMPLETE:
            self._ended = True
            return self._last
        try:
            _perform(self._browser, action)
            return self._observe(self._browser)
        except WorldError:
            self.close()
            raise

    @property
    def ended(self) -> bool:
        """Whether the page is done or ``complete`` was said; also before the first reset."""
        return self._ended

    def verdict(self) -> bool:
        """Whether the page gave its full reward.

        Raises:
            EpisodeOver: before a reset.
        """
        if self._last is None:
            raise EpisodeOver("no episode has begun: there is no verdict; call reset first")
        return self._reward >= _SUCCESS

    def close(self) -> None:
        """End the browser and the episode. A second call has no effect."""
        self._ended = True
        if self._browser is not None:
            self._browser.close()
            self._browser = None

    def _observe(self, browser: Browser) -> Observation:
        seen: dict[str, Any] = browser.evaluate("__ratchet.look()")
        self._ended = bool(seen["done"])
        self._reward = float(seen["reward"]) if self._ended else 0.0
        elements = tuple(Element(kind, text, tuple(box), tuple(states)) for kind, text, box, states in seen["elements"])
        self._last = Observation(browser.screenshot(), elements)
        return self._last


def _perform(browser: Browser, action: Action) -> None:
    if action.kind is Kind.CLICK and action.point is not None:
        browser.click(*action.point)
    elif action.kind is Kind.TYPE:
        browser.type(action.text)
    elif action.kind is Kind.PRESS:
        browser.press(action.text)
    elif action.kind is Kind.LONG_PRESS and action.point is not None:
        browser.drag(action.point, action.point, WAIT_MS)
    elif action.kind is Kind.SWIPE and action.point is not None:
        browser.drag(action.point, swipe_end(action.point, action.text, VIEWPORT_PX), 0)
    elif action.kind is Kind.SCROLL:
        browser.scroll(-1 if action.text in ("up", "left") else 1, across=action.text in ("left", "right"))
    browser.pass_time(WAIT_MS if action.kind is Kind.WAIT else ACTION_MS)


def _pages() -> Path:
    """The package's folder of pages, found without importing it: that would load its own browser driver."""
    spec = find_spec("miniwob")
    if spec is None or not spec.submodule_search_locations:
        raise WorldError("the package miniwob, which has the pages, is not installed; run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "html"
