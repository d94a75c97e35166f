"""Parts of exercises on which the page changes: what is wanted has to be brought up, or something comes between."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from html import escape

from environments.pages.blocks import Draft, Thing, items, text_field
from environments.pages.job import SOMEWHERE, Job, Move

_SEARCH = ('look for "{value}" and open the {nth} it finds', 'search "{value}" and take the {nth} of what is found')
_DATE = ("set the date to {day}", "take {day} from the calendar", "the day is {day}")
_TWO_PAGES = (
    'write "{value}" at {field}, go on with {on}, put "{other}" into {second} and press {name}',
    'fill {field} with "{value}", press {on}, fill {second} with "{other}" and end with {name}',
)
_BOTH = ('write "{value}" at {field} and "{other}" at {second}', 'the {field} is "{value}" and the {second} "{other}"')
_STAY = ("Stay here", "No", "Cancel", "Not now", "Back to the form")
_LEAVE = ("Leave", "Yes", "Go away", "End it", "Start over")
_ASKED = ("Do you want to leave this page?", "Shall we stop here?", "Do you want to throw this away?")
NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
ONWARD = ((">", "<"), ("Next", "Prev"), ("on", "back"), ("Later", "Earlier"))
_PER_PAGE = 3  # of what a search finds


def leaf(job: Job) -> None:
    """What stands on one of several pages is pressed; they are turned over until it is seen."""
    html, pages, turns = _leaves(job.draft, [items(job.draft) for _ in range(job.draft.chooser.randint(2, 4))])
    at = job.draft.chooser.randrange(len(pages))
    chosen = job.draft.chooser.choice(pages[at])
    job.ordered = True
    job.add(html, SOMEWHERE, [*turns[:at], Move(mark=chosen.mark)], name=chosen.text)


def search(job: Job) -> None:
    """A text is looked for, and one of what is found is pressed, by its number; pages are turned over to it."""
    draft, chooser = job.draft, job.draft.chooser
    value, found, label = draft.words.value(), draft.view(), chooser.choice(("Search", "Find", "Go"))
    box, start = draft.note("textbox"), draft.note("button", label)
    field, press = draft.things[-2:]
    html, pages, turns = _leaves(draft, [items(draft, _PER_PAGE) for _ in range(chooser.randint(1, 3))])
    number = chooser.randrange(_PER_PAGE * len(pages))
    page, place = divmod(number, _PER_PAGE)
    bar = f'<input type="text" {box} style="width:80px"> <button {start} data-shows="{found}">{label}</button>'
    moves = [Move(mark=field.mark), Move(text=value), Move(mark=press.mark), *turns[:page]]
    job.ordered = True
    job.add(f'{bar}<div data-view="{found}" hidden>{html}</div>', _SEARCH, [*moves, Move(mark=pages[page][place].mark)],
            value=value, nth=NTH[number])  # fmt: skip


def choose_date(job: Job) -> None:
    """A day is taken from the calendar that a field brings up, at times some months on."""
    draft, chooser = job.draft, job.draft.chooser
    calendar, label = draft.view(), draft.words.label(2)
    box = draft.note("textbox", group=label)
    field = draft.things[-1]
    months = list(_months(date(chooser.randint(2000, 2030), chooser.randint(1, 12), 1), chooser.randint(1, 4)))
    html, pages, turns = _leaves(draft, [_month(draft, month, field.mark, calendar) for month in months])
    at = chooser.randrange(len(months))
    chosen = chooser.choice(pages[at])
    line = f'{escape(label)} <input type="text" readonly {box} data-shows="{calendar}" style="width:80px">'
    moves = [Move(mark=field.mark), *turns[:at], Move(mark=chosen.mark)]
    told = _written(months[at], chosen.text)
    job.ordered = True
    job.add(f'{line}<div class="open" data-view="{calendar}" hidden>{html}</div>', _DATE, moves, day=told)


def two_pages(job: Job) -> None:
    """A form that goes on on a second page."""
    draft = job.draft
    views = draft.view(), draft.view()
    fields, buttons = [], []
    html = ""
    for view, turn, hidden in zip(views, (f'data-hides="{views[0]}" data-shows="{views[1]}"', ""), ("", "hidden"),
                                  strict=True):  # fmt: skip
        block, (box,) = job.made(lambda draft: text_field(draft, filled=0))
        text = draft.words.label(1)
        press = f"<button {draft.note('button', text)} {turn}>{escape(text)}</button>"
        fields.append(box)
        buttons.append(draft.things[-1])
        html += f'<div data-view="{view}" {hidden}>{block}{press}</div>'
    values = draft.words.value(), draft.words.value()
    moves = [move for box, value, press in zip(fields, values, buttons, strict=True)
             for move in (Move(mark=box.mark), Move(text=value), Move(mark=press.mark))]  # fmt: skip
    job.ordered = True
    job.add(html, _TWO_PAGES, moves, value=values[0], other=values[1], field=fields[0].group, second=fields[1].group,
            on=buttons[0].text, name=buttons[1].text)  # fmt: skip


def interrupted(job: Job) -> None:
    """Two fields are written in, and a window that asks whether to leave comes between."""
    draft, chooser = job.draft, job.draft.chooser
    form, window = draft.view(), draft.view()
    first, (one,) = job.made(lambda draft: text_field(draft, filled=0))
    second, (two,) = job.made(lambda draft: text_field(draft, filled=0, attributes=f'data-shows="{window}" data-once'))
    asked, stay, leave = (chooser.choice(texts) for texts in (_ASKED, _STAY, _LEAVE))
    marks = {text: draft.note("answer", text) for text in (stay, leave)}
    right = draft.things[-2]
    hides = {stay: window, leave: f"{window} {form}"}
    answers = "".join(f'<button {marks[text]} data-hides="{hides[text]}">{text}</button>'
                      for text in chooser.sample((stay, leave), 2))  # fmt: skip
    box = f'<div class="dialog" style="margin:{chooser.randint(10, 70)}px 12px;background:white;color:black">'
    html = f'<div data-view="{form}">{first}{second}</div>{_over(window, f"{box}<p>{asked}</p>{answers}</div>")}'
    values = draft.words.value(), draft.words.value()
    moves = [Move(mark=one.mark), Move(text=values[0]), Move(mark=two.mark), Move(mark=right.mark),
             Move(mark=two.mark), Move(text=values[1])]  # fmt: skip
    job.ordered = True
    job.add(html, _BOTH, moves, value=values[0], other=values[1], field=one.group, second=two.group)


def _leaves(draft: Draft, bodies: Sequence[tuple[str, list[Thing]]]) -> tuple[str, list[list[Thing]], list[Move]]:
    """Pages of which one is shown, with what turns them; what stands on each, and the moves that turn to the next."""
    views = [draft.view() for _ in bodies]
    forth, back = draft.chooser.choice(ONWARD)
    html, turns = "", []
    for place, (view, (body, _)) in enumerate(zip(views, bodies, strict=True)):
        row = ""
        for text, other in ((back, place - 1), (forth, place + 1)):
            if 0 <= other < len(views):
                mark = draft.note("turn", text)
                row += f'<a href="#" {mark} data-hides="{view}" data-shows="{views[other]}">{escape(text)}</a> '
        if place + 1 < len(views):
            turns.append(Move(mark=draft.things[-1].mark))
        html += f'<div data-view="{view}" {"hidden" if place else ""}>{row}{body}</div>'
    return html, [things for _, things in bodies], turns


def _months(first: date, count: int) -> Iterator[date]:
    """The first days of so many months."""
    for _ in range(count):
        yield first
        first = (first + timedelta(days=32)).replace(day=1)


def _month(draft: Draft, month: date, field: str, calendar: str) -> tuple[str, list[Thing]]:
    """A month, each day of which fills the field and puts the calendar away; and its days."""
    before = len(draft.things)
    _, days = monthrange(month.year, month.month)
    cells = ["<td></td>"] * month.weekday()
    for day in range(1, days + 1):
        value = _written(month, str(day))
        mark = draft.note("day", str(day))
        cells.append(
            f'<td><a href="#" {mark} data-fills="{field}" data-hides="{calendar}" value="{value}">{day}</a></td>'
        )
    rows = "".join(f"<tr>{''.join(cells[start : start + 7])}</tr>" for start in range(0, len(cells), 7))
    return f"<b>{month:%B %Y}</b><table>{rows}</table>", draft.things[before:]


def _written(month: date, day: str) -> str:
    return f"{month:%m}/{int(day):02}/{month.year}"


def _over(view: str, html: str) -> str:
    """A view that lies over the whole page, hidden at first."""
    return f'<div data-view="{view}" hidden style="position:fixed;inset:0;background:#0006">{html}</div>'
