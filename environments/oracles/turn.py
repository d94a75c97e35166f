"""What an oracle may know at a step, and the moves that most pages need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from environments.types import Action, Element, Kind, Observation


@dataclass(frozen=True, slots=True)
class Turn:
    """The instruction, the screen, and the actions taken so far."""

    instruction: str
    observation: Observation
    taken: Sequence[Action]

    @property
    def elements(self) -> tuple[Element, ...]:
        """The visible elements, in page order."""
        return self.observation.elements

    @property
    def quoted(self) -> list[str]:
        """The texts in double quotes in the instruction."""
        return re.findall(r'"([^"]*)"', self.instruction)

    @property
    def typed(self) -> list[str]:
        """The texts typed so far."""
        return [action.text for action in self.taken if action.kind is Kind.TYPE]

    def said(self, pattern: str) -> str:
        """What the group of a pattern matches in the instruction."""
        match = re.search(pattern, self.instruction)
        if match is None:
            raise ValueError(f"instruction {self.instruction!r}: nothing in it matches {pattern!r}")
        return match[1]

    def all(self, *kinds: str) -> list[Element]:
        """The visible elements of some kinds."""
        return [element for element in self.elements if element.kind in kinds]

    def find(self, kind: str, text: str) -> Element | None:
        """The first visible element of a kind with a text."""
        return next((element for element in self.all(kind) if element.text == text), None)

    def after(self, element: Element) -> tuple[Element, ...]:
        """The elements that come after one in page order."""
        return self.elements[self.elements.index(element) + 1 :]

    def count(self, kind: str, text: str) -> int:
        """How often such an element was clicked before."""
        return sum(action.target == (kind, text) for action in self.taken)

    def clicked(self, kind: str, text: str) -> bool:
        """Whether such an element was clicked before."""
        return self.count(kind, text) > 0

    def click(self, kind: str, text: str) -> Action | None:
        """Click an element, once; scroll down to it when it is out of sight."""
        return None if self.clicked(kind, text) else self.reach(kind, text)

    def reach(self, kind: str, text: str) -> Action:
        """Click an element; scroll down to it when it is out of sight."""
        element = self.find(kind, text)
        return SCROLL_DOWN if element is None else Action.click(element)

    def switch_on(self, kind: str, text: str) -> Action | None:
        """Click an element unless it is on."""
        element = self.find(kind, text)
        return None if element is not None and "on" in element.states else self.click(kind, text)

    def fill(self, field: Element, text: str) -> Action | None:
        """Put a text into an empty field: focus it, then type."""
        if field.text == text:
            return None
        return Action(Kind.TYPE, text=text) if "focus" in field.states else Action.click(field)


SCROLL_DOWN = Action(Kind.SCROLL, text="down")

Oracle = Callable[[Turn], Action | None]
ORACLES: dict[str, Oracle] = {}


def solves(*pages: str) -> Callable[[Oracle], Oracle]:
    """Register the oracle of some pages."""

    def register(oracle: Oracle) -> Oracle:
        ORACLES.update(dict.fromkeys(pages, oracle))
        return oracle

    return register


def first(moves: Iterable[Action | None]) -> Action | None:
    """The first move that is still to be made."""
    return next((move for move in moves if move is not None), None)
