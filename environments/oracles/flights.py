"""FlightWoB: an airline's form of two cities, dates, passengers and a cabin. The instruction is a JSON object."""

from __future__ import annotations

import json
import re

from environments.oracles.forms import MONTHS
from environments.oracles.turn import Turn, first, solves
from environments.types import Action, Element, Kind

_SIDES = ("Departure", "Destination")
_LARGEST = {"Portland": "Portland, OR"}  # of the cities of a name


@solves("flight.Alaska", "flight.Alaska-auto")
def _alaska(turn: Turn) -> Action | None:
    asked = json.loads(turn.instruction)
    single = "One-way" in asked.values() or "one way" in asked.values()
    if calendar := next((text for text in turn.all("text") if re.fullmatch(r"[A-Z]\w+ \d{4}", text.text)), None):
        trip = "Departure" if turn.find("text", "departure") else "Returning"
        return _pick_day(turn, calendar, asked[f"{trip} Day"], asked.get(f"{trip} Month", 0))
    if not turn.find("text", "From"):  # scrolled to the button below: all is filled in
        return turn.click("button", "Find Flights")
    fields = turn.all("textbox")
    return (
        (turn.switch_on("checkbox", "One-way") if single else None)
        or first(_city(turn, field, asked[f"{side} City"]) for field, side in zip(fields, _SIDES, strict=False))
        or first(Action.click(field) for field in fields[2 : 3 if single else 4] if not field.text)
        or _passengers(turn, asked.get("Passengers", 1))
        or (_first_class(turn) if asked.get("Seat type") == "First" else None)
        or turn.click("button", "Find Flights")
    )


def _city(turn: Turn, field: Element, city: str) -> Action | None:
    """Type the beginning of a city's name, and take what the site offers."""
    full = _LARGEST.get(city, f"{city},")
    if field.text.startswith(full):
        return None
    offered = next((text for text in turn.all("text") if text.text.startswith(full)), None)
    return Action.click(offered) if offered else turn.fill(field, city) or Action(Kind.WAIT)


def _pick_day(turn: Turn, shown: Element, day: int, month: int) -> Action:
    """Turn an open calendar to the month, click the day, and close it."""
    if MONTHS.index(shown.text.split()[0]) + 1 < month:
        return Action.click(turn.after(shown)[0])
    chosen = turn.find("link", str(day))
    if chosen is not None and "focus" in chosen.states:
        return turn.reach("text", "Done")
    return turn.reach("link", str(day))


def _passengers(turn: Turn, wanted: int) -> Action | None:
    plus = turn.find("text", "+")
    if plus is None:
        return None
    shown = int(turn.elements[turn.elements.index(plus) - 1].text)
    return Action.click(plus) if shown < wanted else None


def _first_class(turn: Turn) -> Action | None:
    return (
        turn.switch_on("radio", "First")
        if turn.find("radio", "First")
        else turn.click("heading", "More search options")
    )
