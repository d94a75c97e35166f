"""What lessons call right is right on the page: the browser's own hit test and text are the truth."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import closing

import pytest

from environments.pages.blocks import Thing
from environments.pages.figures import COLOURS, SHAPES
from environments.pages.page import random_page
from environments.pages.studio import Studio
from environments.pages.wordings import describe
from environments.types import Action, Kind
from models.eyes.lessons import LESSONS, Lesson, Scene

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")
DESCRIPTIVE = {*COLOURS, *SHAPES, "small", "large", "rectangle", "number"}


def test_answers_are_true_on_the_page() -> None:
    kinds = Counter[str]()
    with closing(Studio()) as studio:
        for seed in range(40):
            page = random_page(seed, LEXICON)
            scene = Scene(page, studio.show(page), random.Random(seed))
            for generator in LESSONS:
                for lesson in generator(scene):
                    kinds[generator.__name__] += lesson.kind == generator.__name__
                    _check(scene, lesson)
    assert set(kinds) == {generator.__name__ for generator in LESSONS}


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (Thing("a", "figure", colour="red", shape="circle", size="large"), "large red circle"),
        (Thing("a", "box", "stone", colour="blue", size="small"), "small blue box"),
        (Thing("a", "icon", shape="search", group="stone", on=True), "on search icon"),
    ],
)
def test_a_thing_is_described_by_what_can_be_seen_of_it(thing: Thing, words: str) -> None:
    assert describe(thing) == words
    assert _seen(thing) == words.split()


def _seen(thing: Thing) -> list[str]:
    """The same as :func:`describe`, from what the page was drawn from."""
    state, sort = ["on"] * thing.on, [thing.sort] * (thing.sort != "figure")
    return " ".join([*state, thing.size, thing.colour, thing.shape, *sort]).split()


def true_words(thing: Thing) -> set[str]:
    """All that a drawn thing may be called."""
    if thing.sort != "figure":
        return {*_seen(thing), "coloured", "in"}
    also = {"square": "rectangle", "digit": "number"}.get(thing.shape, "")
    return {*_seen(thing), "figure", "item", also, thing.text or "shape"}


def _check(scene: Scene, lesson: Lesson) -> None:
    listed = lesson.context.observation.elements
    if lesson.answer.startswith("click "):
        action = Action.parse(lesson.answer)
        assert action.kind is Kind.CLICK
        assert lesson.answer.removeprefix("click ") in {element.label for element in listed}
    if lesson.kind == "grounding":
        assert action.target is not None
        assert action.target[1] in lesson.context.instruction
    if lesson.kind in ("finding", "telling", "pressing", "counting"):
        assert {element.text for element in listed if element.kind == "image"} <= {""}  # only a caption says what it is
        drawn = {f"{x},{y}": thing for thing, (x, y) in _places(scene)}
    if lesson.kind == "pressing":
        thing = drawn["{},{}".format(*action.point)]
        asked = lesson.context.instruction
        words = set(re.findall(r"\w+", asked))
        assert words & (true_words(thing) - {"in", ""})
        assert words & DESCRIPTIVE <= true_words(thing)
    if lesson.kind == "finding":
        for line in lesson.answer.split("\n"):
            said, _, place = line.rpartition(" ")
            assert set(said.split()) <= true_words(drawn[place])
    if lesson.kind == "telling":
        for line in lesson.answer.split("\n"):
            place, _, said = line.partition(" ")
            assert said.split() == _seen(drawn[place])
    if lesson.kind == "counting":
        places, _, number = lesson.answer.rpartition(": ")
        wanted = lesson.context.instruction.split()[2].rstrip("s.")
        fits = [place for place, thing in drawn.items() if wanted in (thing.colour, thing.shape, thing.size)]
        assert sorted(places.split()) == sorted(fits)
        assert len(fits) == int(number)


def _places(scene: Scene) -> list[tuple[Thing, tuple[int, int]]]:
    """Each drawn thing and the point of the smallest element at its centre."""
    things = [thing for thing in scene.page.things if thing.sort in ("box", "figure", "icon")]
    listed = [(thing, scene.shot.element(thing.mark)) for thing in things]
    return [(thing, element.point) for thing, element in listed if element is not None]
