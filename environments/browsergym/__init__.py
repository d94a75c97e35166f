"""BrowserGym environments as worlds: what runs there, such as ``browsergym/miniwob.click-button``, runs here.

BrowserGym pins an older Playwright, so it lives in a virtual environment of its own (``make browsergym``), in a
process that this world starts and asks. Its page has neither our clock nor our frames, so a step takes as long
as BrowserGym takes, and docs/browsergym.md says what is the same from one run to the next.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from environments.episodic import EpisodicWorld, held
from environments.home import Home
from environments.listing import cut
from environments.programs import last_words
from environments.types import (
    WAYS,
    Action,
    Element,
    Goal,
    Kind,
    Observation,
    Start,
    WorldError,
    swipe_end,
)

_PYTHON = Path(__file__).parents[2] / ".ratchet/browsergym/bin/python"
_WORKER = Path(__file__).with_name("worker.py")
_TIMEOUT_S = 120.0  # a reset starts two browsers, and the first one imports BrowserGym
_CHUNK = 1 << 20
_SUCCESS = 1.0
_SCROLL_SHARE = 0.8  # of the screen's side, a scroll moves
_LEAST_VISIBLE = 0.5  # of an element's area, for it to be seen and clicked at its centre

_CONTROLS = {  # BrowserGym's role: our kind. What lies inside them is their text.
    "button": "button",
    "link": "link",
    "tab": "tab",
    "option": "option",
    "menuitem": "menuitem",
    "checkbox": "checkbox",
    "switch": "checkbox",
    "radio": "radio",
    "slider": "slider",
    "spinbutton": "textbox",
    "textbox": "textbox",
    "searchbox": "textbox",
    "combobox": "select",
    "heading": "heading",
    "image": "image",
    "img": "image",
    "Canvas": "image",
}
_VALUED = ("textbox", "select", "slider")  # their text is what they hold, not what they are called
_ON = ("checked", "selected", "expanded", "pressed")


class BrowserGym(EpisodicWorld):
    """A world of BrowserGym environments. ``Goal.page`` is an environment's Gymnasium id; the seed is BrowserGym's own.

    The process starts with the first reset, and is replaced by the next reset after it broke. Its Python is
    the one that RATCHET_BROWSERGYM_PYTHON names, else the one that ``make browsergym`` sets up.

    BrowserGym itself counts a MiniWoB++ page as solved when it pays anything at all; here it must pay all.
    """

    def __init__(self) -> None:
        super().__init__()
        self._worker: _Worker | None = None
        self._reward = 0.0
        self._mouse = (0, 0)

    def _begin(self, goal: Goal, seed: int) -> Start:
        try:
            self._worker = self._worker or _Worker(_find_python())
            told = self._worker.ask(page=goal.page, seed=seed)
        except WorldError as error:
            raise WorldError(f"goal {goal.id}: page {goal.page!r}: {error}") from error
        observation = self._observe(told)
        shown = observation.elements
        self._mouse = shown[len(shown) // 2].point if shown else (0, 0)  # over the page, wherever it lies
        return Start(" ".join(told["instruction"].split()), observation)

    def _act(self, action: Action) -> Observation:
        self._mouse = action.point or self._mouse
        return self._observe(held(self._worker).ask(action=spoken(action, self._mouse, held(self._last).size)))

    def _reached(self) -> bool:
        return self._reward >= _SUCCESS

    def _release(self) -> None:
        """End the process and its browsers."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _observe(self, told: dict[str, Any]) -> Observation:
        self._ended = told["ended"]
        raw = told["raw_reward"]
        self._reward = (told["reward"] if raw is None else float(raw)) if self._ended else 0.0
        screen = Observation(base64.b64decode(told["screenshot"]), ())
        found = elements(told["nodes"], told["properties"], told["focused"], screen.size)
        return replace(screen, elements=cut(found))


def spoken(action: Action, mouse: tuple[int, int], size: tuple[int, int]) -> str:
    """An action in BrowserGym's words; ``complete`` has none.

    Args:
        action: what to say.
        mouse: where the mouse is; a scroll moves what lies there.
        size: width and height of the screen in pixels, by a share of which a scroll moves.
    """
    at, way = action.point or mouse, WAYS.get(action.text, (0, 0))
    match action.kind:
        case Kind.CLICK:
            words = f"mouse_click{at}"
        case Kind.LONG_PRESS:
            words = f"mouse_move{at} mouse_down{at} noop(1000) mouse_up{at}"
        case Kind.SWIPE:
            words = f"mouse_drag_and_drop{at + swipe_end(at, action.text, size)}"
        case Kind.TYPE:
            words = f"keyboard_type({_quoted(action.text)})"
        case Kind.PRESS:
            words = f"keyboard_press({_quoted(action.text)})"
        case Kind.SCROLL:
            across, down = (round(step * side * _SCROLL_SHARE) for step, side in zip(way, size, strict=True))
            words = f"mouse_move{at} scroll({across}, {down})"
        case _:
            words = "noop(1000)"
    return words


def _quoted(text: str) -> str:
    # Its parser takes a backslash before any character as that character, so repr and JSON escape too much.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def elements(
    nodes: list[dict[str, Any]], properties: dict[str, dict[str, Any]], focused: str, size: tuple[int, int]
) -> tuple[Element, ...]:
    """The visible elements of BrowserGym's accessibility tree, in page order.

    Args:
        nodes: those of ``axtree_object``; the first is the root.
        properties: ``extra_element_properties``: box and visible share of what has a BrowserGym id.
        focused: the id of what has the focus.
        size: width and height of the screen in pixels, to which boxes are cut.
    """
    found = []
    for node, owner in _in_page_order(nodes):
        known = properties.get(owner, {})
        kind = _kind(node, known)
        box = _box(known, size)
        if kind is not None and box is not None:
            found.append(Element(kind, _text(node, kind), box, _states(node, has_focus=owner == focused)))
    return tuple(found)


def _in_page_order(nodes: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Each node with the nearest BrowserGym id at or above it: text has none of its own."""
    by_id = {node["nodeId"]: node for node in nodes}
    ahead = [(nodes[0], "")]
    while ahead:
        node, above = ahead.pop()
        owner = node.get("browsergym_id", above)
        yield node, owner
        if node["role"]["value"] not in _CONTROLS:
            inside = [by_id[child] for child in node.get("childIds", ()) if child in by_id]
            ahead += [(child, owner) for child in reversed(inside)]


def _kind(node: dict[str, Any], known: dict[str, Any]) -> str | None:
    role = node["role"]["value"]
    if role == "StaticText" and _said(node, "name"):
        return "link" if known.get("clickable") else "text"
    if role in _CONTROLS:
        return _CONTROLS[role]
    bare = known.get("clickable") and "browsergym_id" in node and not node.get("childIds")
    return "image" if bare else None  # such as an icon that is drawn by a style sheet


def _text(node: dict[str, Any], kind: str) -> str:
    said = " ".join(_said(node, "value" if kind in _VALUED else "name").split())
    return said.encode(errors="replace").decode()  # half a pair of code units is no text


def _said(node: dict[str, Any], field: str) -> str:
    return str(node.get(field, {}).get("value", "")).strip()


def _states(node: dict[str, Any], *, has_focus: bool) -> tuple[str, ...]:
    given = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
    on = any(given.get(name) in (True, "true") for name in _ON)
    return ("focus",) * (has_focus and node["role"]["value"] != "StaticText") + ("on",) * on


def _box(known: dict[str, Any], size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    if not known or known["bbox"] is None or (known["visibility"] or 0.0) < _LEAST_VISIBLE:
        return None
    left, top, width, height = known["bbox"]
    right, bottom = min(round(left + width), size[0]), min(round(top + height), size[1])
    left, top = max(round(left), 0), max(round(top), 0)
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None


def _find_python() -> Path:
    python = Path(os.environ.get("RATCHET_BROWSERGYM_PYTHON", _PYTHON))
    if not os.access(python, os.X_OK):
        raise WorldError(
            f"{python}: no Python with BrowserGym; run `make browsergym`, or set RATCHET_BROWSERGYM_PYTHON"
        )
    return python


class _Worker:
    """The process that runs BrowserGym, and the conversation with it."""

    def __init__(self, python: Path) -> None:
        self._home = Home("browsergym")
        self._log = self._home.path / "log.txt"
        self._process = self._start(python)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._buffer = b""

    def _start(self, python: Path) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as log:
            try:
                return subprocess.Popen(
                    [python, "-I", _WORKER],  # -I: its own packages alone, whatever this process was told
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    env=os.environ | {"TMPDIR": str(self._home.path)},
                    start_new_session=True,
                )
            except OSError as error:
                raise WorldError(f"{python}: could not be started: {error}") from error

    def ask(self, **request: object) -> dict[str, Any]:
        """Send a request and wait for its answer. Raises WorldError when there is none, or it is an error."""
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError as error:
            raise self._died() from error
        answer: dict[str, Any] = json.loads(self._line(time.monotonic() + _TIMEOUT_S))
        if "error" in answer:
            raise WorldError(f"BrowserGym failed: {' '.join(answer['error'].split())[:300]}")
        return answer

    def close(self) -> None:
        """Kill the process, whose browsers end with it, and remove its files."""
        with suppress(ProcessLookupError):  # it may have died by itself
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._requests.close()
        self._answers.close()
        self._home.close()

    def _line(self, deadline: float) -> bytes:
        poller = select.poll()
        poller.register(self._answers, select.POLLIN)
        while b"\n" not in self._buffer:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not poller.poll(left_s * 1000):
                raise WorldError(f"BrowserGym (process {self._process.pid}) gave no answer within {_TIMEOUT_S:g} s")
            chunk = self._answers.read(_CHUNK)
            if not chunk:
                raise self._died()
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _died(self) -> WorldError:
        return WorldError(f"BrowserGym (process {self._process.pid}) died; its last words: {last_words(self._log)}")
