"""A headless Chromium with one page, whose time and frames are commanded from here.

The page's clock moves only by what an action takes (:data:`ACTION_MS`, :data:`WAIT_MS`), the screen is
drawn when it is asked for, and nothing but files under one folder can be reached. So the same actions
give the same pictures. `chromium-headless-shell` draws frames on command; any other Chromium works
too, on its own frames, more slowly.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from environments.browser.cdp import Pipe, Refused
from environments.browser.keys import key_event
from environments.home import Home
from environments.programs import kept_variables
from environments.types import Action, Element, Kind, WorldError, swipe_end

NO_HOST = "MAP * ~NOTFOUND"  # not even an address written in digits
ACTION_MS = 400  # of the page's time, that an action takes
WAIT_MS = 1000  # of the page's time, that a wait takes
TIMEOUT_S = 10.0  # for one answer of the browser: a hung one is given up after this
START_TIMEOUT_S = 60.0  # a cold start on a busy machine
_PNG = {"format": "png", "optimizeForSpeed": True}  # packed in a third of the time, a third larger
_FRAMES_TO_DRAW = 50
# The browser sets these while its other threads read the environment; where they are there, nothing has to move for it,
# and no thread reads what is freed.
_SET_BY_BROWSER = {"DBUS_SESSION_BUS_ADDRESS": "disabled:", "FC_FONTATIONS": "1", "VK_ICD_FILENAMES": ""}
_TYPED_KEYS = {"\n": "Enter", "\t": "Tab"}

_NAMES = ("chromium-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome")
_SCRIPTS = ("clock.js", "tree.js", "popups.js", "elements.js")

_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # pages are local, and containers rarely allow the sandbox
    # Nothing is reached over the network but what the resolver's rules name.
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--block-new-web-contents",
    # The same pixels everywhere.
    "--disable-gpu",
    "--in-process-gpu",  # what draws is a thread of the browser: each frame passes fewer processes
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--lang=en-US",
    # Nothing moves by itself.
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
    "--disable-partial-raster",
    "--disable-image-animation-resync",
    "--disable-smooth-scrolling",
    "--blink-settings=imageAnimationPolicy=2",  # pictures do not move
    # Nothing else in the way.
    "--no-first-run",
    "--disable-extensions",
    "--disable-dev-shm-usage",
)
_FRAMES_ON_COMMAND = (
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
)
_FRAMES_AT_ONCE = ("--disable-frame-rate-limit",)  # else each screenshot waits for the screen's next refresh


class Screen(NamedTuple):
    """A viewport in CSS pixels, each a pixel of the screenshot."""

    width: int
    height: int


VIEWPORT_PX = Screen(160, 210)


def listed(found: Iterable[Any]) -> tuple[Element, ...]:
    """The elements that elements.js found."""
    return tuple(Element(kind, text, tuple(box), tuple(states)) for kind, text, box, states in found)


def find_browser() -> Path:
    """The Chromium to use: what RATCHET_CHROMIUM names, else the first known name on PATH.

    Raises:
        WorldError: when there is none.
    """
    named = os.environ.get("RATCHET_CHROMIUM")
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named)
        raise WorldError(f"RATCHET_CHROMIUM={named}: it must name a program; correct or unset it")
    for name in _NAMES:
        if found := shutil.which(name):
            return Path(found)
    raise WorldError(
        f"no browser: none of {', '.join(_NAMES)} is on PATH; run `make setup` or "
        "`apt-get install chromium-headless-shell`, or set RATCHET_CHROMIUM"
    )


class Browser:
    """One browser process with one page, which may load only what lies under ``root``.

    Args:
        root: the folder whose files the page may load, or the URL that what it loads must begin with.
        scripts: JavaScript files that run in the page before its own, after the driver's.
        timeout_s: how long one answer of the browser may take, once it has started.
        screen: the viewport.
        hosts: Chromium's rules for what a host name leads to.

    Raises:
        WorldError: from every method, when the browser cannot start, has died, or gives no answer within
            ``timeout_s`` (:data:`START_TIMEOUT_S` at the start). Close it then, and make a new one.
    """

    def __init__(
        self,
        root: Path | str,
        scripts: Sequence[Path] = (),
        timeout_s: float = TIMEOUT_S,
        screen: Screen = VIEWPORT_PX,
        hosts: str = NO_HOST,
    ) -> None:
        self._root = root.resolve().as_uri() + "/" if isinstance(root, Path) else root
        self._screen, self._hosts = screen, hosts
        self._scripts = [Path(__file__).with_name(name) for name in _SCRIPTS] + list(scripts)
        self._home = Home("chromium")
        self._pipe: Pipe | None = None
        self._session: str | None = None
        self._page = ""  # its target, which is also its main frame
        self._loading = False
        self._mouse = (0, 0)
        self._scrollbars = True  # whether the page may have any
        try:
            try:
                self._start(commands_frames=True)
            except Refused:  # this browser has no frames on command
                self._live_pipe.close()
                self._start(commands_frames=False)
            self._live_pipe.timeout_s = timeout_s
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id of the browser, which is also its process group."""
        return self._live_pipe.pid

    def open(self, url_path: str) -> None:
        """Load a file by its path under the root and wait for its pictures. The mouse goes to 0,0.

        Raises:
            WorldError: when the file cannot be loaded.
        """
        url = self._root + url_path
        self._loading = True
        answer = self._call("Page.navigate", url=url)
        if error := answer.get("errorText"):
            raise WorldError(f"{url}: the page did not load: {error}")
        self._live_pipe.wait(self._loaded)
        self.leave()
        self.pass_time(0)
        self.screenshot()  # a click on a page that was never drawn may get lost

    def leave(self) -> None:
        """Move the mouse to 0,0."""
        self._mouse = (0, 0)
        moved = self._post_mouse("mouseMoved")
        while not self._live_pipe.answered(moved):  # it is only after a frame, which it may come too late for
            self.evaluate("__ratchet.stir()")
            self._frame()
        self._reply(moved)

    def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression in the page; a promise is waited for.

        Raises:
            WorldError: when the expression throws.
        """
        self._scrollbars = True
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, silent=True
        )
        if details := answer.get("exceptionDetails"):
            thrown = details.get("exception", {}).get("description", details["text"])
            raise WorldError(f"{expression[:60]}: the page threw {thrown[:300]}")
        return answer["result"].get("value")

    def perform(self, action: Action) -> None:
        """Act, and let the page's time pass that the action takes. ``complete`` does nothing."""
        if action.kind is Kind.CLICK and action.point is not None:
            self.click(*action.point)
        elif action.kind is Kind.TYPE:
            self.type(action.text)
        elif action.kind is Kind.PRESS:
            self.press(action.text)
        elif action.kind is Kind.LONG_PRESS and action.point is not None:
            self.drag(action.point, action.point, WAIT_MS)
        elif action.kind is Kind.SWIPE and action.point is not None:
            self.drag(action.point, swipe_end(action.point, action.text, self._screen), 0)
        elif action.kind is Kind.SCROLL:
            self.scroll(-1 if action.text in ("up", "left") else 1, across=action.text in ("left", "right"))
        self.pass_time(WAIT_MS if action.kind is Kind.WAIT else ACTION_MS)

    def observe(self, expression: str) -> tuple[Any, bytes]:
        """Draw a frame: the value of an expression in the page after it, as of :meth:`evaluate`, and its PNG."""
        picture = self.screenshot()
        value, self._scrollbars = self.evaluate(f"[{expression}, __ratchet.scrollbars()]")
        return value, picture

    def click(self, x: int, y: int) -> None:
        """Press and release the left button at a point in CSS pixels."""
        self._mouse = (x, y)
        if self._press_scrollbar():
            return
        events = [self._post_mouse("mouseMoved")]
        events += [self._post_mouse(name, button="left", clickCount=1) for name in ("mousePressed", "mouseReleased")]
        for event in events:
            self._reply(event)

    def drag(self, start: tuple[int, int], end: tuple[int, int], ms: int) -> None:
        """Press the left button at a point, let ``ms`` of the page's time pass, move to the other, release there."""
        self._mouse = start
        if self._press_scrollbar():
            return
        for event in [self._post_mouse("mouseMoved"), self._post_mouse("mousePressed", button="left", clickCount=1)]:
            self._reply(event)
        self.pass_time(ms)
        self._mouse = end
        moved = self._post_mouse("mouseMoved", button="left", buttons=1)
        for event in [moved, self._post_mouse("mouseReleased", button="left", clickCount=1)]:
            self._reply(event)

    def type(self, text: str) -> None:
        """Type text, key by key, into what has the focus."""
        for character in text:
            self.press(_TYPED_KEYS.get(character, character))

    def press(self, key: str) -> None:
        """Press and release a key by its DOM name; a key no page knows has no effect."""
        down, up = key_event(key)
        events = [self._post("Input.dispatchKeyEvent", **event) for event in (down, up)]
        for event in events:
            self._reply(event)

    def scroll(self, direction: int, across: bool = False) -> None:
        """Scroll what lies under the mouse, else the largest thing that scrolls; -1 is up (left) and 1 down (right)."""
        x, y = self._mouse
        self.evaluate(f"__ratchet.scroll({x}, {y}, {direction}, {str(across).lower()})")

    def pass_time(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass in the page, wait for its pictures and let it lay itself out."""
        self.evaluate(f"__ratchet.advance({ms}).then(__ratchet.ready)")

    def screenshot(self) -> bytes:
        """The viewport as a PNG."""
        if not self._commands_frames:
            return self._capture()
        for _ in range(_FRAMES_TO_DRAW):  # the first frames of a new document may draw nothing
            answer = self._call("HeadlessExperimental.beginFrame", screenshot=_PNG)
            if data := answer.get("screenshotData"):
                return base64.b64decode(data)
        raise WorldError(f"the browser (process {self.pid}) drew nothing in {_FRAMES_TO_DRAW} frames")

    def close(self) -> None:
        """End the browser and remove its files. A second call has no effect."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        self._home.close()

    @property
    def _live_pipe(self) -> Pipe:
        if self._pipe is None:
            raise WorldError("the browser is closed")
        return self._pipe

    def _start(self, commands_frames: bool) -> None:
        home = self._home.path
        frames = _FRAMES_ON_COMMAND if commands_frames else _FRAMES_AT_ONCE
        rules = f"--host-resolver-rules={self._hosts}"
        command = [str(find_browser()), *_FLAGS, *frames, rules, f"--user-data-dir={home}"]
        environment = kept_variables() | {"HOME": str(home), "TZ": "UTC", "LANG": "en_US.UTF-8"} | _SET_BY_BROWSER
        self._pipe = Pipe(command, environment, home / "log.txt", self._on_event, START_TIMEOUT_S, self._on_quiet)
        self._commands_frames = commands_frames
        self._session = None
        self._session = self._attach()
        self._prepare()
        if commands_frames:
            self._frame()

    def _prepare(self) -> None:
        """Set up the page: its viewport, its clock, and what it may reach."""
        source = "\n".join(path.read_text(encoding="utf-8") for path in self._scripts)
        screen = {**self._screen._asdict(), "deviceScaleFactor": 1, "mobile": False}
        self._call("Page.enable")
        self._call("Inspector.enable")
        self._call("Fetch.enable", patterns=[{"urlPattern": "*"}])
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)
        self._call("Emulation.setDeviceMetricsOverride", **screen)
        self._call("Page.addScriptToEvaluateOnNewDocument", source=source)

    def _attach(self, **options: Any) -> str:
        """Make the page; returns its session."""
        if self._commands_frames:
            options["enableBeginFrameControl"] = True
        self._page = self._call("Target.createTarget", url="about:blank", **options)["targetId"]
        session: str = self._call("Target.attachToTarget", targetId=self._page, flatten=True)["sessionId"]
        return session

    def _frame(self) -> None:
        if self._commands_frames:
            self._call("HeadlessExperimental.beginFrame", noDisplayUpdates=True)
        else:
            self._capture()

    def _capture(self) -> bytes:
        return base64.b64decode(self._call("Page.captureScreenshot", **_PNG)["data"])

    def _loaded(self) -> bool:
        return not self._loading

    def _on_quiet(self) -> None:
        """Nothing has come for a while, though something is waited for: nothing can be done about it here."""

    def _on_event(self, name: str, params: dict[str, Any]) -> None:
        if name == "Page.loadEventFired":
            self._loading = False
        elif name == "Fetch.requestPaused":
            self._allow_or_refuse(params)
        elif name == "Inspector.targetCrashed":
            raise WorldError(f"the page's process crashed (browser process {self.pid})")

    def _allow_or_refuse(self, params: dict[str, Any]) -> None:
        """Let the page's own files through. Once open, no document follows: the episode would go with it."""
        request = params["requestId"]
        leaves = params["resourceType"] == "Document" and not self._loading
        if params["request"]["url"].startswith(self._root) and not leaves:
            self._tell("Fetch.continueRequest", requestId=request)
        else:
            self._tell("Fetch.failRequest", requestId=request, errorReason="Aborted")

    def _press_scrollbar(self) -> bool:
        """Whether the mouse is on a scrollbar; if so, press it."""
        x, y = self._mouse
        return self._scrollbars and bool(self.evaluate(f"__ratchet.pressScrollbar({x}, {y})"))

    def _post(self, method: str, **params: Any) -> int:
        return self._live_pipe.post(method, params, self._session)

    def _post_mouse(self, event: str, **params: Any) -> int:
        x, y = self._mouse
        return self._post("Input.dispatchMouseEvent", type=event, x=x, y=y, **params)

    def _tell(self, method: str, **params: Any) -> None:
        self._live_pipe.tell(method, params, self._session)

    def _reply(self, command: int) -> dict[str, Any]:
        return self._live_pipe.reply(command)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._reply(self._post(method, **params))
