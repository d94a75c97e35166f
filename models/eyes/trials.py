"""What the aligned language model learns of judging: which actions lead on in an exercise, and whether it is done.

A trial is a context with some actions and whether each is right, as the reward model is asked. Half of them are of
exercises done rightly, a quarter of exercises in which one move went wrong, a quarter of screens on which something
else was to be done: so what is right depends on the goal, on what was done, and on the screen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from environments.pages.exercise import Exercise, act_out, random_exercise, spoiled
from environments.pages.studio import Studio
from environments.types import COMPLETE, Action, Kind, Step
from models.prompts import Context, context_at

_WRONG = 4  # wrong actions of a trial at most
_ELSEWHERE = 7_000_000_000  # pages that only lend their instruction


@dataclass(frozen=True, slots=True)
class Trial:
    """``labelled`` are (action, whether it is right, its weight in the loss)."""

    context: Context
    labelled: tuple[tuple[str, bool, float], ...]


def trial(studio: Studio, seed: int, lexicon: Sequence[str]) -> Trial | None:
    """The trial of a seed; None where its exercise does not fit the screen, or cannot go wrong.

    Raises:
        WorldError: the browser broke.
    """
    chooser = random.Random(seed)
    way = chooser.choice((_done, _done, _gone_wrong, _meant_otherwise))
    exercise = random_exercise(seed, lexicon)
    if way is _meant_otherwise:
        return way(studio, exercise, random_exercise(_ELSEWHERE + seed, lexicon).instruction, chooser)
    return way(studio, exercise, exercise.instruction, chooser)


def _done(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """The right action of a step, and wrong ones."""
    steps = act_out(studio, exercise)
    if steps is None:
        return None
    at = chooser.randrange(len(steps))
    wrong = _wrong(steps, at, exercise)
    return _trial(instruction, steps, at, [str(steps[at].action)], chooser.sample(wrong, min(_WRONG, len(wrong))))


def _gone_wrong(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """The move that went wrong, or what came of it."""
    gone = spoiled(exercise, chooser)
    steps = act_out(studio, gone[0]) if gone else None
    if gone is None or steps is None:
        return None
    at = chooser.choice((gone[1], len(steps) - 1))
    return _trial(instruction, steps, at, [], [str(steps[at].action)])


def _meant_otherwise(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """What would be right if something else had been asked for."""
    steps = act_out(studio, exercise)
    if steps is None:
        return None
    at = chooser.randrange(len(steps))
    return _trial(instruction, steps, at, [], list({str(steps[at].action): None, str(COMPLETE): None}))


def _wrong(steps: Sequence[Step], at: int, exercise: Exercise) -> list[str]:
    """Actions that do not lead on: nothing of what is still to be done is among them."""
    ahead = {str(step.action) for step in steps[at:]}
    texts = [move.text for move in exercise.moves if move.text]
    typed = [Action(Kind.TYPE, text=text) for text in (*texts, *(text[:-1] for text in texts)) if text]
    clicks = [Action.click(element) for element in steps[at].observation.elements]
    taken = [step.action for step in steps[:at]]
    return [action for action in map(str, dict.fromkeys([*clicks, *typed, *taken, COMPLETE])) if action not in ahead]


def _trial(instruction: str, steps: Sequence[Step], at: int, right: list[str], wrong: list[str]) -> Trial:
    """Right actions weigh twice: every second trial has none, so that right and wrong weigh the same over all."""
    labelled = [(action, True, 2.0) for action in right] + [(action, False, 1 / len(wrong)) for action in wrong]
    return Trial(context_at(instruction, steps[:at], steps[at].observation), tuple(labelled))
