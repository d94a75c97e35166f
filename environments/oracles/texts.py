"""Pages that ask for a text: given in the instruction, found on the screen, or worked out from it."""

from __future__ import annotations

import operator
import re

from environments.oracles.turn import SCROLL_DOWN, Turn, first, solves
from environments.types import Action, Kind

_OPERATORS = {"+": operator.add, "-": operator.sub, "x": operator.mul}
_SCROLLS_TO_AN_END = 6  # more than the longest text of scroll-text-2 needs from its middle


def _submit(turn: Turn, text: str) -> Action | None:
    """Put a text into the first text box and submit it."""
    return turn.fill(turn.all("textbox")[0], text) or turn.click("button", "Submit")


@solves("enter-text", "enter-text-dynamic")
def _enter_text(turn: Turn) -> Action | None:
    return _submit(turn, turn.quoted[0])


@solves("enter-text-2")
def _enter_text_2(turn: Turn) -> Action | None:
    word = turn.quoted[0]
    return _submit(turn, word.upper() if "upper case" in turn.instruction else word.lower())


@solves("text-transform")
def _text_transform(turn: Turn) -> Action | None:
    return _submit(turn, "".join(element.text for element in turn.all("text")))


@solves("find-word")
def _find_word(turn: Turn) -> Action | None:
    words = turn.all("text")[0].text.split()
    return _submit(turn, _letters(words[int(turn.said(r"(\d+)\w\w word")) - 1]))


@solves("scroll-text")
def _scroll_text(turn: Turn) -> Action | None:
    return _submit(turn, _letters(turn.all("textarea")[0].text.split()[-1]))


def _letters(word: str) -> str:
    return re.sub(r"[^a-zA-Z]", "", word)


@solves("scroll-text-2")
def _scroll_text_2(turn: Turn) -> Action | None:
    direction = "down" if turn.said(r"to the (bottom|top)") == "bottom" else "up"
    scrolls = sum(action.kind is Kind.SCROLL for action in turn.taken)
    return Action(Kind.SCROLL, text=direction) if scrolls < _SCROLLS_TO_AN_END else turn.click("button", "Submit")


@solves("copy-paste")
def _copy_paste(turn: Turn) -> Action | None:
    return _submit(turn, turn.all("textarea")[0].text)


@solves("copy-paste-2")
def _copy_paste_2(turn: Turn) -> Action | None:
    return _submit(turn, turn.all("textarea")[int(turn.said(r"the (\d)\w\w text")) - 1].text)


@solves("enter-date")
def _enter_date(turn: Turn) -> Action | None:
    month, day, year = turn.said(r"Enter (\S+) as the date").split("/")
    return _fill_parts(turn, f"{month}{day}{year}", f"{year}-{month}-{day}") or turn.click("button", "Submit")


@solves("enter-time")
def _enter_time(turn: Turn) -> Action | None:
    hour, minute = turn.said(r"Enter (\d+:\d+)").split(":")
    half = turn.said(r"([AP]M)")
    shown = f"{int(hour) % 12 + 12 * (half == 'PM'):02}:{minute}"
    return _fill_parts(turn, f"{int(hour):02}{minute}{half}", shown) or turn.click("button", "Submit")


def _fill_parts(turn: Turn, text: str, shown: str) -> Action | None:
    """Type a date or time from its first part on: a click may focus any of the three."""
    field = turn.all("textbox")[0]
    if field.text == shown:
        return None
    if "focus" not in field.states:
        return Action.click(field)
    backs = sum(action.kind is Kind.PRESS for action in turn.taken)
    return Action(Kind.PRESS, text="ArrowLeft") if backs < 2 else Action(Kind.TYPE, text=text)


@solves("read-table")
def _read_table(turn: Turn) -> Action | None:
    return _submit(turn, _value(turn, turn.said(r"value of (.+) into")))


@solves("read-table-2")
def _read_table_2(turn: Turn) -> Action | None:
    labels = [element.text[:-1] for element in turn.all("text") if element.text.endswith(":")]
    fields = zip(labels, turn.all("textbox"), strict=True)
    return first(turn.fill(field, _value(turn, label)) for label, field in fields) or turn.click("button", "Submit")


def _value(turn: Turn, key: str) -> str:
    """What stands beside a key in a table."""
    cells = [element.text for element in turn.all("text")]
    return cells[cells.index(key) + 1]


@solves("simple-arithmetic")
def _simple_arithmetic(turn: Turn) -> Action | None:
    left, sign, right = _problem(turn)[:3]
    return _submit(turn, str(_OPERATORS[sign](int(left), int(right))))


@solves("simple-algebra")
def _simple_algebra(turn: Turn) -> Action | None:
    left, sign, right, _, total = _problem(turn)
    if left == "x":
        answer = int(total) - int(right) if sign == "+" else int(total) + int(right)
    else:
        answer = int(total) - int(left) if sign == "+" else int(left) - int(total)
    return _submit(turn, str(answer))


def _problem(turn: Turn) -> list[str]:
    """The words of the equation on the screen."""
    return turn.all("text")[0].text.split()


@solves("visual-addition")
def _visual_addition(turn: Turn) -> Action | None:
    return _submit(turn, str(sum(image.text == "addition-block" for image in turn.all("image"))))


@solves("sign-agreement")
def _sign_agreement(turn: Turn) -> Action | None:
    if "cancel button" in turn.instruction:
        return turn.click("button", "Cancel")
    field = turn.all("textbox")[0]
    if "disabled" in field.states:
        return SCROLL_DOWN
    return turn.fill(field, turn.quoted[0]) or turn.click("button", turn.quoted[1])


@solves("terminal")
def _terminal(turn: Turn) -> Action | None:
    lines = [element.text for element in turn.all("text")]
    if not turn.taken:
        return Action.click(turn.all("text")[-1])
    if not turn.typed:
        return Action(Kind.TYPE, text="ls\n")
    if len(turn.typed) > 1:
        return None
    files = lines[lines.index("ls") + 1].split()
    return Action(Kind.TYPE, text=f"rm {_file(turn.instruction, files)}\n")


def _file(instruction: str, files: list[str]) -> str:
    """The first file that ends as the instruction says, or has no extension."""
    extension = re.search(r"extension (\.\S+)", instruction)
    return next(file for file in files if (file.endswith(extension[1]) if extension else "." not in file))
