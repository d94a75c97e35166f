"""Scripted agents that solve MiniWoB++ pages from the instruction and the screen alone.

They make the first demonstrations, and show in tests that the goals can be reached through the actions
and elements an agent has. An oracle is one short function a page: it names the next action, or None
when the work is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from environments.types import Action, Element, Kind, Observation


class NoOracle(LookupError):
    """No oracle is written for a page."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What an oracle may know at a step, with the moves that most pages need."""

    instruction: str
    elements: tuple[Element, ...]
    taken: Sequence[Action]

    @property
    def quoted(self) -> list[str]:
        """The texts in double quotes in the instruction."""
        return re.findall(r'"([^"]*)"', self.instruction)

    def said(self, pattern: str) -> str:
        """What the group of a pattern matches in the instruction."""
        match = re.search(pattern, self.instruction)
        if match is None:
            raise ValueError(f"instruction {self.instruction!r}: nothing in it matches {pattern!r}")
        return match[1]

    def all(self, kind: str) -> list[Element]:
        """The visible elements of a kind."""
        return [element for element in self.elements if element.kind == kind]

    def find(self, kind: str, text: str) -> Element | None:
        """The first visible element of a kind with a text."""
        return next((element for element in self.all(kind) if element.text == text), None)

    def clicked(self, kind: str, text: str) -> bool:
        """Whether such an element was clicked before."""
        return any(action.target == (kind, text) for action in self.taken)

    def click(self, kind: str, text: str) -> Action | None:
        """Click an element, once; scroll down to it when it is out of sight."""
        if self.clicked(kind, text):
            return None
        element = self.find(kind, text)
        return Action(Kind.SCROLL, text="down") if element is None else Action.click(element)

    def switch_on(self, kind: str, text: str) -> Action | None:
        """Click an element unless it is on."""
        element = self.find(kind, text)
        return None if element is not None and "on" in element.states else self.click(kind, text)

    def fill(self, field: Element, text: str) -> Action | None:
        """Put a text into an empty field: focus it, then type."""
        if field.text == text:
            return None
        return Action(Kind.TYPE, text=text) if "focus" in field.states else Action.click(field)


Oracle = Callable[[Turn], Action | None]
_ORACLES: dict[str, Oracle] = {}


def next_action(page: str, instruction: str, observation: Observation, taken: Sequence[Action]) -> Action:
    """The oracle's action for the screen it sees, after the actions taken; ``complete`` when all is done.

    Raises:
        NoOracle: when no oracle is written for the page.
        ValueError: when the instruction is not worded as the page words it.
    """
    if page not in _ORACLES:
        raise NoOracle(f"page {page!r} has no oracle; there is one for {', '.join(sorted(_ORACLES))}")
    action = _ORACLES[page](Turn(instruction, observation.elements, taken))
    return Action(Kind.COMPLETE) if action is None else action


def pages() -> frozenset[str]:
    """The pages that have an oracle."""
    return frozenset(_ORACLES)


def _solves(*names: str) -> Callable[[Oracle], Oracle]:
    def register(oracle: Oracle) -> Oracle:
        _ORACLES.update(dict.fromkeys(names, oracle))
        return oracle

    return register


@_solves("click-test-2")
def _click_test_2(turn: Turn) -> Action | None:
    return turn.click("button", turn.said(r"button (\w+)"))


@_solves("click-button")
def _click_button(turn: Turn) -> Action | None:
    return turn.click("button", turn.quoted[0])


@_solves("click-link")
def _click_link(turn: Turn) -> Action | None:
    return turn.click("link", turn.quoted[0])


@_solves("click-dialog", "click-dialog-2")
def _click_dialog(turn: Turn) -> Action | None:
    label = turn.quoted[0]
    return turn.click("button", "Close" if label == "x" else label)


@_solves("click-tab")
def _click_tab(turn: Turn) -> Action | None:
    return turn.click("tab", turn.said(r"Click on (Tab #\d)"))


@_solves("focus-text-2")
def _focus_text(turn: Turn) -> Action | None:
    nth = int(turn.said(r"(\d)\w\w input"))
    return None if turn.taken else Action.click(turn.all("textbox")[nth - 1])


@_solves("click-widget")
def _click_widget(turn: Turn) -> Action | None:
    kind = {"text": "textbox"}.get(turn.quoted[0], turn.quoted[0])
    return None if turn.taken else Action.click(turn.all(kind)[0])


@_solves("click-option")
def _click_option(turn: Turn) -> Action | None:
    choice = turn.said(r"Select (.+) and click")
    return turn.switch_on("radio", choice) or turn.click("button", "Submit")


@_solves("click-checkboxes", "click-checkboxes-large")
def _click_checkboxes(turn: Turn) -> Action | None:
    wanted = turn.said(r"Select (.+) and click")
    names = [] if wanted == "nothing" else wanted.split(", ")
    ticks = (turn.switch_on("checkbox", name) for name in names)
    return next((tick for tick in ticks if tick), None) or turn.click("button", "Submit")


@_solves("click-button-sequence")
def _click_button_sequence(turn: Turn) -> Action | None:
    return turn.click("button", "ONE") or turn.click("button", "TWO")


@_solves("click-collapsible")
def _click_collapsible(turn: Turn) -> Action | None:
    return turn.switch_on("tab", turn.all("tab")[0].text) or turn.click("button", "Submit")


@_solves("click-tab-2", "click-collapsible-2")
def _click_hidden_link(turn: Turn) -> Action | None:
    link = turn.quoted[0]
    closed = [tab for tab in turn.all("tab") if "on" not in tab.states and not turn.clicked("tab", tab.text)]
    if turn.clicked("link", link) or turn.find("link", link) or not closed:
        return turn.click("link", link)
    return Action.click(closed[0])


@_solves("enter-text")
def _enter_text(turn: Turn) -> Action | None:
    return turn.fill(turn.all("textbox")[0], turn.quoted[0]) or turn.click("button", "Submit")


@_solves("enter-text-2")
def _enter_text_2(turn: Turn) -> Action | None:
    word = turn.quoted[0]
    text = word.upper() if "upper case" in turn.instruction else word.lower()
    return turn.fill(turn.all("textbox")[0], text) or turn.click("button", "Submit")


@_solves("find-word")
def _find_word(turn: Turn) -> Action | None:
    words = turn.all("text")[0].text.split()
    word = re.sub(r"[^a-zA-Z]", "", words[int(turn.said(r"(\d+)\w\w word")) - 1])
    return turn.fill(turn.all("textbox")[0], word) or turn.click("button", "Submit")


@_solves("read-table")
def _read_table(turn: Turn) -> Action | None:
    cells = [element.text for element in turn.all("text")]
    value = cells[cells.index(turn.said(r"value of (.+) into")) + 1]
    return turn.fill(turn.all("textbox")[0], value) or turn.click("button", "Submit")


@_solves("login-user")
def _login_user(turn: Turn) -> Action | None:
    return _fill_login(turn) or turn.click("button", "Login")


@_solves("login-user-popup")
def _login_user_popup(turn: Turn) -> Action | None:
    if popup := turn.find("button", "Cancel"):
        return Action.click(popup)
    return _fill_login(turn) or turn.click("button", "OK")


def _fill_login(turn: Turn) -> Action | None:
    user, password = turn.quoted
    return turn.fill(turn.all("textbox")[0], user) or turn.fill(turn.all("password")[0], password)


@_solves("enter-password")
def _enter_password(turn: Turn) -> Action | None:
    first, second = turn.all("password")
    text = turn.quoted[0]
    return turn.fill(first, text) or turn.fill(second, text) or turn.click("button", "Submit")


@_solves("choose-list")
def _choose_list(turn: Turn) -> Action | None:
    choice = turn.said(r"Select (.+) from the list")
    shown = turn.all("select")[0]
    if shown.text == choice:
        return turn.click("button", "Submit")
    return turn.click("option", choice) if turn.all("option") else Action.click(shown)


@_solves("navigate-tree")
def _navigate_tree(turn: Turn) -> Action | None:
    name = turn.quoted[0]
    closed = [folder for folder in turn.all("image") if "xpandable" in folder.text]
    if turn.clicked("link", name) or turn.find("link", name) or not closed:
        return turn.click("link", name)
    return Action.click(closed[-1])


@_solves("email-inbox-delete")
def _email_inbox_delete(turn: Turn) -> Action | None:
    sender = turn.find("link", turn.said(r"email by (\w+)"))
    if turn.taken or sender is None:
        return None if turn.clicked("image", "trash") else Action(Kind.SCROLL, text="down")
    below = turn.elements[turn.elements.index(sender) :]
    return Action.click(next(element for element in below if element.text == "trash"))
