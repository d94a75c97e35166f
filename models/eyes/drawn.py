"""What the alignment learns from: lessons and trials on random pages, drawn ahead of it in browsers of their own."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice

from environments.pages.page import random_page
from environments.pages.studio import Studio
from models.eyes.lessons import Lesson, Scene, lesson
from models.eyes.trials import Trial, trials_of

ALIGN_SEED = 10**9  # pages from here on are those of the alignment
HELD_SEED = 2 * 10**9  # and from here on those that nothing is trained on
_PAGES, _TRIALS = 1000, 500  # pages of an update, and from which of them on those of its trials
_AHEAD = 2  # updates that a browser draws ahead


@dataclass(frozen=True, slots=True)
class Worksheet:
    """Lessons and trials, on pages that are drawn as they are asked for."""

    studio: Studio
    lexicon: Sequence[str]

    def lessons(self, seed: int) -> Iterator[Lesson]:
        """Lessons without end, each on a page of its own, from the page of a seed on."""
        while True:
            page = random_page(seed, self.lexicon)
            found = lesson(Scene(page, self.studio.show(page), random.Random(f"{seed}/lesson")))
            seed += 1
            if found is not None:
                yield found

    def trials(self, seed: int) -> Iterator[Trial]:
        """Trials without end, those of a page after those of another, from that of a seed on."""
        while True:
            yield from trials_of(self.studio, seed, self.lexicon)
            seed += 1


@dataclass(frozen=True, slots=True)
class Drawn:
    """What an update learns from."""

    lessons: tuple[Lesson, ...]
    trials: tuple[Trial, ...]


def draw(worksheet: Worksheet, update: int, lessons: int, trials: int) -> Drawn:
    """So many lessons and trials of an update: the same for the same update."""
    page = ALIGN_SEED + update * _PAGES
    taken = islice(worksheet.lessons(page), lessons)
    return Drawn(tuple(taken), tuple(islice(worksheet.trials(page + _TRIALS), trials)))


class Drawer:
    """Draws what update after update learns from, in so many browsers at a time, some updates ahead.

    Args:
        lessons: of an update.
        trials: of an update.
        updates: there are.
    """

    def __init__(self, lexicon: Sequence[str], lessons: int, trials: int, updates: int, browsers: int) -> None:
        spawn = multiprocessing.get_context("spawn")  # a fork of a process that uses a GPU breaks
        self._pool = ProcessPoolExecutor(browsers, spawn, _open, (tuple(lexicon),))
        self._asked: dict[int, Future[Drawn]] = {}
        self._lessons, self._trials, self._updates, self._ahead = lessons, trials, updates, _AHEAD * browsers

    def __call__(self, update: int) -> Drawn:
        """What an update learns from; those after it are begun.

        Raises:
            WorldError: a browser broke.
        """
        for later in range(update, min(update + self._ahead, self._updates)):
            if later not in self._asked:
                self._asked[later] = self._pool.submit(_draw, later, self._lessons, self._trials)
        return self._asked.pop(update).result()

    def close(self) -> None:
        """Leave what is not drawn yet."""
        self._pool.shutdown(cancel_futures=True)


_worksheet: Worksheet


def _open(lexicon: tuple[str, ...]) -> None:
    """Run once in each process that draws."""
    global _worksheet  # noqa: PLW0603  a process has one browser
    _worksheet = Worksheet(Studio(), lexicon)


def _draw(update: int, lessons: int, trials: int) -> Drawn:
    return draw(_worksheet, update, lessons, trials)
