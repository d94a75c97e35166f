"""A random page: a style, a column of blocks, and at times a band of text above it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from environments.pages.blocks import BLOCKS, Block, Draft, Thing, board
from environments.pages.words import Words

_FONTS = ("Arial", "Arial", "Arial", "Arial", "Times New Roman", "Courier New", "Liberation Sans Narrow", "DejaVu Sans")
_LIGHT = ("#ffffff", "#ffffff", "#ffffff", "#f4f4f4", "#fffbe8", "#eaf4ff", "#f0fff0")
_DARK = ("#202124", "#000000", "#1b2a3a", "#2d1f33")
_ACCENTS = ("#0b57d0", "#007fff", "#d93025", "#188038", "#7b1fa2", "#e8710a", "#444444")
_BANDS = ("#ffd54a", "#ffff66", "#cce4ff", "#dddddd", "#333333", "#0b57d0", "#ffffff")


@dataclass(frozen=True, slots=True)
class Page:
    """The HTML of a page's body, and what is on it. Not all of it need fit on the screen."""

    html: str
    things: tuple[Thing, ...]


def random_page(seed: int, lexicon: Sequence[str], boards: float = 0.3) -> Page:
    """The page of a seed: the same for the same seed and words. A share of pages are ``boards`` of drawn things."""
    chooser = random.Random(seed)
    draft = Draft(chooser, Words(lexicon, chooser))
    if draft.chance(boards):
        return dressed(draft, [board(draft)])
    return dressed(draft, [block(draft) for block in some_blocks(draft, draft.chooser.randint(1, 5))])


def dressed(draft: Draft, blocks: Sequence[str]) -> Page:
    """The page of a draft's blocks, one below the other, in a random style."""
    column = "".join(f'<div class="block">{block}</div>' for block in blocks)
    return Page(f"<style>{_style(draft)}</style>{_band(draft)}{column}", tuple(draft.things))


def some_blocks(draft: Draft, count: int) -> list[Block]:
    """So many kinds of blocks, common ones more often."""
    blocks, weights = zip(*BLOCKS, strict=True)
    return draft.chooser.choices(blocks, weights, k=count)


def _band(draft: Draft) -> str:
    """A line or two above the rest, such as a page's own advice."""
    if draft.chance(0.5):
        return ""
    ground = draft.chooser.choice(_BANDS)
    ink = "white" if ground in ("#333333", "#0b57d0") else "black"
    height = draft.chooser.choice(("auto", "50px", "40px"))
    look = f"background:{ground};color:{ink};min-height:{height};padding:{draft.chooser.randint(0, 4)}px"
    return f'<div style="{look}">{escape(draft.words.sentence(3, 14))}</div>'


def _style(draft: Draft) -> str:
    choose = draft.chooser
    dark = draft.chance(0.15)
    ground, ink = (choose.choice(_DARK), "#e8e8e8") if dark else (choose.choice(_LIGHT), "#000000")
    size, accent = choose.choice((9, 10, 10, 11, 12, 13, 13.3, 14, 16)), choose.choice(_ACCENTS)
    rules = [
        f"body{{margin:{choose.randint(0, 6)}px;background:{ground};color:{ink};"
        f"font:{size}px {choose.choice(_FONTS)};line-height:{choose.choice(('normal', '1.15', '1.4'))}}}",
        f".block{{margin:{choose.randint(1, 9)}px {choose.randint(0, 8)}px;text-align:{_align(draft)}}}",
        f"h1,h2,h3,h4{{margin:2px 0;font-size:{choose.choice((1, 1.2, 1.5))}em}}",
        "p{margin:2px 0} ul{margin:2px 0;padding-left:16px}",
        f"td{{border:{choose.randint(0, 1)}px solid #999;padding:{choose.randint(0, 3)}px}}",
        "table{border-collapse:collapse} .striped tr:nth-child(2n){background:#8884}",
        f".chosen{{background:{accent};color:white}} .open{{border:1px solid #777}}",
        f".tabs span{{display:inline-block;padding:{choose.randint(1, 5)}px;border:1px solid #999}}",
        ".fold::before{content:'▸ '} .fold.chosen::before{content:'▾ '}",
        f".dialog{{border:1px solid #888;padding:4px;box-shadow:{choose.choice(('none', '2px 2px 4px #8888'))}}}",
        f".bar{{background:{choose.choice(('#ddd', accent))};color:{choose.choice(('black', 'white'))}}}",
        ".row{border-bottom:1px solid #bbb;padding:2px} [hidden]{display:none!important}",
        f"a{{color:{'#8ab4f8' if dark else choose.choice(('blue', accent))}}}",
    ]
    return "".join(rules) + _controls(draft, accent)


def _controls(draft: Draft, accent: str) -> str:
    """The look of buttons and fields: the browser's own, or a site's."""
    choose = draft.chooser
    if draft.chance(0.5):
        return f"button,[type=submit],input,select{{font-size:{choose.choice(('inherit', '13.3px', '11px'))}}}"
    ground, ink = choose.choice(((accent, "white"), ("#eee", "black"), ("white", accent), ("#555", "white")))
    return (
        f"button,[type=submit]{{background:{ground};color:{ink};font:inherit;border:1px solid {accent};"
        f"border-radius:{choose.choice((0, 3, 8))}px;padding:{choose.randint(0, 8)}px {choose.randint(2, 14)}px}}"
        f"input,select,textarea{{font:inherit;border:1px solid #999;padding:{choose.randint(0, 4)}px}}"
    )


def _align(draft: Draft) -> str:
    return draft.chooser.choice(("left", "left", "left", "center", "right"))
