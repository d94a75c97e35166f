"""What the language model is asked about one screen and its captioned list: find, tell, press, count.

A lesson is a context as an agent sees it and the answer wanted. The list does not name what is drawn: only a caption,
read off the screenshot, says what it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from environments.pages.blocks import Thing
from environments.pages.page import Page
from environments.pages.studio import Shot
from environments.pages.wordings import DRAWN, describe, single
from environments.types import Action, Element, Observation
from models.captions import describable
from models.prompts import Context

Taken = TypeVar("Taken")
_PRESSABLE = ("button", "link", "tab", "option", "checkbox", "radio")
_ASKED = 3  # things asked for at once
_SHOWN = 14  # drawn things, and others, that are shown of a crammed page
_PRESS = ("Press {}.", "Tap {}.", "Go for {}.", "Use {}.", "Hit {} once.", "Choose {}.", "Activate {}.", "Pick {}.")
_NAMED = ('"{}"', '"{}"', "{}", "the {sort} {}", 'the {sort} "{}"', 'the {sort} labelled "{}"', "what says {}")


@dataclass(frozen=True, slots=True)
class Lesson:
    """``kind`` is the generator's name."""

    kind: str
    context: Context
    answer: str


@dataclass(frozen=True, slots=True)
class Scene:
    """A page as it is seen, and the randomness of its lessons."""

    page: Page
    shot: Shot
    chooser: random.Random

    def seen(self, *sorts: str) -> list[Thing]:
        """The visible things of these sorts."""
        return [thing for thing in self.page.things if thing.mark in self.shot.boxes and thing.sort in sorts]

    def drawn(self) -> dict[Thing, Element]:
        """Visible things that are drawn, each with an element that is its alone; no more than a list should have."""
        listed = [(thing, self.shot.element(thing.mark)) for thing in self.seen(*DRAWN)]
        owned = [(thing, one) for thing, one in listed if one and [other for _, other in listed].count(one) == 1]
        return dict(self.some(owned, _SHOWN))

    def ask(self, kind: str, instruction: str, answer: str, elements: Iterable[Element]) -> Lesson:
        """A lesson about this screen, with some of the elements it lists, in page order."""
        kept = set(elements)
        shown = tuple(element for element in self.shot.observation.elements if element in kept)
        return Lesson(kind, Context(instruction, (), Observation(self.shot.observation.screenshot, shown)), answer)

    def about(self, kind: str, instruction: str, answer: str, drawn: Iterable[Element]) -> Lesson:
        """A lesson about things that are drawn, among what else the screen shows."""
        others = [element for element in self.shot.observation.elements if not describable(element)]
        return self.ask(kind, instruction, answer, [*drawn, *self.some(others, _SHOWN)])

    def some(self, things: Sequence[Taken], most: int) -> list[Taken]:
        """At most so many of the things, at random."""
        return self.chooser.sample(things, min(most, len(things)))


def finding(scene: Scene) -> Iterator[Lesson]:
    """Where the things of some descriptions are."""
    drawn = scene.drawn()
    asked = scene.some(single(list(drawn), scene.chooser), _ASKED)
    if asked:
        words = scene.chooser.choice(("Find: {}.", "Where is each? {}.", "Point at {}."))
        told = "\n".join(f"{said} {_place(drawn[thing])}" for said, thing in asked)
        yield scene.about("finding", words.format(", ".join(said for said, _ in asked)), told, drawn.values())


def telling(scene: Scene) -> Iterator[Lesson]:
    """What is at some points."""
    drawn = scene.drawn()
    asked = scene.some(list(drawn), _ASKED)
    if asked:
        words = scene.chooser.choice(("What is at {}?", "Tell what is at {}.", "Name what stands at {}."))
        told = "\n".join(f"{_place(drawn[thing])} {describe(thing)}" for thing in asked)
        places = " and ".join(_place(drawn[thing]) for thing in asked)
        yield scene.about("telling", words.format(places), told, drawn.values())


def pressing(scene: Scene) -> Iterator[Lesson]:
    """Press the one thing that a description fits."""
    drawn = scene.drawn()
    for said, thing in scene.some(single(list(drawn), scene.chooser), 1):
        asked = scene.chooser.choice(_PRESS).format(f"the {said}")
        yield scene.about("pressing", asked, str(Action.click(drawn[thing])), drawn.values())


def counting(scene: Scene) -> Iterator[Lesson]:
    """How many figures fit a description."""
    drawn = {thing: element for thing, element in scene.drawn().items() if thing.sort == "figure"}
    fact = scene.chooser.choice(("shape", "colour", "size"))
    told = [thing for thing in drawn if getattr(thing, fact)]
    if len(told) > 1 and len(drawn) == len(scene.seen("figure")):
        wanted = getattr(scene.chooser.choice(told), fact)
        found = [element for thing, element in drawn.items() if getattr(thing, fact) == wanted]
        said = f"{wanted}s" if fact == "shape" else f"{wanted} figures"
        places = " ".join(map(_place, found))  # the way to the number, which a count alone does not teach
        yield scene.about("counting", f"Count the {said}.", f"{places}: {len(found)}", drawn.values())


def _place(element: Element) -> str:
    """Where an element is, as its line says."""
    x, y = element.point
    return f"{x},{y}"


def grounding(scene: Scene) -> Iterator[Lesson]:
    """Press what a text names, by the list."""
    for thing in scene.some(scene.seen(*_PRESSABLE), 1):
        element = scene.shot.element(thing.mark)
        if element is not None and element.text:
            named = scene.chooser.choice(_NAMED).format(thing.text, sort=thing.sort)
            asked = scene.chooser.choice(_PRESS).format(named)
            yield scene.ask("grounding", asked, str(Action.click(element)), scene.shot.observation.elements)


def fields(scene: Scene) -> Iterator[Lesson]:
    """Put the cursor into a field, by its label or its number."""
    boxes = scene.seen("textbox", "password")
    for thing in scene.some(boxes, 1):
        element = scene.shot.element(thing.mark)
        if element is not None:
            number = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")[boxes.index(thing) % 7]
            by_label = ('Put the cursor behind "{}".', "Go to the {} field.", 'Start writing at "{}".')
            asked = scene.chooser.choice((*(one.format(thing.group) for one in by_label), f"Go to the {number} field."))
            yield scene.ask("fields", asked, str(Action.click(element)), scene.shot.observation.elements)


Generator = Callable[[Scene], Iterator[Lesson]]
LESSONS: dict[Generator, int] = {finding: 2, telling: 2, pressing: 6, counting: 2, grounding: 2, fields: 1}
"""The generators, and how often each is taken."""


def lesson(scene: Scene) -> Lesson | None:
    """A lesson of a screen; None where the generator drawn has nothing to ask of it."""
    (generator,) = scene.chooser.choices(list(LESSONS), list(LESSONS.values()))
    return next(generator(scene), None)
