"""What trials call right is what the exercise does next on that page, and what they call wrong is not."""

from __future__ import annotations

import random
from contextlib import closing

from environments.pages.exercise import act_out, left_undone, random_exercise, spoiled
from environments.pages.studio import Studio
from environments.types import COMPLETE, Kind
from models.eyes.trials import trials_of

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")


def test_right_is_what_the_exercise_does_and_the_rest_is_wrong() -> None:
    weights = {True: 0.0, False: 0.0}
    endings = {True: 0, False: 0}
    with closing(Studio()) as studio:
        for seed in range(60):
            for found in trials_of(studio, seed, LEXICON):
                actions = [action for action, _, _ in found.labelled]
                assert len(set(actions)) == len(actions)
                for action, label, weight in found.labelled:
                    weights[label] += weight
                    endings[label] += action == str(COMPLETE)
                right = [action for action, label, _ in found.labelled if label]
                if right:
                    steps = act_out(studio, random_exercise(seed, LEXICON))
                    assert steps is not None
                    at = len(found.context.history)
                    assert found.context.observation.elements == steps[at].observation.elements
                    assert right == [str(steps[at].action)]
                    assert right == [found.answer]
                    presses = {str(step.action) for step in steps[at:-2] if step.action.kind is Kind.CLICK}
                    assert steps[at].action.kind is Kind.TYPE or not presses & ({*actions} - {*right})
    assert 0.6 < weights[True] / weights[False] < 1.7
    assert min(endings.values()) >= 3


def test_ends_come_in_contrast() -> None:
    """One instruction, asked about at its end: right where all of its moves were made, else wrong."""
    contrasts = 0
    with closing(Studio()) as studio:
        for seed in range(60):
            found = trials_of(studio, seed, LEXICON)
            if len(found) < 2:
                continue
            contrasts += 1
            right, *wrong = found
            steps = act_out(studio, random_exercise(seed, LEXICON))
            assert steps is not None
            assert [label for _, label, _ in right.labelled] == [True]
            assert len(right.context.history) >= len(steps) - 2
            assert {one.context.instruction for one in wrong} == {right.context.instruction}
            made = [str(step.action) for step in steps]
            for one in wrong:
                ((action, label, _),) = one.labelled
                assert not label
                assert not one.answer
                assert [*(str(done) for _, done in one.context.history), action] != made[: len(one.context.history) + 1]
    assert contrasts > 15


def test_what_is_left_undone_is_one_thing_and_never_the_last() -> None:
    for seed in range(60):
        exercise = random_exercise(seed, LEXICON)
        found = left_undone(exercise, random.Random(seed))
        if found is None:
            assert len(exercise.moves) == 1
            continue
        assert found.moves[-1] == exercise.moves[-1]
        missing = [move for move in exercise.moves if move not in found.moves]
        assert len(exercise.moves) - len(found.moves) in (1, 2)
        assert [move for move in exercise.moves if move in found.moves] == list(found.moves)
        if len(missing) == 2:
            assert missing[0].mark
            assert missing[1].text or missing[1].option


def test_a_spoiled_exercise_has_one_other_move() -> None:
    kept = 0  # where nothing can go wrong
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
    assert kept < 20
