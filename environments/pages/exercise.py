"""Small jobs on a random page: an instruction in several clauses, and the moves that do it, made in the browser."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from environments.pages.blocks import (
    Block,
    Draft,
    Thing,
    button,
    checkboxes,
    drop_down,
    figures,
    heading,
    icons,
    link_list,
    one_figure,
    paragraph,
    patches,
    radios,
    tabs,
    text_field,
)
from environments.pages.figures import SHAPES
from environments.pages.page import Page, dressed
from environments.pages.studio import Shot, Studio
from environments.pages.wordings import single
from environments.pages.words import Words
from environments.types import COMPLETE, Action, Element, Kind, Step

_WRITE = (
    'write "{value}" at {field}', 'put "{value}" into {field}', '{field} shall be "{value}"',
    'fill {field} with "{value}"', 'the {field} is "{value}"',
)  # fmt: skip
_TWICE = (
    'write "{value}" at {field} and again at {other}', 'fill {field} and {other} with "{value}"',
    'put "{value}" into both fields', 'write "{value}" in both places',
)  # fmt: skip
_TICK = ("tick {names}", "choose {names}", "mark {names}", "switch on {names}")
_PICK = ("pick {names}", "choose {names}", "take {names}")
_DROP = ("choose {names} from the menu", "set the menu to {names}", "open the menu and take {names}")
_FOLLOW = ("follow {name}", 'go where "{name}" leads', "take the link {name}", 'visit "{name}"')
_TURN = ("turn to {name}", 'bring up "{name}"', "go to the tab {name}", 'show the page "{name}"')
_PRESS = ("press {name}", 'hit "{name}"', 'push the button "{name}"', "press the one that says {name}")
_REACH = ("go to {field}", "put the cursor into {field}", "press into {field}", "get ready to write at {field}")
_CALLED = ("field", "field", "input", "text field", "box")
_NTH = (("1st", "first", "uppermost"), ("2nd", "second"), ("3rd", "third"), ("4th", "fourth"))
_TOUCH = ("press the {name}", "tap the {name}", "click the {name}", "go for the {name}", "choose the {name}")
_COUNT = ("say how many {name}s there are", "count the {name}s", "tell the number of {name}s")
_NAME = ("say what is drawn", "name the figure", "tell what the picture shows")
_SEND = ('then press "{name}"', "and press {name}", 'and confirm with "{name}"', "then {name}")


@dataclass(frozen=True, slots=True)
class Move:
    """One action of a plan: press the thing of a mark or the option of a text, or type a text."""

    mark: str = ""
    option: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A page, what is to be done on it, and the moves that do it."""

    page: Page
    instruction: str
    moves: tuple[Move, ...]


@dataclass
class _Job:
    """An exercise in the making."""

    draft: Draft
    clauses: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)

    def add(self, block: str, wordings: Sequence[str], moves: Sequence[Move], **names: str) -> None:
        """A block, what is to be done with it in one of the wordings, and how."""
        self.blocks.append(block)
        self.clauses.append(self.draft.chooser.choice(wordings).format(**names))
        self.moves += moves

    def since(self, before: int) -> list[Thing]:
        """The things that were added."""
        return self.draft.things[before:]


def random_exercise(seed: int, lexicon: Sequence[str], forms: bool = False) -> Exercise:
    """The exercise of a seed: the same for the same seed and words. Of ``forms`` something can be left undone."""
    chooser = random.Random(seed)
    job = _Job(Draft(chooser, Words(lexicon, chooser)))
    for part in chooser.choice(_FORMS if forms else _JOBS):
        part(job)
    for other in (heading, paragraph):
        if job.draft.chance(0.2):
            job.blocks.insert(chooser.randrange(len(job.blocks)), other(job.draft))
    said = f"{', '.join(job.clauses[:-1])} {job.clauses[-1]}".strip()
    return Exercise(dressed(job.draft, job.blocks), said[0].upper() + said[1:] + ".", tuple(job.moves))


def _write(job: _Job) -> None:
    block, value = text_field(job.draft, filled=0), job.draft.words.value()
    box = job.draft.things[-1]
    job.add(block, _WRITE, [Move(mark=box.mark), Move(text=value)], value=value, field=box.group)


def _write_twice(job: _Job) -> None:
    value = job.draft.words.value()
    before = len(job.draft.things)
    block = "".join(text_field(job.draft, filled=0) for _ in range(2))
    first, second = job.since(before)
    moves = [Move(mark=first.mark), Move(text=value), Move(mark=second.mark), Move(text=value)]
    job.add(block, _TWICE, moves, value=value, field=first.group, other=second.group)


def _tick(job: _Job) -> None:
    before = len(job.draft.things)
    block = checkboxes(job.draft, ticked=0)
    boxes, chooser = job.since(before), job.draft.chooser
    chosen = chooser.sample(boxes, chooser.randint(1, min(3, len(boxes))))
    job.add(block, _TICK, [Move(mark=box.mark) for box in chosen], names=", ".join(box.text for box in chosen))


def _pick(job: _Job) -> None:
    before = len(job.draft.things)
    block = radios(job.draft, chosen=False)
    chosen = job.draft.chooser.choice(job.since(before))
    job.add(block, _PICK, [Move(mark=chosen.mark)], names=chosen.text)


def _drop(job: _Job) -> None:
    block = drop_down(job.draft)
    menu = job.draft.things[-1]
    option = job.draft.chooser.choice(menu.group.split("\n")[1:])
    job.add(block, _DROP, [Move(mark=menu.mark), Move(option=option)], names=option)


def _send(job: _Job) -> None:
    """The button that ends it, alone or beside another."""
    _one_of(job, lambda draft: _row_of_buttons(draft, 1, 2), _SEND)


def _press(job: _Job) -> None:
    _one_of(job, lambda draft: _row_of_buttons(draft, 2, 4), _PRESS)


def _follow(job: _Job) -> None:
    _one_of(job, link_list, _FOLLOW)


def _turn(job: _Job) -> None:
    _one_of(job, tabs, _TURN)


def _reach(job: _Job) -> None:
    """One of several text fields is pressed, told by its label or its number, and nothing typed."""
    blocks, mark, told = _one_field(job)
    job.add(blocks, _REACH, [Move(mark=mark)], field=told)


def _write_there(job: _Job) -> None:
    """One of several text fields, told so, is written in."""
    blocks, mark, told = _one_field(job)
    value = job.draft.words.value()
    job.add(blocks, _WRITE, [Move(mark=mark), Move(text=value)], value=value, field=told)


def _one_field(job: _Job) -> tuple[str, str, str]:
    """One to four text fields, the mark of one of them, and its label or its number."""
    chooser, before = job.draft.chooser, len(job.draft.things)
    blocks = [text_field(job.draft, filled=0) for _ in range(chooser.randint(1, 4))]
    place = chooser.randrange(len(blocks))
    chosen = job.since(before)[place]
    number = f"the {chooser.choice(_NTH[place])} {chooser.choice(_CALLED)}"
    return "".join(blocks), chosen.mark, chooser.choice((chosen.group, number, number))


def _touch(job: _Job) -> None:
    """One of several drawn things is pressed."""
    before, chooser = len(job.draft.things), job.draft.chooser
    found: list[tuple[str, Thing]] = []
    while not found:  # all of the figures may have a twin
        del job.draft.things[before:]
        block = chooser.choice((figures, figures, icons, patches))(job.draft)
        found = single(job.since(before), chooser)
    name, chosen = chooser.choice(found)
    job.add(block, _TOUCH, [Move(mark=chosen.mark)], name=name)


def _count(job: _Job) -> None:
    """The button is pressed that says how many figures fit a description."""
    before = len(job.draft.things)
    block = figures(job.draft)
    drawn = job.since(before)
    shown = job.draft.chooser.choice(drawn).shape
    number = sum(thing.shape == shown for thing in drawn)
    _answer(job, block, _COUNT, str(number), [str(one) for one in range(1, 1 + max(4, len(drawn)))], shown)


def _name(job: _Job) -> None:
    """The button is pressed that names the one figure."""
    block = one_figure(job.draft)
    shown = job.draft.things[-1].shape
    others = [name for name in (*SHAPES, "letter", "digit") if name != shown]
    _answer(job, block, _NAME, shown, sorted([shown, *job.draft.chooser.sample(others, 3)]), shown)


def _answer(job: _Job, block: str, wordings: Sequence[str], answer: str, offered: Sequence[str], name: str) -> None:
    """A block that asks for one of several answers, each of them a button."""
    marks = {text: job.draft.note("button", text) for text in offered}
    row = " ".join(f"<button {mark}>{text}</button>" for text, mark in marks.items())
    chosen = next(thing for thing in job.draft.things if thing.sort == "button" and thing.text == answer)
    job.add(f"{block}<div>{row}</div>", wordings, [Move(mark=chosen.mark)], name=name)


def _one_of(job: _Job, make: Block, wordings: Sequence[str]) -> None:
    """A block, one of whose things is pressed."""
    before = len(job.draft.things)
    block = make(job.draft)
    chosen = job.draft.chooser.choice(job.since(before))
    job.add(block, wordings, [Move(mark=chosen.mark)], name=chosen.text)


def _row_of_buttons(draft: Draft, fewest: int, most: int) -> str:
    return f"<div>{' '.join(button(draft) for _ in range(draft.chooser.randint(fewest, most)))}</div>"


_JOBS = (
    (_write, _send), (_write, _send), (_write, _write, _send), (_write, _write, _send), (_write_twice, _send),
    (_write_twice, _send), (_write_there, _send),
    (_tick, _send), (_tick, _send), (_tick, _send),
    (_pick, _send), (_drop, _send), (_write, _tick, _send), (_press,), (_press,), (_follow,), (_turn,), (_reach,),
    (_reach,), (_touch,), (_touch,), (_touch,), (_touch, _send), (_count,), (_name,),
)  # fmt: skip
_FORMS = (
    (_write, _send), (_write, _write, _send), (_write, _write, _send), (_write, _write, _write, _send),
    (_write_twice, _send), (_write_twice, _send), (_write_twice, _send), (_write_there, _send),
    (_write_twice, _tick, _send), (_tick, _send), (_tick, _send), (_tick, _send), (_tick, _send),
    (_write, _tick, _send), (_pick, _send), (_drop, _send), (_touch, _send),
)  # fmt: skip


def spoiled(exercise: Exercise, chooser: random.Random) -> tuple[Exercise, int] | None:
    """The exercise with one of its moves gone wrong, and the number of that move; None where nothing can.

    Another thing of the same sort is pressed, another option taken, or another text typed: it ends without its goal.
    """
    ways = [(place, wrong) for place, move in enumerate(exercise.moves) for wrong in _wrong_moves(exercise, move)]
    if not ways:
        return None
    place, wrong = chooser.choice(ways)
    moves = (*exercise.moves[:place], wrong, *exercise.moves[place + 1 :])
    return replace(exercise, moves=moves), place


def left_undone(exercise: Exercise, chooser: random.Random) -> tuple[Exercise, Move] | None:
    """The exercise without one of its moves before the last, and the move that would make up for it before the last.

    What is typed hangs on the press of its field, an option on that of its menu. None where there is nothing to leave.
    """
    moves = exercise.moves
    if len(moves) < 2:
        return None
    place = chooser.randrange(len(moves) - 1)
    alone = not moves[place].mark or moves[place + 1].mark
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


def _wrong_moves(exercise: Exercise, move: Move) -> list[Move]:
    """What may be done in the place of a move, and is wrong."""
    if move.text:
        said = [word.strip('".,') for word in exercise.instruction.split()]
        return [Move(text=text) for text in {*said[-3:], move.text[:-1], move.text[1:]} - {"", move.text}]
    things = exercise.page.things
    if move.option:
        menus = [thing.group.split("\n")[1:] for thing in things if thing.sort == "select"]
        return [
            Move(option=option) for menu in menus if move.option in menu for option in menu if option != move.option
        ]
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
    target = _option(move.option, shot) if move.option else shot.element(move.mark)
    return None if target is None else Action.click(target)


def _option(text: str, shot: Shot) -> Element | None:
    found = [one for one in shot.observation.elements if one.kind == "option" and one.text == text]
    return found[0] if found else None
