"""Parts of exercises on which the page changes: what is wanted has to be brought up, or something comes between."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape
from random import Random

from environments.pages.blocks import Draft, Thing, button, link, text_field
from environments.pages.figures import icon
from environments.pages.job import Job, Move, sought

_WITHIN = ('open "{view}" and press {name}', "press {name} under {view}", "go to {view}, then take {name}")
_SOMEWHERE = ("find {name} and press it", "look for {name} and take it", "press {name}, wherever it is")
_IN_PARTS = (
    *_SOMEWHERE, 'open the parts below until the {sort} "{name}" is seen, and press it',
    'the {sort} {name} lies in one of these parts: unfold them, then press it',
)  # fmt: skip
_BEHIND_TABS = (
    *_SOMEWHERE, 'look behind the tabs for the {sort} "{name}" and press it',
    "go from one tab to the next till {name} is seen, then press it",
)  # fmt: skip
_MENU = (
    "in the menu take {view}, then {name}", "open {view} in the menu and choose {name}", "choose {view} > {name}",
    "take {view}>{name}", "go to {view} / {name}",
)  # fmt: skip
_IN_MENU = ("look through the menu for {name} and choose it", 'take the entry "{name}" of the menu', "choose {name}")
_TREE = ('unfold {view} and press "{name}"', "in the tree go to {view} > {name}", "take {name}, which is below {view}")
_IN_TREE = (
    'look for "{name}" in the tree and press it', "unfold the tree till {name} is seen and press it",
    'go through all that can be unfolded and take what is called "{name}"', "find {name} among the branches",
)  # fmt: skip
_JOINTS = (" > ", ">", " / ", ", then ")  # between the names on the way to what lies deeper
_SIGNS = (("collapsed", "expanded"), ("fold shut", "fold ajar"), ("+", "-"), ("▸", "▾"), ())
_TRIANGLES = ("0 0,100% 50%,0 100%", "0 0,100% 0,50% 100%")  # what a sign that has a name draws
_ASIDE = "position:absolute;left:90%;top:0;z-index:1;background:#ddd;color:black"  # where the choices of a choice lie
_INDENTED = "margin-left:12px"
_LONGEST = 7  # search, in presses before what is wanted
_SEARCH = ('look for "{value}" and open the {nth} it finds', 'search "{value}" and take the {nth} of what is found')
_DATE = ("set the date to {day}", "take {day} from the calendar", "the day is {day}")
_LETTERS = {
    "reply": ('answer {who} with "{value}"', 'reply "{value}" to {who}', 'write back "{value}" to {who}'),
    "share": ('pass what {who} wrote on to "{value}"', 'send the letter of {who} on to "{value}"'),
    "delete": ("throw the letter of {who} away", "delete what {who} wrote", "use {sign} on the letter of {who}"),
    "favorite": (
        "mark the letter of {who} as a favorite", "give the letter of {who} a star", "the letter of {who}: {sign}",
    ),
}  # fmt: skip
_CALLED = {  # what pages call their signs
    "reply": ("reply", "answer", "respond"), "share": ("forward", "share", "pass on"),
    "delete": ("trash", "delete", "bin", "remove"), "favorite": ("star", "favorite", "important"),
    "confirm": ("like", "done", "agree"), "upload": ("repost", "publish", "upload"), "download": ("save", "download"),
    "edit": ("edit", "change"), "lock": ("lock", "protect"), "mail": ("mail", "write", "message"),
}  # fmt: skip
_MORE = ("more", "options", "menu", "actions")
_DEEDS = (
    "Hide",
    "Follow",
    "Silence",
    "Print",
    "Pin",
    "Rename",
    "Invite",
    "Archive",
    "Translate",
    "Move",
    "Snooze",
    "Flag",
)
_POSTS = (
    'look for {who} and press "{sign}" there', 'choose "{sign}" for {who}', "take {sign} at what {who} wrote",
    'use "{sign}" on what {who} wrote', "the one by {who}: {sign}", 'go to {who} and take "{sign}"',
)  # fmt: skip
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
_SCREEN_PX = 190  # without what mostly stands above
_LIST = "overflow-x:clip;text-align:left;font-size:12px;line-height:1.2"
_PER_PAGE = 3  # of what a search finds


@dataclass(frozen=True, slots=True)
class _Node:
    """A thing, and what a press on its ``opener``, which it may be itself, brings up, unless it is ``open`` already."""

    thing: Thing
    opener: Thing
    below: tuple[_Node, ...] = ()
    open: bool = False


def unfold(job: Job) -> None:
    """What lies in one of several sections, each under its head, is pressed."""
    _bring_up(job, _sections(job.draft, together=False), _WITHIN, _IN_PARTS)


def tabbed(job: Job) -> None:
    """What lies behind one of several tabs is pressed."""
    _bring_up(job, _sections(job.draft, together=True), _WITHIN, _BEHIND_TABS)


def menu(job: Job) -> None:
    """A choice is taken that may lie within others, some levels deep, in a menu that a button may bring up."""
    draft, chooser = job.draft, job.draft.chooser
    view = draft.view() if draft.chance(0.3) else ""
    role = chooser.choice(('role="menuitem"', 'role="menuitem"', 'style="cursor:pointer"'))
    html, nodes = _choices(draft, chooser.choice((1, 2, 3, 3)), role, chooser.choice((_ASIDE, _INDENTED)), view)
    if view:
        text = chooser.choice(("Menu", "More", draft.words.label(1)))
        html = f"""<button {draft.note("button", text)} data-shows="{view}">{escape(text)}</button>
                   <div class="open" data-view="{view}" hidden>{html}</div>"""
        nodes = [_Node(draft.things[-1], draft.things[-1], tuple(nodes))]
    _bring_up(job, (html, nodes), _MENU, _IN_MENU)


def tree(job: Job) -> None:
    """Something in a tree is pressed, be it a branch or a leaf; branches are unfolded until it is seen."""
    found = _tree(job.draft, job.draft.chooser.choice(_SIGNS))
    _bring_up(job, found, _TREE, _IN_TREE, branches=True)


def leaf(job: Job) -> None:
    """What stands on one of several pages is pressed; they are turned over until it is seen."""
    html, pages, turns = _leaves(job.draft, [_items(job.draft) for _ in range(job.draft.chooser.randint(2, 4))])
    at = job.draft.chooser.randrange(len(pages))
    chosen = job.draft.chooser.choice(pages[at])
    job.ordered = True
    job.add(html, _SOMEWHERE, [*turns[:at], Move(mark=chosen.mark)], name=chosen.text)


def search(job: Job) -> None:
    """A text is looked for, and one of what is found is pressed, by its number; pages are turned over to it."""
    draft, chooser = job.draft, job.draft.chooser
    value, found, label = draft.words.value(), draft.view(), chooser.choice(("Search", "Find", "Go"))
    box, start = draft.note("textbox"), draft.note("button", label)
    field, press = draft.things[-2:]
    html, pages, turns = _leaves(draft, [_items(draft, _PER_PAGE) for _ in range(chooser.randint(1, 3))])
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


def letters(job: Job) -> None:
    """A letter of several is opened, and answered, passed on, thrown away or marked; it may have to be scrolled to."""
    draft, chooser = job.draft, job.draft.chooser
    shelf, rows, opened = draft.view(), "", ""
    tall, height, pointer = chooser.randint(34, 50), chooser.randint(100, 140), chooser.choice(("pointer", "auto"))
    called = {way: chooser.choice(_CALLED[way]) for way in _LETTERS} if draft.chance(0.7) else {}
    ways: list[tuple[Thing, dict[str, list[str]]]] = []
    for _ in range(chooser.randint(3, 7)):
        who, view, said = draft.words.label(1), draft.view(), escape(draft.words.sentence(2, 4))
        mark = draft.note("letter", who)
        row = draft.things[-1]
        rows += (
            f'<div class="row" {mark} data-shows="{view}" data-hides="{shelf}" style="{_strip(tall)};cursor:{pointer}">'
            f"<b>{escape(who)}</b><br>{said}</div>"
        )
        html, marks = _letter(draft, view, shelf, row.mark, f"<b>{escape(who)}</b><p>{said}</p>", called)
        opened += html
        ways.append((row, marks))
    place = chooser.randrange(len(ways))
    row, marks = ways[place]
    way = chooser.choice(list(_LETTERS))
    value = draft.words.value()
    sign, *slip = [Move(mark=mark) for mark in marks[way]]
    written = [slip[0], Move(text=value), slip[1]] if slip else []
    moves = [*sought(row.text, (place + 0.5) * tall, height), Move(mark=row.mark), sign, *written]
    job.ordered = True
    shelved = f'<div data-view="{shelf}" style="{_LIST};overflow:hidden auto;height:{height}px">{rows}</div>'
    job.add(shelved + opened, _LETTERS[way], moves, who=row.text, value=value, sign=called.get(way, way))


def posts(job: Job) -> None:
    """A sign beside one of many names is pressed, or what the menu of such a sign offers; both may be further down."""
    draft, chooser = job.draft, job.draft.chooser
    tall, at, pointer = chooser.randint(46, 60), chooser.choice(("", "@")), chooser.choice(("pointer", "auto"))
    height = chooser.choice((chooser.randint(110, 150), _SCREEN_PX))  # of the list, or of the page where it is no box
    signs = {chooser.choice(_CALLED[sign]): sign for sign in chooser.sample(list(_CALLED), chooser.randint(2, 4))}
    deeds = chooser.sample(_DEEDS, chooser.randint(2, 4)) if draft.chance(0.6) else []
    more, below, named = chooser.choice(_MORE), draft.chance(0.5), draft.chance(0.5)
    rows, ways = "", list[tuple[str, str, list[Move]]]()
    for place in range(chooser.randint(4, 9)):
        who = at + draft.words.label(1)
        mark = draft.note("post", who)
        drawn, done = _signs(draft, signs, who)
        if deeds:
            menu, offered = _more(draft, more, deeds, who if named else "")
            drawn, done = drawn + menu, {**done, **offered}
        head, said = f"<b>{escape(who)}</b>", escape(draft.words.sentence(2, 4))
        text = f"{head}<br>{said}<br>{drawn}" if below else f'<span style="float:right">{drawn}</span>{head}<br>{said}'
        rows += f'<div class="row" {mark} style="{_strip(tall)};position:relative;cursor:{pointer}">{text}</div>'
        seen = place * tall + (40 if below else 12)
        ways += [(who, what, [*sought(who, seen, height), *moves]) for what, moves in done.items()]
    who, what, moves = chooser.choice(ways)
    job.ordered = True
    boxed = f"overflow:hidden auto;height:{height}px" if height < _SCREEN_PX else ""
    sign = chooser.choice((what, what.title()))
    job.add(f'<div style="{_LIST};{boxed}">{rows}</div>', _POSTS, moves, who=who, sign=sign)


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


def _bring_up(
    job: Job,
    found: tuple[str, Sequence[_Node]],
    told_wordings: Sequence[str],
    wordings: Sequence[str],
    branches: bool = False,
) -> None:
    """A node is pressed that holds no others, or any if ``branches``.

    Where the way to it is told, that is gone, else all there is to open is gone through, mostly from top to bottom;
    what is left to be opened would do as well then.
    """
    chooser, (html, nodes) = job.draft.chooser, found
    chosen = chooser.choice([node for node in _walk(nodes) if branches or not node.below])
    holders = [node for node in _walk(nodes, chooser if job.draft.chance(0.4) else None) if node.below]
    path = [node for node in holders if chosen in _walk(node.below)]
    shut = [node for node in holders if not node.open]
    searched = shut[: shut.index(path[-1]) + 1] if path and not path[-1].open else []
    told = bool(path) and (job.draft.chance(0.4) or len(searched) > _LONGEST)
    texts = [node.opener.text for node in shut]
    moves = [
        Move(mark=node.opener.mark, either=() if told else tuple(texts[shut.index(node) + 1 :]))
        for node in (path if told else searched)
        if not node.open
    ]
    job.ordered = True
    job.add(html, told_wordings if told else wordings, [*moves, Move(mark=chosen.thing.mark)],
            view=chooser.choice(_JOINTS).join(node.thing.text for node in path), name=chosen.thing.text,
            sort=chosen.thing.sort)  # fmt: skip


def _walk(nodes: Sequence[_Node], chooser: Random | None = None) -> Iterator[_Node]:
    """Each node and, after it, those below it: as they stand, or those of a kind in random order."""
    for node in chooser.sample(nodes, len(nodes)) if chooser else nodes:
        yield node
        yield from _walk(node.below, chooser)


def _leafs(things: Iterable[Thing]) -> tuple[_Node, ...]:
    return tuple(_Node(thing, thing) for thing in things)


def _sections(draft: Draft, together: bool) -> tuple[str, list[_Node]]:
    """Two to four sections, their heads ``together`` above them or each above its own; all but one may be shut."""
    chooser, views = draft.chooser, [draft.view() for _ in range(draft.chooser.randint(2, 4))]
    shown = chooser.choice((0, 0, -1, -1, -1)) if not together else 0
    role = 'role="tab"' if together else chooser.choice(('role="tab"', 'style="cursor:pointer"', ""))
    look = "" if together else chooser.choice(("", "fold"))
    alone = together or draft.chance(0.7)  # one is shut as another opens
    fill = chooser.choice((_items, _prose))
    nodes, parts = [], []
    for place, (view, text) in enumerate(zip(views, draft.words.labels(len(views), 2), strict=True)):
        others = " ".join(other for other in views if other != view)
        on = 'aria-selected="true"' if alone and place == shown else ""
        mark = draft.note("head", text)
        thing = draft.things[-1]
        tag = "span" if together else "div"
        acts = f'data-shows="{view}"' + (f' data-hides="{others}" data-among="{views[0]}"' if alone else "")
        head = f'<{tag} {mark} {role} {on} {acts} class="{look} {"chosen" if on else ""}">{escape(text)}</{tag}>'
        body, things = fill(draft)
        nodes.append(_Node(thing, thing, _leafs(things), place == shown))
        parts.append((head, f'<div data-view="{view}" {"" if place == shown else "hidden"}>{body}</div>'))
    if together:
        top = f'<div class="tabs">{"".join(head for head, _ in parts)}</div>'
        return top + "".join(body for _, body in parts), nodes
    return "".join(f'<div class="row">{head}{body}</div>' for head, body in parts), nodes


def _prose(draft: Draft) -> tuple[str, list[Thing]]:
    """Running text with one to four links in it, and what they are."""
    before, text = len(draft.things), ""
    for _ in range(draft.chooser.randint(1, 4)):
        name = draft.words.label(1) + draft.chooser.choice(("", "", ".", ","))
        text += f'{escape(draft.words.sentence(3, 6))} <a href="#" {draft.note("link", name)}>{escape(name)}</a> '
    return f"<p>{text}{escape(draft.words.sentence(1, 6))}</p>", draft.things[before:]


def _choices(draft: Draft, levels: int, role: str, place: str, menu: str) -> tuple[str, list[_Node]]:
    """Two to four choices of a menu; those that hold others bring them up, the others put the ``menu`` away, if any.

    Of those that lie together one is open.
    """
    views, html, nodes = [draft.view() for _ in range(draft.chooser.randint(2, 4))], "", []
    for view in views:
        mark = draft.note("choice", text := draft.words.label(1))
        thing, inner, acts = draft.things[-1], "", f'data-hides="{menu}"'
        below: list[_Node] = []
        if levels > 1 and draft.chance(0.6):
            others = " ".join(other for other in views if other != view)
            acts = f'data-shows="{view}" data-hides="{others}" class="fold"'
            inner, below = _choices(draft, levels - 1, role, place, menu)
            inner = f'<div class="open" data-view="{view}" hidden style="{place}">{inner}</div>'
        nodes.append(_Node(thing, thing, tuple(below)))
        held = "position:relative;width:52px" if place == _ASIDE else ""
        html += f'<div style="{held}"><div {role} {mark} {acts}>{escape(text)}</div>{inner}</div>'
    return html, nodes


def _tree(draft: Draft, signs: Sequence[str], depth: int = 0) -> tuple[str, list[_Node]]:
    """Names below each other, some of which hold others.

    Those are unfolded by the first of two ``signs`` before them, or by their names, where there are none.
    """
    html, nodes = "", []
    for _ in range(draft.chooser.randint(2, 4) if depth == 0 else draft.chooser.randint(1, 3)):
        mark = draft.note("entry", text := draft.words.label(1))
        thing = opener = draft.things[-1]
        inner, sign, acts = "", "", ""
        below: list[_Node] = []
        if draft.chance((0.65, 0.4, 0)[depth]):
            view = draft.view()
            acts = f'data-shows="{view}" class="fold"'
            if signs:
                sign, opener, acts = *_fold_signs(draft, signs, view), ""
            inner, below = _tree(draft, signs, depth + 1)
            inner = f'<div data-view="{view}" hidden style="margin-left:{draft.chooser.randint(8, 16)}px">{inner}</div>'
        nodes.append(_Node(thing, opener, tuple(below)))
        html += f'<div style="text-align:left">{sign} <a href="#" {mark} {acts}>{escape(text)}</a>{inner}</div>'
    return html, nodes


def _fold_signs(draft: Draft, signs: Sequence[str], view: str) -> tuple[str, Thing]:
    """The sign that unfolds a view, with the one that stands in its place then and folds it; and the first of them."""
    marks = [draft.note(sort, sign) for sort, sign in zip(("shut", "ajar"), signs, strict=True)]
    shut, ajar = draft.things[-2:]
    ways = (f'data-shows="{view} {ajar.mark}" data-hides="{shut.mark}"',
            f'data-shows="{shut.mark}" data-hides="{view} {ajar.mark}" hidden')  # fmt: skip
    html = ""
    for mark, way, sign, corners in zip(marks, ways, signs, _TRIANGLES, strict=True):
        drawn = len(sign) > 1
        look = f"display:inline-block;width:9px;height:9px;background:currentColor;clip-path:polygon({corners});"
        html += f'<span {mark} {way} class="{sign}" style="{look if drawn else ""}cursor:pointer">'
        html += "</span>" if drawn else f"{sign}</span>"
    return html, shut


def _items(draft: Draft, count: int = 0) -> tuple[str, list[Thing]]:
    """So many links or buttons (two to five if 0) below each other or in a row, and what they are."""
    before, make = len(draft.things), draft.chooser.choice((link, link, button))
    gap = draft.chooser.choice(("<br>", "<br>", " "))
    html = gap.join(make(draft) for _ in range(count or draft.chooser.randint(2, 5)))
    return f"<div>{html}</div>", draft.things[before:]


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


def _strip(tall_px: int) -> str:
    """The look of a row of a list."""
    return f"height:{tall_px}px;box-sizing:border-box;white-space:nowrap"


def _signs(draft: Draft, signs: Mapping[str, str], who: str) -> tuple[str, dict[str, list[Move]]]:
    """The signs of a post, by what they are called, and the moves of each. What is deleted goes."""
    post, html, done = draft.things[-1].mark, "", {}
    for called, sign in signs.items():
        drawn = icon(sign, 13, draft.note("sign", called, group=who), called)
        html += f'<span data-hides="{post if sign == "delete" else ""}">{drawn}</span> '
        done[called] = [Move(mark=draft.things[-1].mark)]
    return html, done


def _more(draft: Draft, called: str, deeds: Sequence[str], who: str) -> tuple[str, dict[str, list[Move]]]:
    """A sign that brings up a menu of deeds, and the moves of each; they may say to ``who`` they are done."""
    view, html, done = draft.view(), "", {}
    sign = icon("menu", 13, draft.note("more", called), called)
    opens = Move(mark=draft.things[-1].mark)
    for deed in deeds:
        html += f"<div {draft.note('deed', deed)}>{escape(f'{deed} {who}'.strip())}</div>"
        done[deed] = [opens, Move(mark=draft.things[-1].mark)]
    look = "position:absolute;right:24px;top:0;z-index:1;background:white;color:black;cursor:pointer"
    menu = f'<div class="open" data-view="{view}" data-hides="{view}" hidden style="{look}">{html}</div>'
    return f'<span data-shows="{view}">{sign}</span>{menu}', done


def _letter(draft: Draft, view: str, shelf: str, row: str, text: str,
            called: Mapping[str, str]) -> tuple[str, dict[str, list[str]]]:  # fmt: skip
    """A letter that lies open, and the marks of what is pressed for each thing that can be done with it.

    Thrown away, its row goes from the shelf.
    """
    signs, slips = "", ""
    marks: dict[str, list[str]] = {}
    for way in _LETTERS:
        slip = draft.view()
        acts = f'data-hides="{view} {row}" data-shows="{shelf}"' if way == "delete" else f'data-shows="{slip}"'
        signs += f"<span {acts}>{icon(way, 14, draft.note('sign', way), called.get(way, ''))}</span> "
        marks[way] = [draft.things[-1].mark]
        if way in ("reply", "share"):
            sort, done = draft.note("textbox"), draft.note("button", label := draft.chooser.choice(("Send", "Done")))
            marks[way] += [thing.mark for thing in draft.things[-2:]]
            field = f'<textarea {sort} style="width:90px;height:30px"></textarea>' if way == "reply" else (
                f'to <input type="text" {sort} style="width:90px">')  # fmt: skip
            slips += f'<div data-view="{slip}" hidden>{field}<button {done}>{label}</button></div>'
    return f'<div data-view="{view}" hidden>{text}{signs}{slips}</div>', marks


def _over(view: str, html: str) -> str:
    """A view that lies over the whole page, hidden at first."""
    return f'<div data-view="{view}" hidden style="position:fixed;inset:0;background:#0006">{html}</div>'
