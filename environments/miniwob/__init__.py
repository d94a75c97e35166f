"""MiniWoB++ pages as a world: small web pages, and sites of two airlines, that come with the `miniwob` package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from environments.browser.chromium import Browser, listed
from environments.episodic import EpisodicWorld, held
from environments.miniwob.flight import FlightBrowser
from environments.types import Action, Goal, Observation, Start, WorldError

_SCRIPT = Path(__file__).with_name("miniwob.js")
_FLIGHT = "flight."  # how the package's names of FlightWoB pages begin
_SUCCESS = 1.0  # some pages pay part of it for part of the work, which does not count

# What these pages keep from one episode to the next shows; all others may begin in place, without being loaded again
# (docs/decisions/0017-beginning-in-place.md).
_LOADED = {
    "book-flight", "book-flight-nodelay", "choose-date", "choose-date-easy", "choose-date-medium",
    "choose-date-nodelay", "click-collapsible", "click-collapsible-2", "click-dialog", "click-pie",
    "click-pie-nodelay", "drag-cube", "form-sequence", "scroll-text", "scroll-text-2", "stock-market",
    "use-colorwheel", "use-colorwheel-2", "use-slider", "use-slider-2",
}  # fmt: skip


def begins_in_place(page: str) -> bool:
    """Whether an episode on a page that is open already has the bytes of one on that page just loaded."""
    return page not in _LOADED and not page.startswith(_FLIGHT)


class MiniWoB(EpisodicWorld):
    """A world of MiniWoB++ pages. ``Goal.page`` is a page's name, such as ``click-button`` or ``flight.AA``.

    The browser starts with the first reset, and is replaced by the next reset after it broke.
    """

    def __init__(self) -> None:
        super().__init__()
        self._browser: Browser | None = None
        self._shown = ""  # the page that the browser has open
        self._reward = 0.0

    def _begin(self, goal: Goal, seed: int) -> Start:
        root, file = _pages(), _file(goal.page)
        if not (root / file).is_file():
            raise WorldError(f"goal {goal.id}: page {goal.page!r} is not one of {root}: there is no {file}")
        browser = self._browser_for(root, goal.page)
        if self._shown == goal.page and begins_in_place(goal.page):
            browser.leave()
        else:
            browser.open(file)
        self._shown = goal.page
        instruction = browser.evaluate(f"__ratchet.begin({seed})")
        browser.pass_time(0)
        return Start(" ".join(instruction.split()), self._observe(browser))

    def _act(self, action: Action) -> Observation:
        browser = held(self._browser)
        browser.perform(action)
        return self._observe(browser)

    def _reached(self) -> bool:
        return self._reward >= _SUCCESS

    def _release(self) -> None:
        if self._browser is not None:
            self._browser.close()
            self._browser, self._shown = None, ""

    def _browser_for(self, root: Path, page: str) -> Browser:
        """The browser that shows a page: the present one, or a new one where it is none or of another kind."""
        kind = FlightBrowser if page.startswith(_FLIGHT) else Browser
        browser = self._browser
        if browser is None or type(browser) is not kind:
            self._release()
            browser = self._browser = kind(root, [_SCRIPT])
        return browser

    def _observe(self, browser: Browser) -> Observation:
        seen, picture = browser.observe("__ratchet.look()")
        self._ended = bool(seen["done"])
        self._reward = float(seen["reward"]) if self._ended else 0.0
        return Observation(picture, listed(seen["elements"]))


def _file(page: str) -> str:
    """Where a page lies in the package's folder of pages."""
    return f"flight/{page.removeprefix(_FLIGHT)}/wrapper.html" if page.startswith(_FLIGHT) else f"miniwob/{page}.html"


def _pages() -> Path:
    """The package's folder of pages, found without importing it: that would load its own browser driver."""
    spec = find_spec("miniwob")
    if spec is None or not spec.submodule_search_locations:
        raise WorldError("the package miniwob, which has the pages, is not installed; run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "html"
