"""The blocks a random page is made of. Each draws itself into HTML and notes what a lesson may ask about.

A block is a function of the draft of the page; the width it may fill is that of its container.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

from environments.pages.figures import COLOURS, ICONS, SHAPES, icon, shape
from environments.pages.words import Words

NEUTRAL = ("black", "white", "gray")
_SMALL_PX, _LARGE_PX = 13, 18  # what is called so
VIVID = tuple(colour for colour in COLOURS if colour not in NEUTRAL)
_INKS = (*VIVID, "black")
_STEPS = (("+", "-"), ("▲", "▼"), ("up", "down"), ("more", "less"))  # what counts up and down


@dataclass(frozen=True, slots=True)
class Thing:
    """Something on a page. ``mark`` is what the HTML calls it; ``group`` what it belongs to: the label of a field, the
    group of a radio button, the row of a cell, the options of a menu (a line each).

    ``sort`` is what a person would call it; what it does not have (a colour, a shape, a state) is empty.
    """

    mark: str
    sort: str
    text: str = ""
    colour: str = ""
    shape: str = ""
    size: str = ""
    group: str = ""
    on: bool = False


@dataclass
class Draft:
    """A page in the making."""

    chooser: random.Random
    words: Words
    things: list[Thing] = field(default_factory=list)
    views: int = 0

    def note(self, sort: str, text: str = "", **facts: str | bool) -> str:
        """The attribute that marks a new thing."""
        mark = f"t{len(self.things)}"
        self.things.append(Thing(mark, sort, text, **facts))  # type: ignore[arg-type]
        return f'data-mark="{mark}"'

    def view(self) -> str:
        """The name of a new view: a part of the page that can be shown and hidden (``views.js``)."""
        self.views += 1
        return f"v{self.views}"

    def chance(self, share: float) -> bool:
        """True in ``share`` of the cases."""
        return self.chooser.random() < share


Block = Callable[[Draft], str]


def heading(draft: Draft) -> str:
    """A heading of one to four words."""
    text = draft.words.label(4)
    level = draft.chooser.randint(1, 4)
    return f"<h{level} {draft.note('heading', text)}>{escape(text)}</h{level}>"


def paragraph(draft: Draft) -> str:
    """Running text, at times with links in it."""
    parts = []
    for _ in range(draft.chooser.randint(1, 3)):
        parts.append(escape(draft.words.sentence(2, 9)))
        if draft.chance(0.4):
            parts.append(link(draft))
    return f"<p>{' '.join(parts)}</p>"


def link(draft: Draft) -> str:
    """A link."""
    text = draft.words.label(2)
    return f'<a href="#" {draft.note("link", text)}>{escape(text)}</a>'


def link_list(draft: Draft) -> str:
    """Links in a row or as a list."""
    links = [link(draft) for _ in range(draft.chooser.randint(2, 5))]
    if draft.chance(0.5):
        return f"<div>{draft.chooser.choice((' ', ' | ', ' - ')).join(links)}</div>"
    return "<ul>" + "".join(f"<li>{one}</li>" for one in links) + "</ul>"


def button(draft: Draft) -> str:
    """A button, at times an input of that kind."""
    text = draft.words.label(2)
    mark = draft.note("button", text)
    if draft.chance(0.2):
        return f'<input type="submit" {mark} value="{escape(text)}">'
    return f"<button {mark}>{escape(text)}</button>"


def buttons(draft: Draft) -> str:
    """One to four buttons."""
    gap = draft.chooser.choice(("", " ", "<br>"))
    return "<div>" + gap.join(button(draft) for _ in range(draft.chooser.randint(1, 4))) + "</div>"


def text_field(draft: Draft, filled: float = 0.35, attributes: str = "") -> str:
    """A label and a field, in a share of the cases filled, which may say what is wanted; ``attributes`` are its own."""
    label = draft.words.label(2)
    sort = draft.chooser.choice(("textbox", "textbox", "textbox", "password"))
    value = draft.words.value() if draft.chance(filled) else ""
    mark = draft.note(sort, value, group=label)
    hint = f'placeholder="{escape(draft.words.word())}"' if draft.chance(0.2) else ""
    width = draft.chooser.randint(50, 140)
    kind = "password" if sort == "password" else "text"
    box = f'<input type="{kind}" {mark} value="{escape(value)}" {hint} {attributes} style="width:{width}px">'
    joint = draft.chooser.choice(("<br>", "<br>", " "))
    return f"<div><label>{escape(label)}{draft.chooser.choice(('', ':'))}</label>{joint}{box}</div>"


def text_area(draft: Draft, filled: float = 0.6, longest: int = 6) -> str:
    """A field of several lines, in a share of the cases filled, with up to ``longest`` words."""
    value = draft.words.sentence(1, longest) if draft.chance(filled) else ""
    size = f"width:{draft.chooser.randint(60, 140)}px;height:{draft.chooser.randint(24, 50)}px"
    return f'<textarea {draft.note("textarea", value)} style="{size}">{escape(value)}</textarea>'


def checkboxes(draft: Draft, ticked: float = 0.4) -> str:
    """Boxes, a share of them ticked."""
    return _boxes(draft, _few(draft), ticked)


def many_checkboxes(draft: Draft) -> str:
    """Five boxes or more, none of them ticked; many in two columns, at times with codes for names."""
    count, longest = draft.chooser.randint(5, 12), draft.chooser.choice((0, 1, 2))
    columns = 2 if longest < 2 and (count > 8 or draft.chance(0.3)) else 1
    return f'<div style="columns:{columns}">{_boxes(draft, min(count, 8 * columns), 0, longest)}</div>'


def _boxes(draft: Draft, count: int, ticked: float, longest: int = 2) -> str:
    ticks = (_tick(draft, "checkbox", "", draft.chance(ticked), longest) for _ in range(count))
    return f"<div>{''.join(ticks)}</div>"


def radios(draft: Draft, chosen: bool = True) -> str:
    """Radio buttons, one of which may be on if ``chosen``."""
    count, group = _few(draft), f"g{len(draft.things)}"
    place_on = draft.chooser.randrange(-1, count) if chosen else -1
    return "<div>" + "".join(_tick(draft, "radio", group, place == place_on) for place in range(count)) + "</div>"


def _tick(draft: Draft, sort: str, group: str, on: bool, longest: int = 2) -> str:
    text = draft.words.label(longest)
    mark = draft.note(sort, text, group=group, on=on)
    end = "<br>" if draft.chance(0.85) else " "
    return f'<label><input type="{sort}" {mark} name="{group}" {"checked" if on else ""}>{escape(text)}</label>{end}'


def drop_down(draft: Draft) -> str:
    """A menu that is closed, with its first option chosen."""
    options = [draft.words.label(3) for _ in range(_few(draft))]
    mark = draft.note("select", options[0], group="\n".join(options))
    width = f"width:{draft.chooser.randint(60, 145)}px" if draft.chance(0.5) else ""
    return f'<select {mark} style="{width}">' + "".join(f"<option>{escape(o)}</option>" for o in options) + "</select>"


def open_list(draft: Draft) -> str:
    """A list of options that lies open, with one of them chosen."""
    return f'<div class="open">{_choices(draft, "option", "div", draft.chooser.randint(2, 6), 3)}</div>'


def spinner(draft: Draft) -> str:
    """A number and the two buttons that count it up and down."""
    value = str(draft.chooser.randint(-3, 12))
    shown = draft.note("number", value)
    field_mark = draft.things[-1].mark
    row = f'<input type="text" {shown} value="{value}" style="width:40px">'
    for text, step in zip(draft.chooser.choice(_STEPS), (1, -1), strict=True):
        row += f'<button {draft.note("step", text)} data-to="{field_mark}" data-adds="{step}">{text}</button>'
    return f"<div>{row}</div>"


def suggesting_field(draft: Draft) -> str:
    """A field that offers what begins as its text does: names that begin alike and end each in its own way."""
    label, start, offered = draft.words.label(2), draft.words.word()[:2], draft.view()
    mark = draft.note("textbox", group=label)
    fills = f'data-fills="{draft.things[-1].mark}" data-hides="{offered}"'
    ends = {word[-2:]: word for word in (draft.words.word() for _ in range(6))}
    names = [(start + word[1:]).capitalize() for word in ends.values()]
    role = draft.chooser.choice(("option", "link"))
    choices = "".join(f'<div role="{role}" {draft.note("option", name)} {fills}>{name}</div>' for name in names)
    box = f'<input type="text" {mark} data-suggests="{offered}" style="width:{draft.chooser.randint(60, 140)}px">'
    return f'<div>{escape(label)} {box}<div class="open" data-view="{offered}" hidden>{choices}</div></div>'


def table(draft: Draft) -> str:
    """A table whose first column names the rows."""
    columns, rows = draft.chooser.randint(2, 3), draft.chooser.randint(2, 5)
    stripes = "striped" if draft.chance(0.4) else ""
    body = []
    for _ in range(rows):
        cells = [draft.words.label(1), *[draft.words.value()[:12] for _ in range(columns - 1)]]
        marks = [draft.note("cell", cells[0]), *[draft.note("cell", cell, group=cells[0]) for cell in cells[1:]]]
        body.append("".join(f"<td {mark}>{escape(cell)}</td>" for mark, cell in zip(marks, cells, strict=True)))
    return f'<table class="{stripes}">' + "".join(f"<tr>{row}</tr>" for row in body) + "</table>"


def tabs(draft: Draft, numbered: bool = False) -> str:
    """Tabs, one of them chosen; they may be ``numbered``."""
    return f'<div class="tabs">{_choices(draft, "tab", "span", draft.chooser.randint(2, 4), 1, numbered)}</div>'


def _choices(draft: Draft, role: str, tag: str, count: int, longest: int, numbered: bool = False) -> str:
    chosen, found = draft.chooser.randrange(count), ""
    texts = draft.words.labels(count, longest) if numbered else [draft.words.label(longest) for _ in range(count)]
    for place, text in enumerate(texts):
        mark = draft.note(role, text, on=place == chosen)
        state = 'class="chosen" aria-selected="true"' if place == chosen else ""
        found += f'<{tag} role="{role}" {mark} {state}>{escape(text)}</{tag}>'
    return found


def patches(draft: Draft) -> str:
    """Boxes of different colours."""
    colours = draft.chooser.sample(sorted(COLOURS), draft.chooser.randint(1, 6))
    width, height = draft.chooser.randint(12, 60), draft.chooser.randint(12, 60)
    edge = draft.chooser.choice(("", "border:1px solid black;", "border-radius:4px;"))
    look = f"display:inline-block;margin:{draft.chooser.randint(1, 6)}px;width:{width}px;height:{height}px;{edge}"
    return "<div>" + "".join(
        f'<div {draft.note("box", colour=colour)} style="{look}background:{COLOURS[colour]}"></div>'
        for colour in colours
    ) + "</div>"  # fmt: skip


def figures(draft: Draft, most: int = 9) -> str:
    """Shapes, letters and digits of several colours and two sizes."""
    return "<div>" + " ".join(_figure(draft) for _ in range(draft.chooser.randint(1, most))) + "</div>"


def one_figure(draft: Draft) -> str:
    """One large shape, letter or digit."""
    name, colour = draft.chooser.choice(sorted(SHAPES)), draft.chooser.choice(VIVID)
    if draft.chance(0.3):
        return f"<div>{_sign(draft, colour, 'large', draft.chooser.randint(28, 44))}</div>"
    mark = draft.note("figure", shape=name, colour=colour, size="large")
    return f"<div>{shape(name, colour, draft.chooser.randint(24, 60), mark)}</div>"


def _figure(draft: Draft) -> str:
    colour = draft.chooser.choice(VIVID)
    size = draft.chooser.choice(("small", "large"))
    if draft.chance(0.4):
        return _sign(draft, colour, size, 11 if size == "small" else 20)
    name = draft.chooser.choice(sorted(SHAPES))
    mark = draft.note("figure", shape=name, colour=colour, size=size)
    return shape(name, colour, 10 if size == "small" else 20, mark)


def _sign(draft: Draft, colour: str, size: str, font_px: int) -> str:
    """A single letter or digit, as a figure."""
    name = draft.chooser.choice(("letter", "digit"))
    sign = draft.chooser.choice("ABCDEFGHJKLMNPQRTUVWXYabcdefghjkmnpqrstuvwxyz" if name == "letter" else "0123456789")
    mark = draft.note("figure", sign, shape=name, colour=colour, size=size)
    return f'<span {mark} style="font-size:{font_px}px;color:{COLOURS[colour]}">{sign}</span>'


def icons(draft: Draft) -> str:
    """Icons, at times on buttons."""
    names = draft.chooser.sample(sorted(ICONS), draft.chooser.randint(2, 6))
    size, frame = draft.chooser.randint(12, 22), draft.chance(0.4)
    drawn = [icon(name, size, draft.note("icon", shape=name)) for name in names]
    return "<div>" + " ".join(f"<button>{one}</button>" if frame else one for one in drawn) + "</div>"


def dialog(draft: Draft) -> str:
    """A box with a title bar, a cross to close it, a text and buttons."""
    title, text = draft.words.label(2), draft.words.sentence(3, 10)
    close = icon("close", 12, draft.note("icon", shape="close"))
    row = " ".join(button(draft) for _ in range(draft.chooser.randint(1, 2)))
    bar = f'<div class="bar"><b {draft.note("heading", title)}>{escape(title)}</b> {close}</div>'
    return f'<div class="dialog">{bar}<p>{escape(text)}</p>{row}</div>'


def messages(draft: Draft) -> str:
    """Rows of a name, a line of text and an icon or two."""
    rows = []
    names = draft.chooser.sample(sorted(ICONS), draft.chooser.randint(1, 3))
    for _ in range(draft.chooser.randint(2, 4)):
        name = draft.words.label(2)
        drawn = " ".join(icon(one, 12, draft.note("icon", shape=one, group=name)) for one in names)
        mark = draft.note("text", name)
        rows.append(
            f"<div class=row><b {mark}>{escape(name)}</b> {drawn}<br>{escape(draft.words.sentence(2, 4))}</div>"
        )
    return "".join(rows)


def numbers(draft: Draft, pressable: bool = False) -> str:
    """A grid of numbers, such as a month, which may be pressed if ``pressable``."""
    columns, first = draft.chooser.choice((5, 7)), draft.chooser.randint(0, 60)
    shown = [str(first + place) for place in range(columns * draft.chooser.randint(2, 4))]
    faces = [f'<a href="#" {draft.note("day", one)}>{one}</a>' if pressable else one for one in shown]
    cells = [f"<td>{face}</td>" for face in faces]
    rows = ["".join(cells[start : start + columns]) for start in range(0, len(cells), columns)]
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def gauge(draft: Draft) -> str:
    """A bar, a meter or a slider."""
    value = draft.chooser.randint(0, 10)
    tag = draft.chooser.choice(("progress max=10", "meter max=10", "input type=range max=10"))
    return f'<div><{tag} value="{value}" style="width:{draft.chooser.randint(50, 130)}px"></{tag.split()[0]}></div>'


def board(draft: Draft) -> str:
    """Drawn things all over the place, in a loose grid: far more of them than a page of blocks has."""
    pitch = draft.chooser.randint(13, 44)
    cells = [(column, row) for row in range(190 // pitch) for column in range(150 // pitch)]
    drawn = "".join(_pinned(draft, pitch, *cell) for cell in cells if draft.chance(0.8))
    return f'<div style="position:relative;height:190px">{drawn}</div>'


def _pinned(draft: Draft, pitch: int, column: int, row: int) -> str:
    size = draft.chooser.randint(9, pitch - 1)
    slack = pitch - size
    left, top = (pitch * at + draft.chooser.randint(0, slack) for at in (column, row))
    return f'<div style="position:absolute;left:{left}px;top:{top}px;line-height:1">{_drawing(draft, size)}</div>'


def _drawing(draft: Draft, size_px: int) -> str:
    """One thing of about this size."""
    told = "small" if size_px <= _SMALL_PX else "large" if size_px >= _LARGE_PX else ""
    colour = draft.chooser.choice(_INKS)
    match draft.chooser.choices(("shape", "sign", "icon", "tick"), (5, 2, 3, 1))[0]:
        case "shape":
            name = draft.chooser.choice(sorted(SHAPES))
            return shape(name, colour, size_px, draft.note("figure", shape=name, colour=colour, size=told))
        case "sign":
            return _sign(draft, colour, told, size_px)
        case "icon":
            name = draft.chooser.choice(sorted(ICONS))
            return icon(name, size_px, draft.note("icon", shape=name))
    on = draft.chance(0.5)
    mark = draft.note(sort := draft.chooser.choice(("checkbox", "radio")), on=on)
    return f'<input type="{sort}" {mark} {"checked" if on else ""} style="margin:0">'


def _few(draft: Draft) -> int:
    return draft.chooser.randint(2, 6)


BLOCKS: Sequence[tuple[Block, int]] = (
    (heading, 2), (paragraph, 4), (link_list, 2), (buttons, 5), (text_field, 5), (text_area, 1), (checkboxes, 3),
    (radios, 3), (drop_down, 2), (open_list, 1), (table, 2), (tabs, 2), (patches, 2), (figures, 2), (one_figure, 1),
    (icons, 2), (dialog, 1), (messages, 1), (numbers, 1), (gauge, 1),
)  # fmt: skip


def items(draft: Draft, count: int = 0) -> tuple[str, list[Thing]]:
    """So many links or buttons (two to five if 0) below each other or in a row, and what they are."""
    before, make = len(draft.things), draft.chooser.choice((link, link, button))
    gap = draft.chooser.choice(("<br>", "<br>", " "))
    html = gap.join(make(draft) for _ in range(count or draft.chooser.randint(2, 5)))
    return f"<div>{html}</div>", draft.things[before:]
