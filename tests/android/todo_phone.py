"""A phone with one app, as a state machine: what a finger and keys do to it, its screen as elements.

It follows the views of the Android framework where the driver depends on them: bounds cut at their parents' edges,
a long press from 500 ms on, a list that moves with the finger, a keyboard that knows ASCII. Its clock moves by what
commands take, so a dialog that opens slowly opens after the same command each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

WIDTH, HEIGHT = 240, 400
ROW, LIST_TOP, TAB = 40, 100, 80
LONG_PRESS_MS, SLOP, DIALOG_MS = 500, 8, 150
TABS = ("home", "work", "shop", "trip", "misc")
ITEMS = ("Bread", "Milk", "Eggs", "Soap", "Tea", "Rice", "Salt", "Figs", "Corn", "Jam")

Box = tuple[int, int, int, int]  # left, top, right, bottom


@dataclass
class View:
    """A node of the screen: what uiautomator would say of it, and what a finger on it does."""

    kind: str  # the class
    box: Box
    text: str = ""
    description: str = ""
    name: str = ""  # the resource id
    true: frozenset[str] = frozenset()  # attributes that are "true"
    children: list[View] = field(default_factory=list)
    tap: Callable[[], None] | None = None
    hold: Callable[[], None] | None = None
    fling: Callable[[int], None] | None = None  # of a row: the finger's way across in pixels
    drag: Callable[[int, int], None] | None = None  # of what scrolls: the finger's way

    def under(self, x: int, y: int) -> Iterator[View]:
        """The views under a point, the innermost first."""
        left, top, right, bottom = self.box
        if left <= x < right and top <= y < bottom:
            for child in reversed(self.children):
                yield from child.under(x, y)
            yield self


class TodoPhone:
    """A to-do list: tick, add, delete by a long press and a dialog, archive by a swipe to the left."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.app = ""  # what is in front: "" is the home screen
        self.blinks = False  # whether a cursor keeps the screen from ever resting
        self.log: list[str] = []  # what reached the phone
        self.clear()

    def clear(self) -> None:
        """The app's data as after its installation."""
        self.items = dict.fromkeys(ITEMS, False)
        self.archived: list[str] = []
        self.note, self.tab = "", TABS[0]
        self.stop()

    def stop(self) -> None:
        """What the app forgets when its process ends."""
        self.focused, self.asked, self.asking_from_ms = False, "", 0
        self.down, self.across = 0, 0  # how far list and tabs are scrolled

    @property
    def asking(self) -> bool:
        return bool(self.asked) and self.now_ms >= self.asking_from_ms

    # What a finger does.

    def touch(self, start: tuple[int, int], end: tuple[int, int], ms: int) -> None:
        """A finger goes down, moves, and is lifted after ``ms``."""
        across, down = end[0] - start[0], end[1] - start[1]
        under = list(self.screen().under(*start))
        if max(abs(across), abs(down)) > SLOP:
            self._move(under, across, down)
        elif ms >= LONG_PRESS_MS and (held := next((view for view in under if view.hold), None)):
            held.hold()  # type: ignore[misc]
        elif tapped := next((view for view in under if view.tap), None):
            tapped.tap()  # type: ignore[misc]

    def _move(self, under: list[View], across: int, down: int) -> None:
        flung = next((view for view in under if view.fling), None)
        if flung is not None and abs(across) > 2 * abs(down):
            flung.fling(across)  # type: ignore[misc]
        elif moved := next((view for view in under if view.drag), None):
            moved.drag(across, down)  # type: ignore[misc]

    def _drag_list(self, across: int, down: int) -> None:
        room = max(0, len(self.items) * ROW - (HEIGHT - LIST_TOP))
        self.down = min(max(self.down - down, 0), room)

    def _drag_tabs(self, across: int, down: int) -> None:
        self.across = min(max(self.across - across, 0), len(TABS) * TAB - WIDTH)

    def _archive(self, item: str, across: int) -> None:
        if across < -WIDTH // 4:
            del self.items[item]
            self.archived.append(item)

    def _ask(self, item: str) -> None:
        self.asked, self.asking_from_ms = item, self.now_ms + DIALOG_MS

    def _answer(self, delete: bool) -> None:
        if delete:
            del self.items[self.asked]
        self.asked = ""

    def _add(self) -> None:
        if self.note:
            self.items[self.note] = False
        self.note, self.focused = "", False

    # What keys do.

    def type(self, text: str) -> None:
        if self.focused and not self.asking:
            self.note += text

    def key(self, name: str) -> None:
        if name == "HOME" or (name == "BACK" and not self.asking):
            self.app = ""
        elif name == "BACK":
            self.asked = ""
        elif name == "ENTER" and self.focused:
            self._add()
        elif name == "DEL" and self.focused:
            self.note = self.note[:-1]

    # What is on the screen.

    def screen(self) -> View:
        if not self.app:
            return self._home()
        return self._dialog() if self.asking else self._list_screen()

    def _home(self) -> View:
        icon = View("android.widget.ImageView", (20, 60, 80, 120), description="Todo", tap=self._open, true=CLICKABLE)
        return _window([_label("Home", (0, 0, WIDTH, 30)), icon])

    def _open(self) -> None:
        self.app = "todo"

    def _dialog(self) -> View:
        buttons = [
            _button("Cancel", (40, 210, 110, 245), lambda: self._answer(False)),
            _button("Delete", (130, 210, 200, 245), lambda: self._answer(True)),
        ]
        question = _label(f"Delete {self.asked}?", (40, 160, 200, 200))
        return View("android.widget.FrameLayout", (30, 150, 210, 250), children=[question, *buttons])

    def _list_screen(self) -> View:
        states = FIELD | ({"focused"} if self.focused else set())
        note = View("android.widget.EditText", (8, 64, 158, 96), self.note, name="note", true=states, tap=self._focus)
        add = _button("Add", (166, 64, 232, 96), self._add)
        return _window([_label("Todo", (0, 0, WIDTH, 30)), self._tabs(), note, add, self._list()])

    def _focus(self) -> None:
        self.focused = True

    def _tabs(self) -> View:
        tabs = []
        for place, name in enumerate(TABS):
            left = place * TAB - self.across
            states = CLICKABLE | ({"selected"} if name == self.tab else set())
            tabs.append(
                View("android.widget.TextView", (left, 30, left + TAB, 60), name, true=states, tap=self._show(name))
            )
        strip, box = "android.widget.HorizontalScrollView", (0, 30, WIDTH, 60)
        return View(strip, box, true=frozenset({"scrollable"}), children=tabs, drag=self._drag_tabs)

    def _show(self, tab: str) -> Callable[[], None]:
        return lambda: setattr(self, "tab", tab)

    def _list(self) -> View:
        rows = [self._row(item, LIST_TOP + place * ROW - self.down) for place, item in enumerate(self.items)]
        box = (0, LIST_TOP, WIDTH, HEIGHT)
        moving = frozenset({"scrollable"})
        return View("android.widget.ListView", box, true=moving, children=rows, drag=self._drag_list)

    def _row(self, item: str, top: int) -> View:
        states = CLICKABLE | {"checkable", "long-clickable"} | ({"checked"} if self.items[item] else set())
        row = View("android.widget.CheckBox", (0, top, WIDTH, top + ROW), item, true=states)
        row.tap = lambda: self.items.update({item: not self.items[item]})
        row.hold = lambda: self._ask(item)
        row.fling = lambda across: self._archive(item, across)
        return row


CLICKABLE = frozenset({"clickable", "focusable"})
FIELD = CLICKABLE | {"long-clickable"}


def _window(children: list[View]) -> View:
    return View("android.widget.FrameLayout", (0, 0, WIDTH, HEIGHT), children=children)


def _label(text: str, box: Box) -> View:
    return View("android.widget.TextView", box, text)


def _button(text: str, box: Box, tap: Callable[[], None]) -> View:
    return View("android.widget.Button", box, text, true=CLICKABLE, tap=tap)
