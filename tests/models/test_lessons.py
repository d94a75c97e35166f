"""What lessons call right is right on the page: the browser's own hit test and text are the truth."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing

from environments.pages.page import random_page
from environments.pages.studio import Studio
from environments.types import Action, Kind
from models.eyes.lessons import LESSONS, Lesson, Scene, describe

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")


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


def _check(scene: Scene, lesson: Lesson) -> None:
    listed = lesson.context.observation.elements
    if lesson.answer.startswith("click "):
        action = Action.parse(lesson.answer)
        assert action.kind is Kind.CLICK
        assert lesson.answer.removeprefix("click ") in {element.label for element in listed}
    if lesson.kind == "grounding":
        assert action.target is not None
        assert action.target[1] in lesson.context.instruction
    if lesson.kind == "pressing":
        assert len({element.text for element in listed if element.kind == "image"}) <= 1  # nothing to be copied
        (element,) = (element for element in listed if element.point == action.point)
        drawn = scene.seen("box", "icon", "figure")
        told = [thing for thing in drawn if element.contains(scene.shot.point(thing.mark))]
        asked = lesson.context.instruction
        assert any(word in asked for thing in told for word in (thing.colour, thing.shape, thing.size) if word)
    if lesson.kind in ("finding", "listing", "telling"):
        assert not listed
        places = {scene.place(thing): describe(thing) for thing in scene.seen()}
        for line in lesson.answer.split("\n"):
            place = line.split(" ")[0 if lesson.kind == "telling" else -1]
            assert place in places
    if lesson.kind == "counting":
        places_told, _, number = lesson.answer.rpartition(": ")
        assert len(places_told.split()) == int(number)
