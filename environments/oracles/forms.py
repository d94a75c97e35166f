"""Forms: logins, lists to choose from, fields that a label names, dates from a calendar."""

from __future__ import annotations

from environments.oracles.turn import SCROLL_DOWN, Turn, first, solves
from environments.types import Action, Element, Kind

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_SEARCH_WORDS = ("Submit", "Search", "Go!")


@solves("login-user")
def _login_user(turn: Turn) -> Action | None:
    return _fill_login(turn) or turn.click("button", "Login")


@solves("login-user-popup")
def _login_user_popup(turn: Turn) -> Action | None:
    if popup := turn.find("button", "Cancel"):
        return Action.click(popup)
    return _fill_login(turn) or turn.click("button", "OK")


def _fill_login(turn: Turn) -> Action | None:
    user, password = turn.quoted
    return turn.fill(turn.all("textbox")[0], user) or turn.fill(turn.all("password")[0], password)


@solves("enter-password")
def _enter_password(turn: Turn) -> Action | None:
    text = turn.quoted[0]
    return first(turn.fill(field, text) for field in turn.all("password")) or turn.click("button", "Submit")


@solves("choose-list")
def _choose_list(turn: Turn) -> Action | None:
    choice = turn.said(r"Select (.+) from the list")
    shown = turn.all("select")[0]
    if shown.text == choice:
        return turn.click("button", "Submit")
    return turn.click("option", choice) if turn.all("option") else Action.click(shown)


@solves("multi-layouts", "multi-orderings")
def _multi_layouts(turn: Turn) -> Action | None:
    genre, director = turn.said(r"for (.+) movies"), turn.said(r"directed by (.+) from")
    wanted = {"Genre": genre, "Director": director, "Year": turn.said(r"year (\d+)")}
    wanted["Date"] = wanted["Year"]
    labels = [word for element in turn.all("text") for word in wanted if word in element.text]
    fields = zip(labels, turn.all("textbox"), strict=False)
    return first(turn.fill(field, wanted[label]) for label, field in fields) or _click_search(turn)


def _click_search(turn: Turn) -> Action | None:
    names = [("button", word) for word in _SEARCH_WORDS] + [("link", word) for word in _SEARCH_WORDS]
    if any(turn.clicked(*name) for name in names):
        return None
    found = first(Action.click(element) for name in names if (element := turn.find(*name)))
    return found or SCROLL_DOWN


@solves("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
def _choose_date(turn: Turn) -> Action | None:
    field = turn.all("textbox")[0]
    date = turn.said(r"Select (\S+) as the date")
    return turn.click("button", "Submit") if field.text == date else _pick_date(turn, field, date)


def _pick_date(turn: Turn, field: Element, date: str) -> Action:
    """Open the calendar of a field, turn its pages to the month, and click the day. ``date`` is MM/DD/YYYY."""
    month, day = int(date[:2]), str(int(date[3:5]))
    shown = [MONTHS.index(text.text) + 1 for text in turn.all("text") if text.text in MONTHS]
    if not shown:
        return Action.click(field)
    if shown[0] == month:
        return turn.reach("link", day)
    return turn.reach("link", "Prev" if month < shown[0] else "Next")


@solves("use-autocomplete", "use-autocomplete-nodelay")
def _use_autocomplete(turn: Turn) -> Action | None:
    begin, end = turn.quoted[0], turn.quoted[-1] if "ends with" in turn.instruction else ""
    field = turn.all("textbox")[0]
    fits = [item for item in turn.elements if item.text.startswith(begin) and item.text.endswith(end)]
    if turn.typed and field in fits and field.text != begin:
        return turn.click("button", "Submit")
    items = [item for item in fits if item.kind != "textbox"]
    if items:
        return Action.click(items[0])
    return SCROLL_DOWN if turn.typed else turn.fill(field, begin)


@solves("form-sequence-3")
def _form_sequence_3(turn: Turn) -> Action | None:
    choice = turn.said(r"Choose (.+) from the dropdown")
    if turn.elements[0].text == choice:
        return turn.click("button", turn.quoted[0])
    if turn.typed:
        return Action(Kind.PRESS, text="Enter")
    opened = turn.clicked("image", "button")
    return Action(Kind.TYPE, text=choice) if opened else turn.click("image", "button")


@solves("phone-book")
def _phone_book(turn: Turn) -> Action | None:
    name, what = turn.said(r"Find (\S+) in"), turn.said(r"their (phone|email|address)")
    if any(action.target and action.target[0] == "link" and action.target[1] not in "<>" for action in turn.taken):
        return None
    if not turn.find("heading", name):
        return turn.reach("link", ">")
    label = turn.find("text", f"{what.capitalize()}:")
    return SCROLL_DOWN if label is None else Action.click(turn.after(label)[0])
