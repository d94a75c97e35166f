"""Parts of exercises in which what is wanted lies within something that opens: sections, tabs, menus, trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from random import Random

from environments.pages.blocks import Draft, Thing, items
from environments.pages.job import SOMEWHERE, Job, Move

_WITHIN = ('open "{view}" and press {name}', "press {name} under {view}", "go to {view}, then take {name}")
_IN_PARTS = (
    *SOMEWHERE, 'open the parts below until the {sort} "{name}" is seen, and press it',
    'the {sort} {name} lies in one of these parts: unfold them, then press it',
)  # fmt: skip
_BEHIND_TABS = (
    *SOMEWHERE, 'look behind the tabs for the {sort} "{name}" and press it',
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
    fill = chooser.choice((items, _prose))
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
