"""What lessons call right is right on the page: the browser's own hit test and text are the truth."""

from __future__ import annotations

import random
from contextlib import closing

from environments.pages.page import random_page
from environments.pages.studio import Studio
from environments.types import Action, Kind
from models.eyes.lessons import LESSONS, Scene, lessons

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")


def test_answers_are_true_on_the_page() -> None:
    kinds = set()
    with closing(Studio()) as studio:
        for seed in range(40):
            page = random_page(seed, LEXICON)
            scene = Scene(page, studio.show(page), random.Random(seed))
            for lesson in lessons(scene):
                kinds.add(lesson.kind)
                if not lesson.answer.startswith("click "):
                    continue
                action = Action.parse(lesson.answer)
                assert action.kind is Kind.CLICK
                assert action.point in {element.point for element in scene.elements}
                if lesson.kind == "grounding":
                    assert action.target is not None
                    assert action.target[1] in lesson.context.instruction
                if lesson.context.observation.elements:
                    assert lesson.answer.removeprefix("click ") in {element.label for element in scene.elements}
    assert kinds == {generator.__name__ for generator in LESSONS}
