"""Parts of exercises that are done by presses alone: a button, a link, a tab, what is drawn, numbers in their order."""

from __future__ import annotations

from collections.abc import Sequence

from environments.pages.blocks import (
    Draft,
    Thing,
    dialog,
    figures,
    icons,
    link_list,
    messages,
    numbers,
    one_figure,
    patches,
    tabs,
)
from environments.pages.figures import COLOURS, SHAPES
from environments.pages.forms import row_of_buttons
from environments.pages.job import Job, Move
from environments.pages.wordings import facts, kinds, single

_FOLLOW = ("follow {name}", 'go where "{name}" leads', "take the link {name}", 'visit "{name}"')
_TURN = ("turn to {name}", 'bring up "{name}"', "go to the tab {name}", 'show the page "{name}"')
_PRESS = ("press {name}", 'hit "{name}"', 'push the button "{name}"', "press the one that says {name}")
_TOUCH = (
    "press the {name}",
    "tap the {name}",
    "click the {name}",
    "go for the {name}",
    "choose the {name}",
    "press a {name}",
    "tap on a {name}",
    "pick any {name}",
)
_COUNT = (
    "say how many {name} there are", "count the {name}", "tell the number of {name}", "press the number of {name}",
    "say how often you see {name}", "choose by its button how many {name} you can see",
)  # fmt: skip
_NAME = (
    "say what is drawn", "name the figure", "tell what the picture shows", "choose the word for what is drawn",
    "press the button that says what the figure is", "tap the word that fits the drawing",
    "pick the button whose word describes what you see", "press what the shape is called",
    "hit the right name for the picture",
)  # fmt: skip
_COLOUR = (
    "say what colour it has", "name the colour of the figure", "choose the word for its colour",
    "press the button that says the colour of the drawing", "pick the word that describes its colour",
)  # fmt: skip
_SIGNS = ("letter", "digit")
_ALSO = {"letter": ("letter", "character"), "digit": ("digit", "number", "numeral"), "gray": ("gray", "grey"),
         "square": ("square", "rectangle")}  # fmt: skip
_LIKE = {"square": "rectangle", "rectangle": "square"}  # the one may be called the other
_CASES = (str.lower, str.title, str.title, str.upper)  # of answers
_IN_ORDER = ("press {names} in this order", "press one after the other: {names}", "first press {names}")
_EXTREME = {
    max: ("press the largest number", "take the highest"),
    min: ("press the smallest number", "take the lowest"),
}
_SORTED = {False: ("press the numbers from small to large", "go up through the numbers"),
           True: ("press the numbers from large to small", "go down through the numbers")}  # fmt: skip
_IN_ROW = ("press the {icon} sign of {name}", "take {icon} beside {name}", "use {icon} in the row of {name}")
_CLOSE = ("shut the window", "close what is open", "press the cross of the window")
_DAY = ("take day {name}", "press {name}", "choose the day {name}")


def press(job: Job) -> None:
    """One of several buttons is pressed."""
    job.press_one(lambda draft: row_of_buttons(draft, 2, 4), _PRESS)


def follow(job: Job) -> None:
    """One of several links is pressed."""
    job.press_one(link_list, _FOLLOW)


def turn(job: Job) -> None:
    """One of several tabs is pressed."""
    job.press_one(lambda draft: tabs(draft, numbered=True), _TURN)


def touch(job: Job) -> None:
    """One of several drawn things is pressed."""
    before, chooser = len(job.draft.things), job.draft.chooser
    found: list[tuple[str, Thing]] = []
    while not found:  # all of the figures may have a twin
        del job.draft.things[before:]
        block, drawn = job.made(chooser.choice((_crowd, _crowd, icons, patches)))
        found = single(drawn, chooser)
    name, chosen = chooser.choice(found)
    job.add(block, _TOUCH, [Move(mark=chosen.mark)], name=name)


def count(job: Job) -> None:
    """The button is pressed that says how many figures fit a description."""
    block, drawn = job.made(_crowd)
    chooser = job.draft.chooser
    wanted = chooser.choice(_descriptions(chooser.choice(drawn)))
    number = sum(wanted in _descriptions(thing) for thing in drawn)
    offered = [number, *chooser.sample([one for one in range(10) if one != number], chooser.randint(3, 5))]
    chooser.shuffle(offered)
    _answer(job, block, _COUNT, str(number), [str(one) for one in offered], wanted)


def _crowd(draft: Draft) -> str:
    return figures(draft, most=16)


def _descriptions(figure: Thing) -> list[str]:
    """What figures like one are called, when there may be several."""
    plurals = [f"{kind}es" if kind.endswith("ss") else f"{kind}s" for kind in kinds(figure)]
    return [told for kind in plurals for told in facts(figure, kind)]


def name(job: Job) -> None:
    """The button is pressed that names the one figure."""
    block, (figure,) = job.made(one_figure)
    _choose_word(job, block, _NAME, figure.shape, (*SHAPES, *_SIGNS))


def tell_colour(job: Job) -> None:
    """The button is pressed that names the colour of the one figure."""
    block, (figure,) = job.made(one_figure)
    _choose_word(job, block, _COLOUR, figure.colour, tuple(COLOURS))


def _choose_word(job: Job, block: str, wordings: Sequence[str], answer: str, words: Sequence[str]) -> None:
    """A block, and the button that says the answer, among some that say other words of its kind."""
    chooser = job.draft.chooser
    others = chooser.sample([word for word in words if word not in (answer, _LIKE.get(answer))], chooser.randint(2, 5))
    case = chooser.choice(_CASES)
    said = {word: case(chooser.choice(_ALSO.get(word, (word,)))) for word in (answer, *others)}
    _answer(job, block, wordings, said[answer], chooser.sample(list(said.values()), len(said)), "")


def in_order(job: Job) -> None:
    """Two or three buttons are pressed in the order that is told."""
    block, buttons = job.made(lambda draft: row_of_buttons(draft, 3, 5))
    chosen = job.draft.chooser.sample(buttons, job.draft.chooser.randint(2, 3))
    job.ordered = True
    job.add(block, _IN_ORDER, [Move(mark=one.mark) for one in chosen], names=", ".join(one.text for one in chosen))


def extreme(job: Job) -> None:
    """The largest or the smallest of several numbers is pressed."""
    block, cards = job.made(_cards)
    pick = job.draft.chooser.choice((max, min))
    chosen = pick(cards, key=lambda card: int(card.text))
    job.add(block, _EXTREME[pick], [Move(mark=chosen.mark)])


def ascending(job: Job) -> None:
    """Numbers are pressed in their order, or in the reverse of it."""
    block, cards = job.made(_cards)
    down = job.draft.chance(0.3)
    job.ordered = True
    ordered = sorted(cards, key=lambda card: int(card.text), reverse=down)
    job.add(block, _SORTED[down], [Move(mark=card.mark) for card in ordered])


def in_row(job: Job) -> None:
    """The icon in the row of a name is pressed."""
    block, things = job.made(messages)
    chosen = job.draft.chooser.choice([thing for thing in things if thing.sort == "icon"])
    job.add(block, _IN_ROW, [Move(mark=chosen.mark)], icon=chosen.shape, name=chosen.group)


def close(job: Job) -> None:
    """The cross of a window is pressed."""
    block, things = job.made(dialog)
    job.add(block, _CLOSE, [Move(mark=next(thing.mark for thing in things if thing.sort == "icon"))])


def day(job: Job) -> None:
    """A number of a month is pressed."""
    block, days = job.made(lambda draft: numbers(draft, pressable=True))
    chosen = job.draft.chooser.choice(days)
    job.add(block, _DAY, [Move(mark=chosen.mark)], name=chosen.text)


def _cards(draft: Draft) -> str:
    """Three to six different numbers, each on a card, which may be gone once it is pressed."""
    chooser, goes = draft.chooser, draft.chance(0.4)
    shown = chooser.sample(range(chooser.choice((10, 30, 100))), chooser.randint(3, 6))
    look = f"display:inline-block;margin:3px;padding:{chooser.randint(1, 7)}px;border:1px solid #777"
    cards = ""
    for number in shown:
        mark = draft.note("card", str(number))
        hides = f'data-hides="{draft.things[-1].mark}"' if goes else ""
        cards += f'<a href="#" {mark} {hides} style="{look}">{number}</a>'
    return f"<div>{cards}</div>"


def _answer(job: Job, block: str, wordings: Sequence[str], answer: str, offered: Sequence[str], name: str) -> None:
    """A block that asks for one of several answers, each of them a button."""
    row, buttons = job.made(
        lambda draft: " ".join(f"<button {draft.note('button', text)}>{text}</button>" for text in offered)
    )
    chosen = next(one for one in buttons if one.text == answer)
    job.add(f"{block}<div>{row}</div>", wordings, [Move(mark=chosen.mark)], name=name)
