"""What the aligned eyes are asked about one screen: find, tell, list, count, press, read.

A lesson is a context as an agent sees it and the answer wanted. What can be seen is asked by the handful, for a picture
costs the language model a hundred tokens whatever is asked of it; where an element list is shown, it does not name
what is drawn, so that nothing can be copied.
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

_DRAWN = ("box", "figure", "icon")
_PRESSABLE = ("button", "link", "tab", "option", "checkbox", "radio")
_ASKED = 6  # things asked of one picture
_LISTED = 10  # things told by an answer
_SHOWN = 14  # elements shown of a crammed page
_UNNAMED = ("", "", "", "item", "dot", "part", "tile")  # what a list calls all that is drawn
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
        """The visible things of these sorts, or of all."""
        return [thing for thing in self.page.things if thing.mark in self.shot.boxes and thing.sort in (sorts or _ALL)]

    def ask(self, kind: str, instruction: str, answer: str, elements: Sequence[Element] = ()) -> Lesson:
        """A lesson about this screen, with the elements that its list shows."""
        return Lesson(
            kind, Context(instruction, (), Observation(self.shot.observation.screenshot, tuple(elements))), answer
        )

    def some(self, things: Sequence[Thing], most: int) -> list[Thing]:
        """At most so many of the things, at random."""
        return self.chooser.sample(things, min(most, len(things)))

    def place(self, thing: Thing) -> str:
        """Where a thing's centre is, as answers write it."""
        x, y = self.shot.point(thing.mark)
        return f"{x},{y}"

    def single(self, things: Sequence[Thing]) -> list[tuple[str, Thing]]:
        """What fits one of the things only, and that one: its size, colour and shape, or a part of them."""
        found = []
        for thing in things:
            wordings = [words for words in _wordings(thing) if sum(words in _wordings(other) for other in things) == 1]
            if wordings:
                found.append((self.chooser.choice(wordings), thing))
        return found


_ALL = (*_PRESSABLE, *_DRAWN, "textbox", "password", "textarea", "select", "heading", "cell", "text")


def describe(thing: Thing) -> str:
    """All that can be seen of a thing but its text."""
    words = (
        "on" if thing.on else "",
        thing.size,
        thing.colour,
        thing.shape,
        "" if thing.sort == "figure" else thing.sort,
    )
    return " ".join(word for word in words if word)


def _wordings(thing: Thing) -> list[str]:
    if thing.sort != "figure":
        return [describe(thing)]
    parts = ((thing.size, thing.colour, thing.shape), (thing.colour, thing.shape), (thing.size, thing.shape),
             (thing.shape,), (thing.colour, "figure"), (thing.size, thing.colour, "figure"))  # fmt: skip
    return [" ".join(words) for words in parts]


def finding(scene: Scene) -> Iterator[Lesson]:
    """Where the things of some descriptions are."""
    asked = scene.single(scene.seen(*_DRAWN))
    asked = scene.chooser.sample(asked, min(_ASKED, len(asked)))
    if asked:
        words = scene.chooser.choice(("Find: {}.", "Where is each? {}.", "Point at {}."))
        told = "\n".join(f"{said} {scene.place(thing)}" for said, thing in asked)
        yield scene.ask("finding", words.format(", ".join(said for said, _ in asked)), told)


def telling(scene: Scene) -> Iterator[Lesson]:
    """What is at some points."""
    things = scene.some(scene.seen(*_DRAWN), _ASKED - 1) + scene.some(scene.seen(*_PRESSABLE, "textbox"), 2)
    if things:
        scene.chooser.shuffle(things)
        words = scene.chooser.choice(("What is at {}?", "Tell what is at {}.", "Name what stands at {}."))
        told = "\n".join(f"{scene.place(thing)} {describe(thing)}" for thing in things)
        yield scene.ask("telling", words.format(" and ".join(map(scene.place, things))), told)


def listing(scene: Scene) -> Iterator[Lesson]:
    """All that is drawn, in reading order."""
    things = sorted(scene.seen(*_DRAWN), key=lambda thing: scene.shot.point(thing.mark)[::-1])[:_LISTED]
    if len(things) > 1:
        told = "\n".join(f"{describe(thing)} {scene.place(thing)}" for thing in things)
        words = scene.chooser.choice(("List {} drawn things.", "Name {} drawn things from the top."))
        yield scene.ask("listing", words.format(len(things)), told)


def pressing(scene: Scene) -> Iterator[Lesson]:
    """Press the one thing that a description fits, by a list that does not say which it is."""
    found = scene.single(scene.seen(*_DRAWN))
    for said, thing in scene.chooser.sample(found, min(1, len(found))):
        element = scene.shot.element(thing.mark)
        if element is not None:
            unnamed = scene.chooser.choice(_UNNAMED)
            asked = scene.chooser.choice(_PRESS).format(f"the {said}")
            shown = [_blinded(one, unnamed) for one in _among(scene, element)]
            yield scene.ask("pressing", asked, str(Action.click(_blinded(element, unnamed))), shown)


def _among(scene: Scene, element: Element) -> list[Element]:
    """An element and some of the others, in page order: the list of a crammed page is long."""
    listed = scene.shot.observation.elements
    others = [one for one in listed if one != element]
    kept = {element, *scene.chooser.sample(others, min(_SHOWN - 1, len(others)))}
    return [one for one in listed if one in kept]


def _blinded(element: Element, name: str) -> Element:
    return replace(element, text=name) if element.kind == "image" else element


def counting(scene: Scene) -> Iterator[Lesson]:
    """How many figures fit a description."""
    figures = scene.seen("figure")
    if len(figures) > 1:
        thing = scene.chooser.choice(figures)
        fact = scene.chooser.choice(("shape", "colour", "size"))
        wanted = getattr(thing, fact)
        found = [other for other in figures if getattr(other, fact) == wanted]
        said = f"{wanted}s" if fact == "shape" else f"{wanted} figures"
        places = " ".join(map(scene.place, found))  # the way to the number, which a count alone does not teach
        yield scene.ask("counting", f"Count the {said}.", f"{places}: {len(found)}")


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


def reading(scene: Scene) -> Iterator[Lesson]:
    """What stands at a point (optical character recognition)."""
    written = [thing for thing in scene.seen() if thing.text and thing.sort not in ("password", "figure")]
    for thing in scene.some(written, 1):
        asked = scene.chooser.choice(("Read what is at {}.", "What does {} say?", "Tell the text at {}."))
        yield scene.ask("reading", asked.format(scene.place(thing)), thing.text)


Generator = Callable[[Scene], Iterator[Lesson]]
LESSONS: dict[Generator, int] = {
    finding: 6, telling: 4, listing: 3, pressing: 6, counting: 1, grounding: 4, fields: 1, reading: 0,
}  # fmt: skip
"""The generators, and how often each is taken."""


def lesson(scene: Scene) -> Lesson | None:
    """A lesson of a screen; None where the generator drawn has nothing to ask of it."""
    (generator,) = scene.chooser.choices(list(LESSONS), list(LESSONS.values()))
    return next(generator(scene), None)
