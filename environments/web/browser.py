"""A Chromium for one web application: a live server, followed links and forms, a profile for each episode.

The page's time stands still while a request is under way, so how long the server takes changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments.browser.cdp import Refused
from environments.browser.chromium import ACTION_MS, NO_HOST, Browser, Screen
from environments.types import WorldError
from environments.web.server import HOST

ORIGIN = f"http://{HOST}/"
ANSWER_TIMEOUT_S = 30.0  # for a page with all it loads
SLICE_MS = 100  # of the page's time between two looks for requests
_ROUNDS = 200  # of requests, each begun by the one before, until a page is given up
_GRACE_ROUNDS = 10  # for a navigation that was announced and may yet be cancelled
_BY_SCRIPTS = ("XHR", "Fetch")
_SCRIPT = Path(__file__).with_name("web.js")
_LASTING = ("EventSource", "WebSocket", "Ping", "Media")  # these do not end, or nobody waits for them
_PHONE = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{} Mobile Safari/537.36"
)


@dataclass
class _Traffic:
    """What a page is waiting for."""

    announced: bool = False  # a document that may yet not be asked for
    begun: int = 0  # how many requests and documents so far
    failed: str = ""  # the address of a document that did not load
    under_way: dict[str, tuple[str, str]] = field(default_factory=dict)  # a request: its document's id, its address
    queue: dict[str, str] = field(default_factory=dict)  # what scripts ask for, and the ids to let it go with
    sent: str = ""  # the one of these that is being answered
    answered: bool = False  # whether its answer has begun to come


class WebBrowser(Browser):
    """One browser process for the application that listens at a port; the page knows it as :data:`ORIGIN`.

    Args:
        port: where the server listens on this machine.
        screen: the viewport.
        hosts: other hosts that the page may reach.
        hide: CSS selectors of what is not shown.
        phone: whether there is touch instead of a mouse and no scrollbar. A page is never shrunk to fit.
    """

    def __init__(
        self, port: int, screen: Screen, hosts: Sequence[str] = (), hide: Sequence[str] = (), phone: bool = False
    ) -> None:
        self._others, self._hide, self._phone = tuple(hosts), list(hide), phone
        self._context: str | None = None
        self._traffic = _Traffic()
        rules = [f"MAP {HOST}:80 127.0.0.1:{port}", NO_HOST, *(f"EXCLUDE {host}" for host in hosts)]
        super().__init__(ORIGIN, [_SCRIPT], ANSWER_TIMEOUT_S, screen, ", ".join(rules))

    def renew(self, cookies: Mapping[str, str]) -> None:
        """A new page in a new profile with these cookies: nothing is left of what was before."""
        self._session = None
        self._session = self._attach()
        self._traffic, self._loading = _Traffic(), False  # what the page before began is nobody's
        self._prepare()
        for name, value in cookies.items():
            self._call("Network.setCookie", name=name, value=value, url=ORIGIN)

    def open(self, url_path: str) -> None:
        """Load a page by its path and let it set itself up. The mouse goes to 0,0."""
        super().open(url_path.lstrip("/"))
        self.pass_time(ACTION_MS)

    def login(self, fields: Mapping[str, str]) -> None:
        """Fill in fields by their CSS selectors, and send the form of the last one."""
        self.evaluate(f"__ratchet.login({json.dumps(fields)})")
        self.pass_time(ACTION_MS)

    def click(self, x: int, y: int) -> None:
        """Click at a point in CSS pixels; on a phone, tap."""
        if not self._phone:
            super().click(x, y)
            return
        self._mouse = (x, y)
        self.evaluate("__ratchet.expectTap()")
        for name in ("mousePressed", "mouseReleased"):  # made touches; these are never answered
            self._tell("Input.dispatchMouseEvent", type=name, x=x, y=y, button="left", clickCount=1)
        self._frame()
        with suppress(Refused):  # it led to another document
            self.evaluate("__ratchet.tapped")

    def drag(self, start: tuple[int, int], end: tuple[int, int], ms: int) -> None:
        """Press at a point, let ``ms`` of the page's time pass, move to the other, release there."""
        if not self._phone:
            super().drag(start, end, ms)
            return
        self._touch("mousePressed", start)
        self.pass_time(ms)
        self._touch("mouseMoved", end)
        self._touch("mouseReleased", end)

    def _touch(self, event: str, point: tuple[int, int]) -> None:
        self._mouse = x, y = point
        self._tell("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", buttons=1, clickCount=1)
        self._frame()

    def pass_time(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass in the page, in slices: each begins when nothing is under way.

        Raises:
            WorldError: when the page cannot be reached, or keeps loading.
        """
        for _ in range(0, ms, SLICE_MS):
            self._settle("__ratchet.nextTask()")
            self.evaluate(f"__ratchet.advance({SLICE_MS})")
        self._settle("__ratchet.settle()")

    def _settle(self, last: str) -> None:
        """Wait until no request and no document is on its way, also after the JavaScript that is given."""
        for turn in range(_ROUNDS):
            self._live_pipe.wait(self._loaded, self._awaited)
            if self._traffic.failed:
                raise WorldError(f"{self._traffic.failed}: the page did not load; does the server still run?")
            begun = self._traffic.begun
            try:
                self.evaluate(last)
            except Refused:  # the document has gone, and another is on its way
                continue
            self._frame()
            announced = self._traffic.announced and turn < _GRACE_ROUNDS
            if self._loaded() and begun == self._traffic.begun and not announced:
                self._traffic.announced = False
                return
        raise WorldError(f"the page keeps loading: each of {_ROUNDS} rounds of requests was followed by another")

    def _prepare(self) -> None:
        super()._prepare()
        self._call("Page.addScriptToEvaluateOnNewDocument", source=f"__ratchet.hide({json.dumps(self._hide)});")
        self._call("Network.enable")
        self._call("Page.setDownloadBehavior", behavior="deny")
        if self._phone:
            version = self._call("Browser.getVersion")["product"].partition("/")[2]
            self._call("Emulation.setUserAgentOverride", userAgent=_PHONE.format(version), platform="Linux armv8l")
            self._call("Emulation.setTouchEmulationEnabled", enabled=True)
            self._call("Emulation.setEmitTouchEventsForMouse", enabled=True, configuration="mobile")
            self._call("Emulation.setScrollbarsHidden", hidden=True)

    def _attach(self, **options: Any) -> str:
        """Make the page in a profile of its own; the one before goes with its profile."""
        if self._context is not None:
            self._live_pipe.tell("Target.disposeBrowserContext", {"browserContextId": self._context}, None)
        self._context = self._call("Target.createBrowserContext")["browserContextId"]
        return super()._attach(browserContextId=self._context, **options)

    def _loaded(self) -> bool:
        return not self._loading and not self._traffic.under_way

    def _awaited(self) -> str:
        """What the page waits for, in words."""
        addresses = ", ".join(url for _, url in self._traffic.under_way.values())
        return f"the page's requests to the server ({addresses[:300] or 'for the page itself'})"

    def _on_event(self, name: str, params: dict[str, Any]) -> None:
        on_top = params.get("frameId") == self._page
        if name == "Network.requestWillBeSent":
            self._begin(params)
        elif name in ("Network.loadingFinished", "Network.loadingFailed"):
            self._finish(params["requestId"])
        elif name == "Network.responseReceivedExtraInfo":  # which the page's own thread has no part in
            self._traffic.answered = self._traffic.answered or params["requestId"] == self._traffic.sent
        elif name == "Page.frameRequestedNavigation":
            self._traffic.announced = self._traffic.announced or (on_top and params["disposition"] == "currentTab")
        elif name == "Page.frameStartedLoading" and on_top:
            self._loading, self._traffic.announced = True, False
            self._traffic.begun += 1
        elif name == "Page.frameStoppedLoading" and on_top:
            self._loading = False
        elif name == "Page.frameNavigated" and params["frame"]["id"] == self._page:
            self._arrive(params["frame"])
        elif name == "Page.javascriptDialogOpening":  # asks whether to leave
            self._tell("Page.handleJavaScriptDialog", accept=True)
        elif name != "Page.loadEventFired":
            super()._on_event(name, params)

    def _begin(self, params: dict[str, Any]) -> None:
        document = params["loaderId"]  # none where a worker's script is asked for, whose end is not told here
        if document and params.get("type") not in _LASTING:
            self._traffic.begun += 1
            self._traffic.under_way[params["requestId"]] = document, params["request"]["url"]

    def _finish(self, request: str) -> None:
        self._traffic.under_way.pop(request, None)
        self._traffic.queue.pop(request, None)
        if request == self._traffic.sent:
            self._traffic.sent = ""
            self._send()

    def _send(self) -> None:
        """Let the next of the page's own requests go once the one before is answered: so their order is the page's."""
        if not self._traffic.sent and self._traffic.queue:
            self._traffic.sent, self._traffic.answered = next(iter(self._traffic.queue)), False
            self._tell("Fetch.continueRequest", requestId=self._traffic.queue.pop(self._traffic.sent))

    def _on_quiet(self) -> None:
        """A page that stands still until a request is answered (synchronous XHR) does not take in the one before."""
        if self._traffic.answered:
            self._traffic.sent = ""
            self._send()

    def _arrive(self, frame: dict[str, Any]) -> None:
        """A document has come: the requests of the one before are nobody's."""
        self._traffic.announced, self._traffic.failed = False, frame.get("unreachableUrl", "")
        self._traffic.queue, self._traffic.sent = {}, ""
        own = frame["loaderId"]
        self._traffic.under_way = {
            request: (loader, url) for request, (loader, url) in self._traffic.under_way.items() if loader == own
        }

    def _allow_or_refuse(self, params: dict[str, Any]) -> None:
        """Let through what is the application's or on a host that was named; abort the rest."""
        request = params["requestId"]
        url = params["request"]["url"]
        host = url.partition("//")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
        if not url.startswith(self._root) and host not in self._others:
            self._tell("Fetch.failRequest", requestId=request, errorReason="Aborted")
        elif (
            params["resourceType"] in _BY_SCRIPTS and params.get("networkId", self._traffic.sent) != self._traffic.sent
        ):
            self._traffic.queue[params["networkId"]] = request
            self._send()
        else:
            self._tell("Fetch.continueRequest", requestId=request)
