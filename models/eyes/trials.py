"""What the aligned language model learns of acting and judging at once: what leads on in an exercise, what does not.

A trial is a context with some actions and whether each is right, as the reward model is asked, and where one is right,
it is the agent's answer. Four of nine are of exercises done rightly, two of exercises in which one move went wrong, two
of exercises of which something was left undone, one of a screen on which something else was to be done: so what is
right depends on the goal, on what was done, and on the screen.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from environments.pages.exercise import Exercise, act_out, left_undone, random_exercise, spoiled
from environments.pages.studio import Studio
from environments.types import COMPLETE, Action, Kind, Step
from models.prompts import Context, context_at

_WRONG = 4  # wrong actions of a trial at most, beside what would end it too soon
_AT_END = 0.4  # share of what is done rightly that is asked about at its end
_RIGHT, _RIGHT_END = 2.5, 3.0  # weights: rarer than what is wrong, they weigh the same over all, as do ends
_ELSEWHERE = 7_000_000_000  # pages that only lend their instruction


@dataclass(frozen=True, slots=True)
class Trial:
    """``labelled`` are (action, whether it is right, its weight in the loss); ``answer`` is the right one, or ""."""

    context: Context
    labelled: tuple[tuple[str, bool, float], ...]
    answer: str


def trial(studio: Studio, seed: int, lexicon: Sequence[str]) -> Trial | None:
    """The trial of a seed; None where its exercise does not fit the screen, or cannot go wrong.

    Raises:
        WorldError: the browser broke.
    """
    chooser = random.Random(seed)
    (way,) = chooser.choices((_done, _gone_wrong, _left_undone, _meant_otherwise), (4, 2, 2, 1))
    exercise = random_exercise(seed, lexicon)
    if way is _meant_otherwise:
        return way(studio, exercise, random_exercise(_ELSEWHERE + seed, lexicon).instruction, chooser)
    return way(studio, exercise, exercise.instruction, chooser)


def _done(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """The right action of a step, and wrong ones: the likeliest to be taken for it, and what ends it too soon."""
    steps = act_out(studio, exercise)
    if steps is None:
        return None
    last = len(steps) - 1
    at = last if chooser.random() < _AT_END else chooser.randrange(last)
    wrong = _tempting(_wrong(steps, at, exercise), steps[at].action, chooser)[:_WRONG]
    early = [step.action for step in steps[-2:] if step.action != steps[at].action] if at < last else []
    return _trial(instruction, steps, at, str(steps[at].action), [*map(str, dict.fromkeys([*wrong, *early]))])


def _gone_wrong(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """The move that went wrong, or what came of it."""
    gone = spoiled(exercise, chooser)
    steps = act_out(studio, gone[0]) if gone else None
    if gone is None or steps is None:
        return None
    at = chooser.choice((gone[1], len(steps) - 1))
    return _trial(instruction, steps, at, "", [str(steps[at].action)])


def _left_undone(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """What ends it, though not all is done: the last move, or `complete` after it."""
    short = left_undone(exercise, chooser)
    steps = act_out(studio, short) if short else None
    if steps is None:
        return None
    at = len(steps) - chooser.choice((1, 2))
    return _trial(instruction, steps, at, "", [str(steps[at].action)])


def _meant_otherwise(studio: Studio, exercise: Exercise, instruction: str, chooser: random.Random) -> Trial | None:
    """What would be right if something else had been asked for."""
    steps = act_out(studio, exercise)
    if steps is None:
        return None
    at = chooser.randrange(len(steps))
    return _trial(instruction, steps, at, "", list({str(steps[at].action): None, str(COMPLETE): None}))


def _wrong(steps: Sequence[Step], at: int, exercise: Exercise) -> list[Action]:
    """Actions that do not lead on, but for `complete`.

    Presses that are still to come are not among them, for their order is free, unless a text is due; the last is.
    """
    right = steps[at].action
    free = [] if right.kind is Kind.TYPE else [step.action for step in steps[at:-2] if step.action.kind is Kind.CLICK]
    texts = [move.text for move in exercise.moves if move.text]
    typed = [Action(Kind.TYPE, text=text) for text in (*texts, *(text[:-1] for text in texts)) if text]
    clicks = [Action.click(element) for element in steps[at].observation.elements]
    taken = [step.action for step in steps[:at]]
    fine = {str(action) for action in (right, *free)}
    return [action for action in dict.fromkeys([*clicks, *typed, *taken]) if str(action) not in fine]


def _tempting(actions: Sequence[Action], right: Action, chooser: random.Random) -> list[Action]:
    """Actions in random order, but those of the right one's kind, and on such an element as its own, come first."""

    def apart(action: Action) -> int:
        alike = action.target is not None and right.target is not None and action.target[0] == right.target[0]
        return (action.kind is not right.kind) + (not alike)

    return sorted(chooser.sample(actions, len(actions)), key=apart)


def _trial(instruction: str, steps: Sequence[Step], at: int, right: str, wrong: list[str]) -> Trial:
    """A step's wrong actions weigh as one, `complete` apart."""
    share = 1 / max(1, len(wrong) - (str(COMPLETE) in wrong))
    labelled = [(right, True, _RIGHT_END if right == str(COMPLETE) else _RIGHT)] if right else []
    labelled += [(action, False, 1.0 if action == str(COMPLETE) else share) for action in wrong]
    return Trial(context_at(instruction, steps[:at], steps[at].observation), tuple(labelled), right)
