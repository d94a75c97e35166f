"""What the aligned eyes are asked about one screen: read, ground, list, name colour, shape and state, count.

A lesson is a context as an agent sees it and the answer wanted. It shows the element list only where the answer
cannot be copied from it, or where copying is what is to be learnt.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from environments.pages.blocks import Thing
from environments.pages.page import Page
from environments.pages.studio import Shot
from environments.types import Action, Element, Observation
from models.prompts import Context

_LISTED = 8  # elements told by a list
_PRESS = ("Press {}.", "Tap {}.", "Go for {}.", "Use {}.", "Hit {} once.", "Choose {}.", "Activate {}.", "Pick {}.")
_NAMED = ('"{}"', '"{}"', "{}", "the {sort} {}", 'the {sort} "{}"', 'the {sort} labelled "{}"', "what says {}")
_PRESSABLE = ("button", "link", "tab", "option", "checkbox", "radio")
_TICKED = ("checkbox", "radio", "option", "tab")


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

    @property
    def elements(self) -> tuple[Element, ...]:
        """The listed elements."""
        return self.shot.observation.elements

    def seen(self, *sorts: str) -> list[Thing]:
        """The visible things of these sorts, or of all."""
        return [thing for thing in self.page.things if thing.mark in self.shot.boxes and thing.sort in (sorts or _ALL)]

    def ask(self, kind: str, instruction: str, answer: str, listed: bool) -> Lesson:
        """A lesson about this screen, with or without its element list."""
        observation = self.shot.observation if listed else Observation(self.shot.observation.screenshot, ())
        return Lesson(kind, Context(instruction, (), observation), answer)

    def some(self, things: Sequence[Thing], most: int) -> list[Thing]:
        """At most so many of the things, at random."""
        return self.chooser.sample(things, min(most, len(things)))


_ALL = (*_PRESSABLE, "textbox", "password", "textarea", "select", "heading", "cell", "text", "icon", "box", "figure")


def reading(scene: Scene) -> Iterator[Lesson]:
    """What stands at a point (optical character recognition)."""
    written = [thing for thing in scene.seen() if thing.text and thing.sort not in ("password", "figure")]
    for thing in scene.some(written, 2):
        x, y = scene.shot.point(thing.mark)
        asked = scene.chooser.choice(("Read what is at {},{}.", "What does {},{} say?", "Tell the text at {},{}."))
        yield scene.ask("reading", asked.format(x, y), thing.text, listed=False)


def grounding(scene: Scene) -> Iterator[Lesson]:
    """Press what a phrase names."""
    for thing in scene.some(scene.seen(*_PRESSABLE), 2):
        element = scene.shot.element(thing.mark)
        if element is not None and element.text:
            named = scene.chooser.choice(_NAMED).format(thing.text, sort=thing.sort)
            asked = scene.chooser.choice(_PRESS).format(named)
            yield scene.ask("grounding", asked, str(Action.click(element)), listed=scene.chooser.random() < 0.5)


def fields(scene: Scene) -> Iterator[Lesson]:
    """Put the cursor into a field, by its label or its number."""
    boxes = scene.seen("textbox", "password")
    for thing in scene.some(boxes, 1):
        element = scene.shot.element(thing.mark)
        if element is not None:
            number = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")[boxes.index(thing) % 7]
            by_label = ('Put the cursor behind "{}".', "Go to the {} field.", 'Start writing at "{}".')
            asked = scene.chooser.choice((*(one.format(thing.group) for one in by_label), f"Go to the {number} field."))
            yield scene.ask("fields", asked, str(Action.click(element)), listed=scene.chooser.random() < 0.7)


def listing(scene: Scene) -> Iterator[Lesson]:
    """The element list of the screen."""
    if scene.elements:
        lines = [element.line for element in scene.elements[:_LISTED]]
        yield scene.ask("listing", f"List {len(lines)} elements from the top.", "\n".join(lines), listed=False)


def colour(scene: Scene) -> Iterator[Lesson]:
    """The colour at a point, and the box or figure of a colour."""
    for thing in scene.some(scene.seen("box", "figure"), 1):
        x, y = scene.shot.point(thing.mark)
        asked = scene.chooser.choice(("Which colour is at {},{}?", "Name the color at {},{}."))
        yield scene.ask("colour", asked.format(x, y), thing.colour, listed=scene.chooser.random() < 0.5)
    yield from _alone(scene, "colour", "box", lambda thing: f"{thing.colour} box")


def shape(scene: Scene) -> Iterator[Lesson]:
    """The shape at a point, and the figure or icon of a description."""
    for thing in scene.some(scene.seen("figure", "icon"), 1):
        x, y = scene.shot.point(thing.mark)
        asked = scene.chooser.choice(("Which shape is at {},{}?", "What is drawn at {},{}?"))
        yield scene.ask("shape", asked.format(x, y), thing.shape, listed=False)
    yield from _alone(scene, "shape", "icon", lambda thing: f"{thing.shape} icon")
    yield from _alone(scene, "shape", "figure", lambda thing: f"{thing.size} {thing.colour} {thing.shape}")
    yield from _alone(scene, "shape", "figure", lambda thing: f"{thing.colour} {thing.shape}")


def _alone(scene: Scene, kind: str, sort: str, describe: Callable[[Thing], str]) -> Iterator[Lesson]:
    """Press the one thing that a description fits."""
    things = scene.seen(sort)
    descriptions = [describe(thing) for thing in things]
    fitting = [thing for thing, told in zip(things, descriptions, strict=True) if descriptions.count(told) == 1]
    for thing in scene.some(fitting, 1):
        element = scene.shot.element(thing.mark)
        if element is not None:
            listed = scene.chooser.random() < 0.6
            shown = element if listed else replace(element, text="")  # what it is called can only be read in the list
            asked = scene.chooser.choice(_PRESS).format(f"the {describe(thing)}")
            yield scene.ask(kind, asked, str(Action.click(shown)), listed)


def state(scene: Scene) -> Iterator[Lesson]:
    """Whether something is on."""
    for thing in scene.some(scene.seen(*_TICKED), 1):
        asked = scene.chooser.choice(('Is "{}" on?', 'Is "{}" chosen?', "Is {} selected?"))
        yield scene.ask("state", asked.format(thing.text), "yes" if thing.on else "no", listed=False)


def count(scene: Scene) -> Iterator[Lesson]:
    """How many figures fit a description."""
    figures = scene.seen("figure")
    if len(figures) > 1:
        thing = scene.chooser.choice(figures)
        fact = scene.chooser.choice(("shape", "colour"))
        wanted = getattr(thing, fact)
        found = sum(getattr(other, fact) == wanted for other in figures)
        said = f"{wanted}s" if fact == "shape" else f"{wanted} figures"
        yield scene.ask("count", f"Count the {said}.", str(found), listed=False)


LESSONS = (reading, grounding, fields, listing, colour, shape, state, count)


def lessons(scene: Scene) -> list[Lesson]:
    """All lessons of a screen, in random order."""
    found = [lesson for generator in LESSONS for lesson in generator(scene)]
    return scene.chooser.sample(found, len(found))
