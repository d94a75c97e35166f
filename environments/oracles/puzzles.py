"""Small puzzles: numbers to sort, judge or guess."""

from __future__ import annotations

import itertools
import re

from environments.oracles.turn import Turn, solves
from environments.types import Action, Kind

_GREATEST_GUESS = 9
_NUMBERS_TO_CLICK = 5


@solves("odd-or-even")
def _odd_or_even(turn: Turn) -> Action | None:
    numbers = [int(text.text) for text in turn.all("text") if re.fullmatch(r"-?\d+", text.text)]
    marked = turn.count("button", "Odd") + turn.count("button", "Even")
    if marked == len(numbers):
        return turn.click("button", "Submit")
    word = "Odd" if numbers[marked] % 2 else "Even"
    return Action.click([button for button in turn.all("button") if button.text == word][marked])


@solves("ascending-numbers")
def _ascending_numbers(turn: Turn) -> Action | None:
    if not turn.taken:
        return turn.click("text", "1")
    return Action.click(turn.all("image")[0]) if len(turn.taken) < _NUMBERS_TO_CLICK else None


@solves("generate-number")
def _generate_number(turn: Turn) -> Action | None:
    shown = turn.all("text")[0].text
    good = shown.isdigit() and _fits(int(shown), turn.instruction)
    return turn.click("button", "Submit") if good else turn.reach("button", "Generate")


def _fits(number: int, instruction: str) -> bool:
    if bound := re.search(r"(less|greater) than (\d)", instruction):
        return number < int(bound[2]) if bound[1] == "less" else number > int(bound[2])
    return number % 2 == ("odd number" in instruction)


@solves("guess-number")
def _guess_number(turn: Turn) -> Action | None:
    feedback = " ".join(text.text for text in turn.all("text"))
    if "Correct" in feedback:
        return None
    guesses = [int(text) for text in turn.typed]
    judged = bool(guesses) and re.search(rf"than {guesses[-1]}\b", feedback) is not None
    field = turn.all("textbox")[0]
    if guesses and not judged:
        return Action(Kind.PRESS, text="Enter")
    if field.text:
        return Action(Kind.PRESS, text="Backspace")
    return turn.fill(field, str(_between(guesses, "higher" in feedback)))


def _between(guesses: list[int], higher: bool) -> int:
    """The middle of what is left; ``higher`` is what the page says to the last guess."""
    low, high = 0, _GREATEST_GUESS
    answers = [later > guess for guess, later in itertools.pairwise(guesses)]
    for guess, more in zip(guesses, [*answers, higher], strict=False):
        low, high = (guess + 1, high) if more else (low, guess - 1)
    return (low + high) // 2
