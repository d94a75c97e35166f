"""What trials call right is what the exercise does next on that page, and what they call wrong is not."""

from __future__ import annotations

import random
import re
from contextlib import closing

import pytest

from environments.pages.exercise import Exercise, act_out, left_undone, random_exercise, spoiled, taken_back
from environments.pages.job import Move
from environments.pages.page import Page
from environments.pages.studio import Studio
from environments.types import COMPLETE, Action, Element, Kind, Observation, Step
from models.eyes.trials import _wrong, trials_of

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")


@pytest.mark.slow
def test_right_is_what_the_exercise_does_and_the_rest_is_wrong() -> None:
    weights = {True: 0.0, False: 0.0}
    endings = {True: 0, False: 0}
    planned, asked = 0, list[bool]()
    with closing(Studio()) as studio:
        for seed in range(60):
            trials = trials_of(studio, seed, LEXICON)
            for found in trials:
                actions = [action for action, _, _ in found.labelled]
                assert len(set(actions)) == len(actions)
                for action, label, weight in found.labelled:
                    weights[label] += weight
                    endings[label] += action == str(COMPLETE)
                right = [action for action, label, _ in found.labelled if label]
                assert right == ([found.answer] if found.answer else [])
                if not right or found is not trials[0]:
                    continue  # what is made up for is tested below
                planned += 1
                exercise = exercise_of(seed, found.context.instruction)
                steps = act_out(studio, exercise)
                assert steps is not None
                at = len(found.context.history)
                assert found.context.observation.elements == steps[at].observation.elements
                assert right == [str(steps[at].action)]
                presses = {str(step.action) for step in steps[at:-2] if step.action.kind is Kind.CLICK}
                there = {Action.click(element).target for element in steps[0].observation.elements}
                hard = [s.action.kind is Kind.TYPE or s.action.target not in there for s in steps[:-1]]
                if len(right) < len(actions) and any(hard):
                    asked.append(hard[at])
                held = exercise.ordered or steps[at].action.kind is Kind.TYPE
                assert held or not presses & ({*actions} - {*right})
                either = exercise.moves[at].either if at < len(exercise.moves) else ()
                also = {str(Action.click(one)) for one in steps[at].observation.elements if one.text in either}
                assert not also & ({*actions} - {*right})
                if at < len(steps) - 2:
                    assert {str(steps[-2].action), str(COMPLETE)} <= {*actions} - {*right}
    assert planned > 25
    assert len(asked) > 8
    assert sum(asked) > len(asked) * 0.6  # hard steps are what is mostly asked about
    assert 0.6 < weights[True] / weights[False] < 1.7
    assert min(endings.values()) >= 3


def test_what_was_typed_may_be_pressed_where_a_key_is_to_take_it() -> None:
    option = Element("option", "river", (0, 20, 40, 10))
    other = Element("option", "stone", (0, 30, 40, 10))
    seen = Observation(b"", (option, other))
    steps = [Step(seen, Action(Kind.TYPE, text="river")), Step(seen, Action(Kind.PRESS, text="Enter")),
             Step(seen, COMPLETE)]  # fmt: skip
    exercise = Exercise(Page("", ()), "", (Move(text="river"), Move(key="Enter")), ordered=True)
    wrong = _wrong(steps, 1, exercise, random.Random(0))
    assert Action.click(other) in wrong
    assert Action.click(option) not in wrong


def exercise_of(seed: int, instruction: str) -> Exercise:
    """The one that a trial asks about: any exercise, or that of a form."""
    drawn = [random_exercise(seed, LEXICON, forms) for forms in (False, True)]
    return next(one for one in drawn if one.instruction == instruction)


def unplaced(action: str) -> str:
    """Without where it was: what is brought up moves what stands below it."""
    return re.sub(r" \d+,\d+$", "", action)


def test_forms_have_something_to_leave_undone() -> None:
    forms = [random_exercise(seed, LEXICON, to_send=True) for seed in range(60)]
    assert all(left_undone(form, random.Random(0)) for form in forms)
    assert sum(len([move for move in form.moves if move.text]) > 1 for form in forms) > 15


@pytest.mark.slow
def test_ends_come_in_contrast() -> None:
    """One instruction, asked about at its end: right where all of its moves were made, else wrong."""
    contrasts, made_up = 0, 0
    with closing(Studio()) as studio:
        for seed in range(120):
            found = trials_of(studio, seed, LEXICON)
            if len(found) < 2:
                continue
            contrasts += 1
            done, *others = found
            steps = act_out(studio, exercise_of(seed, done.context.instruction))
            assert steps is not None
            assert [label for _, label, _ in done.labelled] == [True]
            assert len(done.context.history) >= len(steps) - 2
            assert {one.context.instruction for one in others} == {done.context.instruction}
            made = [str(step.action) for step in steps]
            for one in others:
                (wrong,) = (action for action, label, _ in one.labelled if not label)
                before = [str(action) for _, action in one.context.history]
                assert [*before, wrong] != made[: len(before) + 1]
                if one.answer:  # what was left out, or the press of its field
                    made_up += 1
                    assert unplaced(wrong) == unplaced(made[-2])
                    assert unplaced(one.answer) in [unplaced(action) for action in made[:-2]]  # the rest may move up
    assert contrasts > 20
    assert made_up > 3


def test_what_is_left_undone_is_one_thing_and_can_be_made_up_for() -> None:
    for seed in range(60):
        exercise = random_exercise(seed, LEXICON)
        found = left_undone(exercise, random.Random(seed))
        if found is None:
            before = exercise.moves[:-1]
            assert any(move.either for move in before) or all(move.key or move.seek for move in before)
            continue
        short, missing = found
        assert short.moves[-1] == exercise.moves[-1]
        left = list(exercise.moves)
        for move in short.moves:
            left.remove(move)
        assert len(left) in (1, 2)
        if len(left) == 2:
            assert left[0].mark
            assert left[1].text or left[1].option
        place = max(at for at, move in enumerate(exercise.moves) if move == missing)
        if missing.mark:
            assert missing in left or exercise.moves[place + 1] in left
        else:
            assert [missing] == left
            assert short.moves[-2] == exercise.moves[place - 1]  # its field is in use


def test_what_is_taken_back_is_at_the_end_as_it_was() -> None:
    seen = 0
    with closing(Studio()) as studio:
        for seed in range(160):
            exercise = random_exercise(seed, LEXICON)
            found = taken_back(exercise, random.Random(seed))
            done, back = act_out(studio, exercise), act_out(studio, found[0]) if found else None
            if found is None or done is None or back is None:
                continue
            seen += 1
            box = next(thing for thing in exercise.page.things if thing.mark == found[1].mark)
            assert (box.text in ticked(done[-2].observation)) is not box.on
            assert ticked(back[-2].observation) == ticked(done[-2].observation) ^ {box.text}
    assert seen > 5


def ticked(observation: Observation) -> set[str]:
    return {one.text for one in observation.elements if one.kind == "checkbox" and "on" in one.states}


def test_a_spoiled_exercise_has_one_other_move() -> None:
    kept = 0  # where nothing can go wrong
    mistyped = list[bool]()
    for seed in range(60):
        exercise = random_exercise(seed, LEXICON)
        found = spoiled(exercise, random.Random(seed))
        if found is None:
            kept += 1
            continue
        gone, place = found
        apart = [at for at, (one, other) in enumerate(zip(exercise.moves, gone.moves, strict=True)) if one != other]
        assert apart == [place]
        assert gone.instruction == exercise.instruction
        wrong, meant = gone.moves[place], exercise.moves[place]
        assert (bool(wrong.mark), bool(wrong.option), bool(wrong.text)) == (
            bool(meant.mark),
            bool(meant.option),
            bool(meant.text),
        )
        if any(move.text for move in exercise.moves):
            mistyped.append(bool(wrong.text))
    assert kept < 20
    assert len(mistyped) > 8
    assert sum(mistyped) > len(mistyped) / 2  # it is texts that mostly go wrong
