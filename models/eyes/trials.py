"""What the aligned language model learns of acting and judging at once: what leads on in an exercise, what does not.

A trial is a context with some actions and whether each is right, as the reward model is asked, and where one is right,
it is the agent's answer. Four of eleven exercises are asked about where they end, in contrast: done rightly, with a
move gone wrong, and with something left undone or taken back, alike but for what has to be looked at. So what is right
depends on the goal, on what was done, and on the screen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from environments.pages.exercise import (
    Exercise,
    act_out,
    left_undone,
    mistyped,
    random_exercise,
    spoiled,
    taken_back,
)
from environments.pages.studio import Studio
from environments.types import COMPLETE, Action, Kind, Step
from models.prompts import Context, context_at

_WRONG = 4  # wrong actions of a trial at most, beside what would end it too soon
_RIGHT = 2.5  # its weight, but for ends: rarer than what is wrong, it weighs the same over all
_HARD = 0.75  # share of the steps on the way that are hard, where an exercise has such
_FORMS = 0.5  # share of the ends that are those of forms
_ELSEWHERE = 7_000_000_000  # pages that only lend their instruction


@dataclass(frozen=True, slots=True)
class Trial:
    """``labelled`` are (action, whether it is right, its weight in the loss); ``answer`` is the right one, or ""."""

    context: Context
    labelled: tuple[tuple[str, bool, float], ...]
    answer: str


def trials_of(studio: Studio, seed: int, lexicon: Sequence[str]) -> list[Trial]:
    """The trials of a seed; none where its exercise does not fit the screen, or cannot go wrong.

    Raises:
        WorldError: the browser broke.
    """
    chooser = random.Random(f"{seed}/trial")  # not that of the exercise, or each way would have jobs of its own
    (way,) = chooser.choices((_on_the_way, _ends, _gone_wrong, _meant_otherwise), (5, 4, 1, 1))
    exercise = random_exercise(seed, lexicon, to_send=way is _ends and chooser.random() < _FORMS)
    if way is _meant_otherwise:
        exercise = replace(exercise, instruction=random_exercise(_ELSEWHERE + seed, lexicon).instruction)
    return way(studio, exercise, chooser)


def _on_the_way(studio: Studio, exercise: Exercise, chooser: random.Random) -> list[Trial]:
    """The right action of a step, and wrong ones: the likeliest to be taken for it, and what ends it too soon."""
    steps = act_out(studio, exercise)
    if steps is None:
        return []
    at = _asked_about(steps[:-1], chooser)
    right = steps[at].action
    wrong = _tempting(_wrong(steps, at, exercise, chooser), right, chooser)[:_WRONG]
    early = [step.action for step in steps[-2:] if step.action != right]
    return [_trial(exercise.instruction, steps, at, right, list(dict.fromkeys([*wrong, *early])))]


def _asked_about(steps: Sequence[Step], chooser: random.Random) -> int:
    """The number of a step: mostly one that types, or presses what was brought up; any, where there is none such."""
    there = {Action.click(element).target for element in steps[0].observation.elements}
    hard = [at for at, step in enumerate(steps) if step.action.kind is Kind.TYPE or step.action.target not in there]
    return chooser.choice(hard if hard and chooser.random() < _HARD else range(len(steps)))


def _ends(studio: Studio, exercise: Exercise, chooser: random.Random) -> list[Trial]:
    """What ends it, the last move or `complete`: right where all else is done, and wrong where it is not."""
    steps = act_out(studio, exercise)
    if steps is None:
        return []
    back = chooser.choice((1, 2, 2) if len(steps) > 2 else (1,))  # how far from its end it is asked about
    wrong = [*_badly_done(studio, exercise, back, chooser), *_not_all_done(studio, exercise, back, chooser)]
    at = len(steps) - back
    return [_trial(exercise.instruction, steps, at, steps[at].action, [], 1.0 + len(wrong)), *wrong]


def _badly_done(studio: Studio, exercise: Exercise, back: int, chooser: random.Random) -> Iterator[Trial]:
    """The end of the exercise with a move gone wrong."""
    gone = spoiled(exercise, chooser)
    steps = act_out(studio, gone[0]) if gone else None
    if gone and steps:
        at = len(steps) - (1 if gone[1] == len(exercise.moves) - 1 else back)
        yield _trial(exercise.instruction, steps, at, None, [steps[at].action])


def _not_all_done(studio: Studio, exercise: Exercise, back: int, chooser: random.Random) -> Iterator[Trial]:
    """The end of the exercise with something left undone or taken back. Before its last move it can be made up for."""
    found = [one for one in (left_undone(exercise, chooser), taken_back(exercise, chooser)) if one]
    short = chooser.choice(found) if found else None
    steps = act_out(studio, short[0]) if short else None
    if short and steps:
        made_up = act_out(studio, replace(exercise, moves=(*short[0].moves[:-1], short[1]))) if back > 1 else None
        at = len(steps) - back
        right = made_up[-2].action if made_up else None
        yield _trial(exercise.instruction, steps, at, right, [steps[at].action])


def _gone_wrong(studio: Studio, exercise: Exercise, chooser: random.Random) -> list[Trial]:
    """The move that went wrong, where it was made."""
    gone = spoiled(exercise, chooser)
    steps = act_out(studio, gone[0]) if gone else None
    if gone is None or steps is None:
        return []
    return [_trial(exercise.instruction, steps, gone[1], None, [steps[gone[1]].action])]


def _meant_otherwise(studio: Studio, exercise: Exercise, chooser: random.Random) -> list[Trial]:
    """What would be right if something else had been asked for."""
    steps = act_out(studio, exercise)
    if steps is None:
        return []
    at = chooser.randrange(len(steps))
    return [_trial(exercise.instruction, steps, at, None, list(dict.fromkeys([steps[at].action, COMPLETE])))]


def _wrong(steps: Sequence[Step], at: int, exercise: Exercise, chooser: random.Random) -> list[Action]:
    """Actions that do not lead on, but for `complete`.

    Presses that are still to come are not among them, for their order is free, unless a text is due; the last is. Nor
    is a press of what was typed, where a key is to take it, nor what might be opened as well, where what is wanted is
    still to be found.
    """
    right = steps[at].action
    held = exercise.ordered or right.kind is Kind.TYPE
    free = [] if held else [step.action for step in steps[at:-2] if step.action.kind is Kind.CLICK]
    texts = [move.text for move in exercise.moves if move.text]
    slips = mistyped(exercise, right.text, chooser) if right.kind is Kind.TYPE else []
    typed = [Action(Kind.TYPE, text=text) for text in (*texts, *slips)]
    taken = [step.action for step in steps[:at]]
    found = [action.text for action in taken[-1:] if action.kind is Kind.TYPE and right.kind is Kind.PRESS]
    either = exercise.moves[at].either if right != COMPLETE else ()
    clicks = {Action.click(element): element.text for element in steps[at].observation.elements}
    also = [action for action, text in clicks.items() if text in (*found, *either)]
    fine = {str(action) for action in (right, *free, *also)}
    return [action for action in dict.fromkeys([*clicks, *typed, *taken]) if str(action) not in fine]


def _tempting(actions: Sequence[Action], right: Action, chooser: random.Random) -> list[Action]:
    """Actions in random order, but those of the right one's kind, and on such an element as its own, come first."""

    def apart(action: Action) -> int:
        alike = action.target is not None and right.target is not None and action.target[0] == right.target[0]
        return (action.kind is not right.kind) + (not alike)

    return sorted(chooser.sample(actions, len(actions)), key=apart)


def _trial(
    instruction: str,
    steps: Sequence[Step],
    at: int,
    right: Action | None,
    wrong: Sequence[Action],
    weight: float = _RIGHT,
) -> Trial:
    """The right action with its weight, if any, and wrong ones, which weigh as one, `complete` apart."""
    share = 1 / max(1, len(wrong) - (COMPLETE in wrong))
    labelled = [(str(right), True, weight)] if right else []
    labelled += [(str(action), False, 1.0 if action == COMPLETE else share) for action in wrong]
    context = context_at(instruction, steps[:at], steps[at].observation)
    return Trial(context, tuple(labelled), str(right) if right else "")
