"""Small jobs on a random page: an instruction in several clauses, and the moves that do it, made in the browser."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from environments.pages import branches, forms, journeys, presses, rows
from environments.pages.blocks import (
    Block,
    Draft,
    buttons,
    checkboxes,
    drop_down,
    heading,
    link_list,
    paragraph,
    radios,
    text_area,
    text_field,
)
from environments.pages.forms import send
from environments.pages.job import Job, Move, Part
from environments.pages.page import Page, dressed
from environments.pages.studio import Shot, Studio
from environments.pages.words import Words
from environments.types import COMPLETE, Action, Element, Kind, Step

_FORMS: Mapping[tuple[Part, ...], int] = {
    (forms.write, send): 2, (forms.write, forms.write, send): 9, (forms.write, forms.write, forms.write, send): 1,
    (forms.write_twice, send): 4, (forms.write_there, send): 1, (forms.write_twice, forms.tick, send): 1,
    (forms.tick, send): 4, (forms.write, forms.tick, send): 1, (forms.pick, send): 1, (forms.drop, send): 1,
    (presses.touch, send): 1, (forms.recast, send): 8, (forms.look_up, send): 4, (forms.copy, send): 3,
    (forms.copy_one, send): 2, (forms.tick_many, send): 4,
    (forms.tick_all, send): 1, (forms.untick, send): 1, (forms.count_up, send): 2, (forms.complete, send): 8,
    (journeys.interrupted, send): 2, (journeys.two_pages,): 1, (journeys.choose_date, send): 1,
    (forms.type_date, send): 1, (forms.write, forms.type_date, send): 3, (forms.drop, forms.answer): 1,
    (forms.drop_drawn, forms.answer): 3,
}  # fmt: skip
_REST: Mapping[tuple[Part, ...], int] = {
    (presses.press,): 6, (presses.follow,): 3, (presses.turn,): 2, (forms.reach,): 4, (presses.touch,): 5,
    (presses.count,): 3, (presses.name,): 4, (presses.tell_colour,): 2, (presses.in_order,): 2, (presses.extreme,): 1,
    (presses.ascending,): 1, (presses.in_row,): 2, (presses.close,): 1, (presses.day,): 1, (branches.unfold,): 4,
    (branches.tabbed,): 4, (branches.menu,): 4, (branches.tree,): 4, (journeys.leaf,): 2,
    (journeys.search,): 4, (rows.letters,): 4, (rows.posts,): 4,
}  # fmt: skip
_LISTS: Sequence[Block] = (buttons, link_list, lambda draft: checkboxes(draft, ticked=0))
_INPUTS: Sequence[Block] = (
    *[lambda draft: text_field(draft, filled=0.1)] * 3, lambda draft: text_area(draft, filled=0.3),
    lambda draft: radios(draft, chosen=False), drop_down,
)  # fmt: skip
_IDLE: Mapping[Part, Sequence[Block]] = {  # what may stand beside what is pressed, and is not asked for
    **dict.fromkeys((presses.press, presses.follow, presses.turn), (*_INPUTS, *_LISTS)),
    **dict.fromkeys((presses.touch, presses.in_order, presses.extreme, presses.ascending, presses.in_row), _INPUTS),
    **dict.fromkeys((presses.close, presses.day, branches.unfold, branches.tabbed), _INPUTS),
    **dict.fromkeys((branches.menu, branches.tree), _INPUTS),
    forms.reach: (buttons, link_list),  # a check box is a box, too
}

_MISTYPED = 0.75  # share of what goes wrong that is a text, where one is typed
_TOO_SOON = 0.5  # share of what is left undone that is the last thing before the end


@dataclass(frozen=True, slots=True)
class Exercise:
    """A page, what is to be done on it, and the moves that do it: where it is ``ordered``, in no other order."""

    page: Page
    instruction: str
    moves: tuple[Move, ...]
    ordered: bool = False


def random_exercise(seed: int, lexicon: Sequence[str], to_send: bool = False) -> Exercise:
    """The exercise of a seed: the same for the same seed and words. One ``to_send`` is a form, to be left undone."""
    chooser = random.Random(seed)
    job = Job(Draft(chooser, Words(lexicon, chooser)))
    sorts = _FORMS if to_send else {**_FORMS, **_REST}
    (parts,) = chooser.choices(list(sorts), list(sorts.values()))
    for part in parts:
        part(job)
    for other in (heading, paragraph):
        if job.draft.chance(0.2):
            job.blocks.insert(chooser.randrange(len(job.blocks)), other(job.draft))
    if len(parts) == 1 and parts[0] in _IDLE and job.draft.chance(0.6):
        _put_beside(job, _IDLE[parts[0]])
    said = f"{', '.join(job.clauses[:-1])} {job.clauses[-1]}".strip()
    page = dressed(job.draft, job.blocks)
    return Exercise(page, said[0].upper() + said[1:] + ".", tuple(job.moves), job.ordered)


def _put_beside(job: Job, idle: Sequence[Block]) -> None:
    """One or two blocks, before or after the others, that nobody asks to do anything with."""
    for block in job.draft.chooser.sample(idle, job.draft.chooser.randint(1, 2)):
        job.blocks.insert(job.draft.chooser.randint(0, len(job.blocks)), block(job.draft))


def spoiled(exercise: Exercise, chooser: random.Random) -> tuple[Exercise, int] | None:
    """The exercise with one of its moves gone wrong, and the number of that move; None where nothing can.

    Another thing of the same sort is pressed, another option taken, or, mostly where one is typed, another text: it
    ends without its goal.
    """
    ways = {place: _wrong_moves(exercise, move, chooser) for place, move in enumerate(exercise.moves)}
    places = [place for place, wrong in ways.items() if wrong]
    if not places:
        return None
    typed = [place for place in places if exercise.moves[place].text]
    place = chooser.choice(typed if typed and chooser.random() < _MISTYPED else places)
    wrong = chooser.choice(ways[place])
    moves = (*exercise.moves[:place], wrong, *exercise.moves[place + 1 :])
    return replace(exercise, moves=moves), place


def left_undone(exercise: Exercise, chooser: random.Random) -> tuple[Exercise, Move] | None:
    """The exercise without one of its moves before the last, and the move that would make up for it before the last.

    Every other time it is the last of them: what ends an exercise too soon mostly comes where little is left to do.
    What is typed hangs on the press of its field, an option on that of its menu. None where there is nothing to leave.
    """
    moves = exercise.moves
    places = [place for place, move in enumerate(moves[:-1]) if move.mark or move.option or move.text]
    if not places:
        return None
    place = places[-1] if chooser.random() < _TOO_SOON else chooser.choice(places)
    if moves[place].either:
        return None  # it may have been for nothing
    alone = not moves[place].mark or not (moves[place + 1].option or moves[place + 1].text)
    short = replace(exercise, moves=(*moves[:place], *moves[place + (1 if alone else 2) :]))
    ready = moves[place].mark or place == len(moves) - 2  # or its field must be pressed again first
    return short, moves[place] if ready else moves[place - 1]


def taken_back(exercise: Exercise, chooser: random.Random) -> tuple[Exercise, Move] | None:
    """The exercise with one of its boxes pressed once more before the last move, and that press, which makes up for it.

    So the box is not ticked after all. None where there is no box to tick.
    """
    boxes = {thing.mark for thing in exercise.page.things if thing.sort == "checkbox"}
    ticks = [move for move in exercise.moves[:-1] if move.mark in boxes]
    if not ticks:
        return None
    again = chooser.choice(ticks)
    return replace(exercise, moves=(*exercise.moves[:-1], again, exercise.moves[-1])), again


def mistyped(exercise: Exercise, text: str, chooser: random.Random) -> list[str]:
    """Texts that may be typed in the place of one, and are wrong: one each in other letters, a part of it, another.

    In other letters is also a text as it is given, where it was to be written otherwise.
    """
    given = re.findall('"(.*?)"', exercise.instruction)
    words = text.split()
    uncast = [one for one in given if one.lower() == text.lower() and one != text]
    letters = uncast or [text.upper(), text.lower(), text.title()]
    parts = [text[:-1], text[1:], *(" ".join(words[:count]) for count in range(1, len(words)))]
    cells = [thing.text for thing in exercise.page.things if thing.sort == "cell"]
    others = [*given, *(word.strip('".,') for word in exercise.instruction.split()), *cells]
    left = [_wrong_texts(exercise, text, texts) for texts in (letters, parts, others)]
    return list(dict.fromkeys(chooser.choice(texts) for texts in left if texts))


def _wrong_texts(exercise: Exercise, text: str, texts: Iterable[str]) -> list[str]:
    """Those that are not the text, nor the same number, and do not bring up what it is to bring up."""
    meant = {move.mark for move in exercise.moves}
    options = [thing for thing in exercise.page.things if thing.sort == "option"]
    offered = [thing.text.lower() for thing in options if thing.mark in meant or thing.text == text]
    return [
        one
        for one in dict.fromkeys(texts)
        if one not in ("", text)
        and not _same_number(one, text)
        and not any(option.startswith(one.lower()) for option in offered)
    ]


def _same_number(one: str, text: str) -> bool:
    """Whether the digits of one text are the other, which is a number: a field for dates takes both."""
    return text.isdigit() and re.sub(r"\D", "", one).lstrip("0") == text.lstrip("0")


def _wrong_moves(exercise: Exercise, move: Move, chooser: random.Random) -> list[Move]:
    """What may be done in the place of a move, and is wrong."""
    if move.either:
        return []  # another way to look for the same
    if move.text:
        return [Move(text=text) for text in mistyped(exercise, move.text, chooser)]
    things = exercise.page.things
    if move.option:
        menus = [thing.group.split("\n")[1:] for thing in things if thing.sort == "select"]
        return [
            Move(option=option) for menu in menus if move.option in menu for option in menu if option != move.option
        ]
    if not move.mark:
        return []
    (sort,) = (thing.sort for thing in things if thing.mark == move.mark)
    meant = {other.mark for other in exercise.moves}
    return [Move(mark=thing.mark) for thing in things if thing.sort == sort and thing.mark not in meant]


def act_out(studio: Studio, exercise: Exercise) -> list[Step] | None:
    """The steps of an exercise, the last of them ``complete``; None where a move's target does not show."""
    shot = studio.show(exercise.page)
    steps = []
    for move in exercise.moves:
        action = _action(move, shot)
        if action is None:
            return None
        steps.append(Step(shot.observation, action))
        studio.browser.perform(action)
        shot = studio.shoot()
    return [*steps, Step(shot.observation, COMPLETE)]


def _action(move: Move, shot: Shot) -> Action | None:
    if move.text:
        return Action(Kind.TYPE, text=move.text)
    if move.key:
        return Action(Kind.PRESS, text=move.key)
    if move.seek:
        seen = any(element.text == move.seek for element in shot.observation.elements)
        return None if seen else Action(Kind.SCROLL, text="down")
    target = _option(move.option, shot) if move.option else shot.element(move.mark)
    return None if target is None else Action.click(target)


def _option(text: str, shot: Shot) -> Element | None:
    found = [one for one in shot.observation.elements if one.kind == "option" and one.text == text]
    return found[0] if found else None
