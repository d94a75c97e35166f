"""Every part of an exercise, done in the real browser: the page itself says what came of it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest

from environments.pages import branches, forms, journeys, presses, rows
from environments.pages.blocks import Draft, Thing
from environments.pages.exercise import Exercise, act_out, left_undone, mistyped, random_exercise, spoiled
from environments.pages.job import Job, Move, Part
from environments.pages.page import dressed
from environments.pages.studio import Studio
from environments.pages.wordings import single
from environments.pages.words import Words
from environments.types import COMPLETE, Step

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")
PARTS: tuple[Part, ...] = (
    forms.write, forms.write_twice, forms.write_there, forms.reach, forms.recast, forms.look_up, forms.copy,
    forms.copy_one, forms.tick, forms.tick_many, forms.tick_all, forms.untick, forms.pick, forms.drop, forms.count_up,
    forms.complete, forms.send, forms.drop_drawn, forms.type_date, forms.answer,
    presses.press, presses.follow, presses.turn, presses.touch, presses.count, presses.name, presses.tell_colour,
    presses.in_order, presses.extreme, presses.ascending, presses.in_row, presses.close, presses.day,
    branches.unfold, branches.tabbed, branches.menu, branches.tree, journeys.leaf, journeys.search,
    journeys.choose_date, rows.letters, rows.posts, journeys.two_pages, journeys.interrupted,
)  # fmt: skip
NUMBERS = {name: place for place, names in enumerate(forms.NTH) for name in names}
_VALUES = "[...document.querySelectorAll('[data-mark]')].filter((one) => 'value' in one).map((one) => one.value)"


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    with closing(Studio()) as studio:
        yield studio


def made(part: Part, seed: int) -> Exercise:
    """An exercise of one part."""
    chooser = random.Random(f"{part.__name__}/{seed}")
    job = Job(Draft(chooser, Words(LEXICON, chooser)))
    part(job)
    return Exercise(dressed(job.draft, job.blocks), job.clauses[0], tuple(job.moves), job.ordered)


def done(studio: Studio, part: Part) -> tuple[Exercise, list[Step]]:
    """The first exercise of a part that fits the screen, acted out."""
    for seed in range(12):
        exercise = made(part, seed)
        if exercise.moves and (steps := act_out(studio, exercise)):
            return exercise, steps
    raise AssertionError(f"none of {part.__name__} fits the screen")


def values(studio: Studio) -> list[str]:
    """What the fields of the page hold now."""
    return [str(value) for value in studio.browser.evaluate(_VALUES)]


def on(studio: Studio, thing: Thing) -> bool:
    return bool(studio.browser.evaluate(f"document.querySelector('[data-mark={thing.mark}]').checked"))


def pressed(exercise: Exercise) -> list[Thing]:
    """The things that its moves press, in order."""
    things = {thing.mark: thing for thing in exercise.page.things}
    return [things[move.mark] for move in exercise.moves if move.mark]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_most_pages_of_a_part_can_be_done(studio: Studio, part: Part) -> None:
    exercises = [made(part, seed) for seed in range(10)]
    acted = [act_out(studio, exercise) for exercise in exercises]
    assert sum(steps is not None for steps in acted) >= 5
    for exercise, steps in zip(exercises, acted, strict=True):
        assert steps is None or (len(steps) == len(exercise.moves) + 1 and steps[-1].action == COMPLETE)


@pytest.mark.parametrize(
    "part", [forms.write, forms.write_twice, forms.write_there, forms.recast, forms.look_up, forms.copy, forms.copy_one]
)
def test_what_was_to_be_written_stands_in_its_fields(studio: Studio, part: Part) -> None:
    exercise, _ = done(studio, part)
    texts = [move.text for move in exercise.moves if move.text]
    assert [values(studio).count(text) for text in set(texts)] >= [len(texts)]


def test_a_field_that_is_told_by_its_number_is_that_one() -> None:
    told = 0
    for seed in range(40):
        exercise = made(forms.reach, seed)
        found = re.search(r"the (\w+) (text )?(field|box|input)\b", exercise.instruction)
        if found and found[1] in NUMBERS:
            told += 1
            fields = [thing for thing in exercise.page.things if thing.sort in ("textbox", "password")]
            assert pressed(exercise) == [fields[NUMBERS[found[1]]]]
    assert told > 10


def test_a_text_is_recast_as_the_words_say(studio: Studio) -> None:
    for seed in range(12):
        exercise = made(forms.recast, seed)
        (text,) = [move.text for move in exercise.moves if move.text]
        given = re.search('"(.*?)"', exercise.instruction)
        assert given is not None
        assert given[1] != text
        small = "small" in exercise.instruction or "lowercase" in exercise.instruction
        assert text == (given[1].lower() if small else given[1].upper())


def slips(exercise: Exercise) -> set[str]:
    """All that may be typed wrongly for its one text."""
    (text,) = [move.text for move in exercise.moves if move.text]
    return {one for seed in range(60) for one in mistyped(exercise, text, random.Random(seed))}


def test_a_text_that_is_to_be_recast_may_be_left_as_it_is_given() -> None:
    for seed in range(12):
        exercise = made(forms.recast, seed)
        (text,) = [move.text for move in exercise.moves if move.text]
        (given,) = re.findall('"(.*?)"', exercise.instruction)
        assert {one for one in slips(exercise) if one.lower() == text.lower()} == {given}


def test_a_text_that_is_given_as_it_is_to_be_may_be_written_in_other_letters() -> None:
    words = 0
    for seed in range(20):
        exercise = made(forms.write, seed)
        (text,) = [move.text for move in exercise.moves if move.text]
        cased = {text.upper(), text.lower(), text.title()} - {text}
        assert cased <= slips(exercise)
        words += bool(cased)
    assert words > 5


def test_a_text_that_is_to_be_copied_may_be_begun_only() -> None:
    begun = 0
    for seed in range(12):
        exercise = made(forms.copy, seed)
        (text,) = [move.text for move in exercise.moves if move.text]
        words = text.split()
        wrong = slips(exercise)
        assert text not in wrong
        assert {" ".join(words[:count]) for count in range(1, len(words))} <= wrong
        begun += len(words) > 1
    assert begun > 3


def test_what_brings_up_the_right_offer_is_no_slip(studio: Studio) -> None:
    for seed in range(12):
        exercise = made(forms.complete, seed)
        taken = pressed(exercise)[-1].text.lower()
        assert not [one for one in slips(exercise) if taken.startswith(one.lower())]
    exercise, _ = done(studio, forms.complete)
    acted = 0
    for seed in range(60):  # what went wrong and can be acted out ends with another name
        gone = spoiled(exercise, random.Random(seed))
        assert gone is not None
        if act_out(studio, gone[0]):
            acted += 1
            assert pressed(exercise)[-1].text not in values(studio)
    assert acted > 0


def test_what_is_looked_up_stands_beside_the_name(studio: Studio) -> None:
    exercise, steps = done(studio, forms.look_up)
    shown = [element.text for element in steps[0].observation.elements]
    name = max((text for text in shown if text and text in exercise.instruction), key=len)
    assert exercise.moves[1].text == shown[shown.index(name) + 1]


def test_a_text_is_copied_as_it_stands(studio: Studio) -> None:
    exercise, steps = done(studio, forms.copy)
    (area,) = [element.text for element in steps[0].observation.elements if element.kind == "textarea"]
    assert exercise.moves[1].text == area


def test_of_several_texts_that_is_copied_which_the_number_tells(studio: Studio) -> None:
    for seed in range(12):
        exercise = made(forms.copy_one, seed)
        areas = [thing.text for thing in exercise.page.things if thing.sort == "textarea"]
        told = re.search(r"the (\w+) (text area|text box|box)", exercise.instruction)
        assert told is not None
        assert [move.text for move in exercise.moves if move.text] == [areas[NUMBERS[told[1]]]]


@pytest.mark.parametrize("part", [forms.tick, forms.tick_many, forms.tick_all, forms.untick])
def test_the_boxes_are_as_they_were_told_to_be(studio: Studio, part: Part) -> None:
    exercise, _ = done(studio, part)
    boxes = [thing for thing in exercise.page.things if thing.sort == "checkbox"]
    names = exercise.instruction.split(" ", 1)[1]
    for box in boxes:
        if part is forms.tick_all:
            assert on(studio, box)
        elif box in pressed(exercise):
            assert box.text in names
            assert on(studio, box) is (part is not forms.untick)
        else:
            assert on(studio, box) is (part is forms.untick)


def test_what_is_offered_goes_when_something_else_is_pressed(studio: Studio) -> None:
    """And the field keeps what was typed alone: nothing but its text tells that nothing was taken."""
    for seed in range(12):
        chooser = random.Random(seed)
        job = Job(Draft(chooser, Words(LEXICON, chooser)))
        forms.complete(job)
        forms.send(job)
        exercise = Exercise(dressed(job.draft, job.blocks), "", tuple(job.moves))
        box, begun, taken, pressed = exercise.moves
        steps = act_out(studio, replace(exercise, moves=(box, begun, pressed)))
        if steps:
            break
    offered = [len([one for one in step.observation.elements if one.kind in ("option", "link")]) for step in steps]
    assert offered[2] > 1
    assert offered[:2] + offered[3:] == [0, 0, 0]
    assert values(studio)[0] == begun.text
    assert taken.mark


def test_a_number_is_counted_to_what_was_asked(studio: Studio) -> None:
    exercise, _ = done(studio, forms.count_up)
    wanted = re.search(r"-?\d+", exercise.instruction)
    assert wanted is not None
    assert wanted[0] in values(studio)


def test_of_what_is_offered_that_is_taken_which_begins_and_ends_so(studio: Studio) -> None:
    exercise, steps = done(studio, forms.complete)
    start, end = re.findall('"(.*?)"', exercise.instruction)
    (value,) = values(studio)
    assert value.startswith(start)
    assert value.endswith(end)
    offered = [element.text for element in steps[2].observation.elements if element.kind in ("option", "link")]
    assert value in offered
    assert sum(one.endswith(end) for one in offered) == 1
    assert not any(element.kind in ("option", "link") for element in steps[0].observation.elements)


def test_the_number_that_is_pressed_is_how_many_figures_fit() -> None:
    for seed in range(60):
        exercise = made(presses.count, seed)
        told = set(exercise.instruction.split())
        figures = [thing for thing in exercise.page.things if thing.sort == "figure"]
        also = {"square": "rectangles", "cross": "crosses", "digit": "numbers"}
        facts = [
            {thing.colour, thing.size, f"{thing.shape}s", also.get(thing.shape), "figures", "items"}
            | {f"{thing.text}s" if thing.text else "shapes"}
            for thing in figures
        ]
        wanted = told & set().union(*facts)
        assert wanted, exercise.instruction
        assert int(_pressed(exercise).text) == sum(wanted <= one for one in facts), exercise.instruction


@pytest.mark.parametrize("part", [presses.name, presses.tell_colour])
def test_the_word_that_is_pressed_and_no_other_is_what_the_figure_is(part: Part) -> None:
    also = {"number": "digit", "numeral": "digit", "character": "letter", "grey": "gray"}
    for seed in range(60):
        exercise = made(part, seed)
        (figure,) = (thing for thing in exercise.page.things if thing.sort == "figure")
        words = [thing.text.lower() for thing in exercise.page.things if thing.sort == "button"]
        truth = figure.shape if part is presses.name else figure.colour
        fitting = [word for word in words if also.get(word, word) == truth or (truth, word) == ("square", "rectangle")]
        assert fitting == [_pressed(exercise).text.lower()]


def _pressed(exercise: Exercise) -> Thing:
    """What its one move presses."""
    (move,) = exercise.moves
    return next(thing for thing in exercise.page.things if thing.mark == move.mark)


def test_a_box_is_told_by_its_colour_alone_too() -> None:
    told = {"box in red", "red box", "red coloured box", "large red box"}
    things = [Thing("a", "box", colour="red", size="large"), Thing("b", "box", colour="blue", size="large")]
    assert {single(things, random.Random(seed))[0][0] for seed in range(40)} == told


@pytest.mark.parametrize("part", [presses.in_order, presses.ascending])
def test_order_counts(studio: Studio, part: Part) -> None:
    exercise, _ = done(studio, part)
    told = [thing.text for thing in pressed(exercise)]
    assert exercise.ordered
    if part is presses.in_order:
        assert len(told) > 1
        assert told == sorted(told, key=exercise.instruction.index)
    else:
        down = re.search("large to small|down", exercise.instruction) is not None
        assert told == sorted(told, key=int, reverse=down)


def test_the_largest_and_the_smallest_are_that(studio: Studio) -> None:
    for seed in range(12):
        exercise = made(presses.extreme, seed)
        numbers = [int(thing.text) for thing in exercise.page.things]
        largest = re.search("largest|highest", exercise.instruction) is not None
        assert int(pressed(exercise)[0].text) == (max if largest else min)(numbers)


@pytest.mark.parametrize("part", [branches.unfold, branches.tabbed, branches.menu, branches.tree, journeys.leaf])
def test_what_is_wanted_is_on_the_screen_only_at_the_end(studio: Studio, part: Part) -> None:
    several = 0
    for seed in range(16):
        exercise = made(part, seed)
        steps = act_out(studio, exercise)
        if steps is None:
            continue
        target = pressed(exercise)[-1].text
        seen = [any(element.text == target for element in step.observation.elements) for step in steps[:-1]]
        assert seen == [False] * (len(seen) - 1) + [True]
        several += len(seen) > 1
    assert several >= 4


@pytest.mark.parametrize("part", [branches.unfold, branches.tabbed, branches.menu, branches.tree])
def test_what_is_wanted_is_found_too_after_a_look_elsewhere(studio: Studio, part: Part) -> None:
    found = 0
    for seed in range(32):
        exercise = made(part, seed)
        first, *_ = exercise.moves
        others = [one.mark for one in exercise.page.things if one.text in first.either and one.mark != first.mark]
        assert len(exercise.moves) <= 8
        assert not exercise.moves[-1].either
        found += any(act_out(studio, replace(exercise, moves=(Move(mark=one), *exercise.moves))) for one in others)
    assert found >= 3


def test_a_tree_unfolds_until_what_is_wanted_is_seen(studio: Studio) -> None:
    deepest = 0
    for seed in range(24):
        exercise = made(branches.tree, seed)
        steps = act_out(studio, exercise)
        if steps is None:
            continue
        seen = [{element.text for element in step.observation.elements} for step in steps[:-1]]
        assert all(after - before for before, after in pairwise(seen))  # each press brings things up
        deepest = max(deepest, len(steps) - 2)
        assert pressed(exercise)[-1].text in exercise.instruction
    assert deepest >= 3


def test_what_was_opened_in_vain_is_not_wrong_to_leave_undone() -> None:
    move, vain = Move(mark="t0"), Move(mark="t1", either=("more",))
    exercise = replace(made(branches.tree, 0), moves=(vain, move))
    assert all(left_undone(exercise, random.Random(seed)) is None for seed in range(9))


def test_a_search_opens_what_it_was_told_by_number(studio: Studio) -> None:
    numbers = {name: number for number, name in enumerate(journeys.NTH)}
    for seed in range(12):
        exercise = made(journeys.search, seed)
        steps = act_out(studio, exercise)
        if steps is None:
            continue
        found: list[str] = []  # what the pages show, in order, as they are turned over
        for step in steps[3:-1]:
            kinds = [one for one in step.observation.elements if one.kind in ("link", "button")]
            found += [
                one.text for one in kinds[1:] if one.text not in {text for row in journeys.ONWARD for text in row}
            ]
        number = next(number for name, number in numbers.items() if name in exercise.instruction)
        assert pressed(exercise)[-1].text == found[number]


def test_the_calendar_writes_the_day_that_was_told(studio: Studio) -> None:
    told = 0
    for seed in range(8):
        exercise = made(journeys.choose_date, seed)
        day = re.search(r"\d\d/\d\d/\d{4}", exercise.instruction)
        assert day is not None
        if act_out(studio, exercise):
            told += 1
            assert day[0] in values(studio)
    assert told >= 4


def test_letters_are_answered_or_go(studio: Studio) -> None:
    ways = set()
    for seed in range(24):
        exercise = made(rows.letters, seed)
        steps = act_out(studio, exercise)
        if steps is None:
            continue
        row, sign, *_ = pressed(exercise)
        ways.add(sign.text)
        assert row.text in exercise.instruction
        if sign.text == "delete":
            assert row.text not in [element.text for element in steps[-1].observation.elements]
        elif sign.text in ("reply", "share"):
            (text,) = [move.text for move in exercise.moves if move.text]
            assert text in exercise.instruction
            assert text in values(studio)
    assert ways == {"reply", "share", "delete", "favorite"}


def test_the_sign_of_the_post_that_was_told_is_pressed(studio: Studio) -> None:
    """Or what its menu offers, which goes with it; what has to be scrolled to is not seen before."""
    sought, offered = 0, 0
    for seed in range(40):
        exercise = made(rows.posts, seed)
        steps = act_out(studio, exercise)
        if steps is None:
            continue
        *opens, last = pressed(exercise)
        target = steps[-2].observation
        assert last.text.lower() in exercise.instruction.lower()
        posts = [thing for thing in exercise.page.things if thing.sort == "post"]
        told = max((post for post in posts if post.text in exercise.instruction), key=lambda post: len(post.text))
        assert max((post for post in posts if int(post.mark[1:]) < int(last.mark[1:])), key=_number) == told
        offered += len(opens)
        if opens:
            assert [one.kind for one in target.elements if one.text.startswith(last.text)] == ["link"]
            after = [one.text for one in steps[-1].observation.elements]
            assert not any(text.startswith(last.text) for text in after)
        if last.text in ("trash", "delete", "bin", "remove"):
            assert told.text not in [one.text for one in steps[-1].observation.elements]
        sought += any(move.seek for move in exercise.moves)
    assert sought >= 5
    assert offered >= 5


def _number(thing: Thing) -> int:
    return int(thing.mark[1:])


def test_an_option_of_a_drawn_list_is_taken_by_hand_or_by_keys(studio: Studio) -> None:
    ways = set()
    for seed in range(40):
        exercise = made(forms.drop_drawn, seed)
        steps = act_out(studio, exercise)
        if steps is None:
            continue
        ways.add((any(move.seek for move in exercise.moves), any(move.key for move in exercise.moves)))
        (shown,) = [one.text for one in steps[-1].observation.elements if one.kind == "link"]
        assert shown in exercise.instruction
        texts = [move.text for move in exercise.moves if move.text]
        assert not texts or texts == [shown]
    assert ways == {(False, False), (True, False), (False, True)}


def test_a_date_that_is_typed_is_the_one_that_was_told(studio: Studio) -> None:
    forms_of_dates = ("%m/%d/%Y", "%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%Y%m%d")
    parts = 0
    for seed in range(24):
        exercise = made(forms.type_date, seed)
        assert act_out(studio, exercise)
        (value,) = values(studio)
        told = {day.strftime(form) for day in dates(value, forms_of_dates) for form in forms_of_dates}
        assert any(day in exercise.instruction for day in told)
        if not any(move.key for move in exercise.moves):
            continue
        parts += 1
        for wrong in slips(exercise):  # and no slip leads to it
            moves = tuple(replace(move, text=wrong) if move.text else move for move in exercise.moves)
            act_out(studio, replace(exercise, moves=moves))
            assert values(studio) != [value]
        few = next(at for at, move in enumerate(exercise.moves) if move.key)
        act_out(studio, replace(exercise, moves=(*exercise.moves[:few], *exercise.moves[few + 1 :])))
        assert values(studio) != [value]  # each press of a key is needed
    assert 5 < parts < 20


def dates(text: str, forms_of_dates: Sequence[str]) -> Iterator[datetime]:
    """All that a text may say of a day."""
    for form in forms_of_dates:
        with suppress(ValueError):
            yield datetime.strptime(text, form)


def test_a_button_that_is_told_by_its_number_is_that_one() -> None:
    told = 0
    for seed in range(40):
        exercise = made(forms.answer, seed)
        buttons = [thing for thing in exercise.page.things if thing.sort == "button"]
        found = re.fullmatch(r"and take the (\w+) button", exercise.instruction)
        if found:
            told += 1
            assert pressed(exercise) == [buttons[NUMBERS[found[1]]]]
        else:
            assert pressed(exercise)[0].text in exercise.instruction
    assert told > 3


def test_many_boxes_are_ticked_in_few_moves() -> None:
    exercises = [made(forms.tick_many, seed) for seed in range(40)]
    assert {len(exercise.moves) for exercise in exercises} == {4, 5, 6, 7, 8}
    assert max(len(exercise.page.things) for exercise in exercises) > 8


def test_a_second_page_comes_after_the_first(studio: Studio) -> None:
    exercise, steps = done(studio, journeys.two_pages)
    first, on_with, second, last = pressed(exercise)
    assert first.group in exercise.instruction
    assert second.group in exercise.instruction
    before, after = steps[0].observation.elements, steps[3].observation.elements
    assert last.text not in [element.text for element in before]
    assert last.text in [element.text for element in after]
    assert on_with.text not in [element.text for element in after]
    assert {move.text for move in exercise.moves if move.text} <= set(values(studio))


def test_a_window_comes_between_and_is_sent_away(studio: Studio) -> None:
    exercise, steps = done(studio, journeys.interrupted)
    covered, after = steps[3].observation.elements, steps[4].observation.elements
    assert not any(element.kind in ("textbox", "password") for element in covered)
    assert sum(element.kind == "button" for element in covered) == 2
    assert any(element.kind in ("textbox", "password") for element in after)
    assert {move.text for move in exercise.moves if move.text} <= set(values(studio))
    leave = next(thing for thing in exercise.page.things if thing.sort == "answer" and thing not in pressed(exercise))
    studio.show(exercise.page)
    studio.browser.perform(steps[0].action)
    studio.browser.perform(steps[2].action)
    studio.browser.evaluate(f"document.querySelector('[data-mark={leave.mark}]').click()")
    assert not any(element.kind == "textbox" for element in studio.shoot().observation.elements)


def test_whole_exercises_leave_the_page_as_their_moves_say(studio: Studio) -> None:
    """What was typed stands in a field, or what was then taken of the offered; boxes are on as often as they say."""
    done = 0
    for seed in range(24):
        exercise = random_exercise(seed, LEXICON)
        if act_out(studio, exercise) is None:
            continue
        done += 1
        things = pressed(exercise)
        taken = [thing.text for thing in things if thing.sort == "option"]
        for move in exercise.moves:
            if move.text and not any(one.key for one in exercise.moves):  # what keys go with stands there otherwise
                assert {move.text, *taken} & set(values(studio))
            elif move.option:
                chosen = studio.browser.evaluate("document.querySelector('select').selectedOptions[0].label")
                assert chosen == move.option
        for thing in things:
            if thing.sort in ("checkbox", "radio"):
                assert on(studio, thing) == (thing.sort == "radio" or thing.on ^ (things.count(thing) % 2 == 1))
    assert done >= 16


def test_a_seed_is_an_exercise() -> None:
    assert random_exercise(3, LEXICON) == random_exercise(3, LEXICON)
    assert random_exercise(3, LEXICON, to_send=True) != random_exercise(4, LEXICON, to_send=True)


def test_fields_that_nobody_asks_for_stand_beside_a_button_that_is_to_be_pressed() -> None:
    exercises = [random_exercise(seed, LEXICON) for seed in range(600)]
    idle = []
    for exercise in exercises:
        (thing, *others), things = pressed(exercise), exercise.page.things
        if thing.sort == "button" and not others and any(one.sort in ("textbox", "password") for one in things):
            assert [one for one in things if one.text == thing.text] == [thing]
            assert thing.text in exercise.instruction
            idle.append(exercise)
    assert len(idle) >= 5
    assert not any(move.text for exercise in idle for move in exercise.moves)


def test_what_is_left_undone_is_mostly_what_comes_last() -> None:
    exercise = made(forms.complete, 0)
    field, begun, taken = exercise.moves
    longer = replace(exercise, moves=(field, begun, taken, field))
    found = [left_undone(longer, random.Random(seed)) for seed in range(200)]
    too_soon = [one for one in found if one and one[0].moves == (field, begun, field)]
    assert 0.55 < len(too_soon) / len(found) < 0.78  # a half, and a third of the other
