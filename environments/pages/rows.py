"""Parts of exercises on lists of letters and posts: a row is found, opened where need be, and its sign pressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from environments.pages.blocks import Draft, Thing
from environments.pages.figures import icon
from environments.pages.job import Job, Move, sought

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
_SCREEN_PX = 190  # without what mostly stands above
_LIST = "overflow-x:clip;text-align:left;font-size:12px;line-height:1.2"


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
