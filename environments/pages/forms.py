"""Parts of exercises that fill forms: fields, boxes, menus and numbers, and the button that sends them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from html import escape

from environments.pages.blocks import (
    Draft,
    Thing,
    button,
    checkboxes,
    drop_down,
    many_checkboxes,
    radios,
    spinner,
    suggesting_field,
    table,
    text_area,
    text_field,
)
from environments.pages.figures import icon
from environments.pages.job import Job, Move, sought

_WRITE = (
    'write "{value}" at {field}', 'put "{value}" into {field}', '{field} shall be "{value}"',
    'fill {field} with "{value}"', 'the {field} is "{value}"',
)  # fmt: skip
_TWICE = (
    'write "{value}" at {field} and again at {other}', 'fill {field} and {other} with "{value}"',
    'put "{value}" into both fields', 'write "{value}" in both places',
)  # fmt: skip
_RECAST = (
    'write "{value}" {how} at {field}',
    'put "{value}" into {field} {how}',
    'fill the field with "{value}" {how}',
)
_CASES = (
    ("in capitals", str.upper), ("in big letters", str.upper), ("in uppercase", str.upper),
    ("in small letters", str.lower), ("in lowercase", str.lower),
)  # fmt: skip
_LOOK_UP = (
    "write what stands beside {name} at {field}", "fill {field} with what the table says of {name}",
    "look {name} up and put it into {field}",
)  # fmt: skip
_COPY = ("copy the text into {field}", "write the same text at {field}", "put what the box says into {field}")
_COPY_ONE = ("copy the text of {which} into {field}", "write what {which} says at {field}")
_TICK = ("tick {names}", "choose {names}", "mark {names}", "switch on {names}")
_TICK_ALL = ("tick all of them", "tick every box", "mark all there are")
_UNTICK = ("clear {names}", "switch off {names}", "take the tick from {names}")
_PICK = ("pick {names}", "choose {names}", "take {names}")
_DROP = ("choose {names} from the menu", "set the menu to {names}", "open the menu and take {names}")
_DROP_DRAWN = ("set it to {names}", "take {names} out of the list", "open the list and choose {names}")
_ANSWER = ('then press the button "{name}"', "then answer {name}", "and take {place} button", 'and say "{name}"')
_TYPE_DATE = (
    "the date is {day}",
    "write the date {day}",
    "set {field} to {day}",
    "put {day} into the field of the date",
)
_DAYS = ("%m/%d/%Y", "%m/%d/%Y", "%Y-%m-%d", "%d %B %Y", "%B %d, %Y")  # how a date is told
_TYPED_DAYS = {"MM/DD/YYYY": "%m/%d/%Y", "YYYY-MM-DD": "%Y-%m-%d", "DD.MM.YYYY": "%d.%m.%Y", "YYYYMMDD": "%Y%m%d"}
_COUNT_UP = ("set the number to {number}", "bring it to {number}", "make the number {number}")
_COMPLETE = (
    'begin with "{start}" and take what ends with "{end}"', 'find the one from "{start}" to "{end}"',
    'take the one that begins with "{start}" and ends with "{end}"',
    'choose what starts with "{start}" and ends in "{end}"',
)  # fmt: skip
_REACH = ("go to {field}", "put the cursor into {field}", "press into {field}", "get ready to write at {field}")
_CALLED = ("field", "field", "input", "text field", "box")
NTH = (("1st", "first", "uppermost"), ("2nd", "second"), ("3rd", "third"), ("4th", "fourth"))
_SEND = ('then press "{name}"', "and press {name}", 'and confirm with "{name}"', "then {name}")


def write(job: Job) -> None:
    """A text is written in a field."""
    block, (box,) = job.made(_empty)
    value = job.draft.words.value()
    job.add(block, _WRITE, _written(box, value), value=value, field=box.group)


def write_twice(job: Job) -> None:
    """A text is written in two fields."""
    value = job.draft.words.value()
    block, (first, second) = job.made(lambda draft: _empty(draft) + _empty(draft))
    moves = [*_written(first, value), *_written(second, value)]
    job.add(block, _TWICE, moves, value=value, field=first.group, other=second.group)


def write_there(job: Job) -> None:
    """One of several text fields, told by its label or its number, is written in."""
    blocks, chosen, told = _one_field(job)
    value = job.draft.words.value()
    job.add(blocks, _WRITE, _written(chosen, value), value=value, field=told)


def reach(job: Job) -> None:
    """One of several text fields, told so, is pressed, and nothing typed."""
    blocks, chosen, told = _one_field(job)
    job.add(blocks, _REACH, [Move(mark=chosen.mark)], field=told)


def recast(job: Job) -> None:
    """A text is written in letters of the other case."""
    block, (box,) = job.made(_empty)
    how, cast = job.draft.chooser.choice(_CASES)
    value = job.draft.words.word()
    given = value.title() if cast is str.upper else value.upper()
    job.add(block, _RECAST, _written(box, cast(value)), value=given, field=box.group, how=how)


def look_up(job: Job) -> None:
    """A cell of a table is written in a field."""
    rows, cells = job.made(table)
    block, (box,) = job.made(_empty)
    names = [cell.text for cell in cells if not cell.group]
    chosen = job.draft.chooser.choice(names)
    value = next(cell.text for cell in cells if cell.group == chosen)  # the first beside it
    moves = _written(box, value)
    job.add(rows + block, _LOOK_UP, moves, name=chosen, field=box.group)


def copy(job: Job) -> None:
    """The text of a large field is written in a small one."""
    area, (source,) = job.made(lambda draft: text_area(draft, 1.0, draft.chooser.choice((3, 6, 12))))
    block, (box,) = job.made(_empty)
    job.add(area + block, _COPY, _written(box, source.text), field=box.group)


def copy_one(job: Job) -> None:
    """The text of one of several large fields, told by its number, is written in a small one."""
    chooser = job.draft.chooser
    areas, sources = job.made(lambda draft: "".join(text_area(draft, 1.0, 3) for _ in range(chooser.randint(2, 3))))
    block, (box,) = job.made(_empty)
    place = chooser.randrange(len(sources))
    which = f"the {chooser.choice(NTH[place])} {chooser.choice(('text area', 'box', 'text box'))}"
    job.add(areas + block, _COPY_ONE, _written(box, sources[place].text), which=which, field=box.group)


def tick(job: Job) -> None:
    """Up to three boxes are ticked, or up to five."""
    block, boxes = job.made(lambda draft: checkboxes(draft, ticked=0))
    _ticked(job, block, boxes, 1, job.draft.chooser.choice((3, 3, 5)))


def tick_many(job: Job) -> None:
    """Four of many boxes are ticked, or more, up to eight."""
    block, boxes = job.made(many_checkboxes)
    _ticked(job, block, boxes, 4, 8)


def _ticked(job: Job, block: str, boxes: Sequence[Thing], fewest: int, most: int) -> None:
    chooser = job.draft.chooser
    chosen = chooser.sample(boxes, chooser.randint(fewest, min(most, len(boxes))))
    job.add(block, _TICK, [Move(mark=box.mark) for box in chosen], names=", ".join(box.text for box in chosen))


def tick_all(job: Job) -> None:
    """Every box that is not ticked is ticked."""
    block, boxes = job.made(lambda draft: checkboxes(draft, ticked=0.2))
    job.add(block, _TICK_ALL, [Move(mark=box.mark) for box in boxes if not box.on])


def untick(job: Job) -> None:
    """One or two boxes are cleared."""
    block, boxes = job.made(lambda draft: checkboxes(draft, ticked=1.0))
    chosen = job.draft.chooser.sample(boxes, job.draft.chooser.randint(1, 2))
    job.add(block, _UNTICK, [Move(mark=box.mark) for box in chosen], names=", ".join(box.text for box in chosen))


def pick(job: Job) -> None:
    """A radio button is pressed."""
    block, buttons = job.made(lambda draft: radios(draft, chosen=False))
    chosen = job.draft.chooser.choice(buttons)
    job.add(block, _PICK, [Move(mark=chosen.mark)], names=chosen.text)


def drop(job: Job) -> None:
    """An option is taken from a menu."""
    block, (menu,) = job.made(drop_down)
    option = job.draft.chooser.choice(menu.group.split("\n")[1:])
    job.add(block, _DROP, [Move(mark=menu.mark), Move(option=option)], names=option)


def drop_drawn(job: Job) -> None:
    """An option is taken from a list that the page draws: pressed, or, where it is out of sight, typed, and Enter."""
    draft, chooser = job.draft, job.draft.chooser
    names, view = [draft.words.label(2) for _ in range(chooser.randint(3, 8))], draft.view()
    seen, tall = chooser.randint(2, 4), chooser.randint(14, 22)
    shown = f'<span {draft.note("shown")} style="cursor:pointer"></span>'
    arrow = icon("menu", 12, draft.note("arrow"), chooser.choice(("arrow", "open", "toggle", "down")))
    field, opens = draft.things[-2:]
    role, fills = chooser.choice(('role="option"', "")), f'data-fills="{field.mark}" data-hides="{view}"'
    look = f"height:{tall}px;overflow:hidden;white-space:nowrap"
    rows, options = job.made(
        lambda draft: "".join(
            f'<div {role} {draft.note("option", name)} {fills} style="{look}">{escape(name)}</div>' for name in names
        )
    )
    at = chooser.randrange(len(names))
    moves = [*sought(names[at], (at + 1) * tall, seen * tall), Move(mark=options[at].mark)]
    if at >= seen and draft.chance(0.6):
        moves = [Move(text=names[at]), Move(key="Enter")]
    height = f"height:{seen * tall}px;line-height:{tall}px;overflow:auto;cursor:pointer"
    box = f'<div class="open">{shown} <span data-shows="{view}">{arrow}</span></div>'
    job.ordered = True
    job.add(f'{box}<div class="open" data-view="{view}" data-finds hidden style="{height}">{rows}</div>', _DROP_DRAWN,
            [Move(mark=opens.mark), *moves], names=names[at])  # fmt: skip


def type_date(job: Job) -> None:
    """A date is typed: part by part from the first on in a field of dates, else in the form that the field shows."""
    chooser, label = job.draft.chooser, job.draft.words.label(2)
    mark = job.draft.note("textbox", group=label)
    (box,) = job.draft.things[-1:]
    day = date(1950, 1, 1) + timedelta(days=chooser.randrange(36500))
    look = f"width:{chooser.randint(100, 135)}px;font:12px Arial;padding:1px"  # its middle is the last part
    if job.draft.chance(0.6):
        kind, first = 'type="date"', [Move(key="ArrowLeft")] * 2
        text = f"{day:%m%d%Y}"
    else:
        hint, form = chooser.choice(list(_TYPED_DAYS.items()))
        kind, first, text = f'type="text" placeholder="{hint}"', [], day.strftime(form)
    job.ordered = True
    moves, told = [Move(mark=box.mark), *first, Move(text=text)], day.strftime(chooser.choice(_DAYS))
    field = f'<input {kind} {mark} style="{look}">'
    job.add(f"<div>{escape(label)}<br>{field}</div>", _TYPE_DATE, moves, field=label, day=told)


def answer(job: Job) -> None:
    """One of several buttons, told by what it says or by its number, ends it."""
    block, buttons = job.made(lambda draft: row_of_buttons(draft, 2, 4))
    at = job.draft.chooser.randrange(len(buttons))
    place = f"the {job.draft.chooser.choice(NTH[at])}"
    job.add(block, _ANSWER, [Move(mark=buttons[at].mark)], name=buttons[at].text, place=place)


def count_up(job: Job) -> None:
    """A number is counted up or down to another by its two buttons."""
    block, (shown, up, down) = job.made(spinner)
    steps = job.draft.chooser.choice((-4, -3, -2, -1, 1, 2, 3, 4, 5))
    moves = [Move(mark=(up if steps > 0 else down).mark)] * abs(steps)
    job.add(block, _COUNT_UP, moves, number=str(int(shown.text) + steps))


def complete(job: Job) -> None:
    """The beginning of a name is typed, and of what is offered the one that ends as said is taken."""
    block, (box, *offered) = job.made(suggesting_field)
    chosen = job.draft.chooser.choice(offered)
    start, end = chosen.text[: job.draft.chooser.choice((2, 2, 3))], chosen.text[-2:]
    job.add(block, _COMPLETE, [*_written(box, start), Move(mark=chosen.mark)], start=start, end=end)


def send(job: Job) -> None:
    """The button that ends it, alone or beside another."""
    job.press_one(lambda draft: row_of_buttons(draft, 1, 2), _SEND)


def row_of_buttons(draft: Draft, fewest: int, most: int) -> str:
    """So many buttons."""
    return f"<div>{' '.join(button(draft) for _ in range(draft.chooser.randint(fewest, most)))}</div>"


def _empty(draft: Draft) -> str:
    return text_field(draft, filled=0)


def _written(box: Thing, value: str) -> list[Move]:
    return [Move(mark=box.mark), Move(text=value)]


def _one_field(job: Job) -> tuple[str, Thing, str]:
    """One to four text fields, one of them, and its label or its number."""
    chooser = job.draft.chooser
    blocks, boxes = job.made(lambda draft: "".join(_empty(draft) for _ in range(chooser.randint(1, 4))))
    place = chooser.randrange(len(boxes))
    number = f"the {chooser.choice(NTH[place])} {chooser.choice(_CALLED)}"
    return blocks, boxes[place], chooser.choice((boxes[place].group, number, number))
