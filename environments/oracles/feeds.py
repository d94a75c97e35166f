"""Pages of many entries: find the right one, and the button that belongs to it."""

from __future__ import annotations

import itertools
import re

from environments.oracles.turn import SCROLL_DOWN, Turn, solves
from environments.types import Action, Element, Kind

_RESULTS_A_PAGE = 3
_ICONS = {"Reply": "reply", "Retweet": "retweet", "Like": "like"}


@solves("search-engine")
def _search_engine(turn: Turn) -> Action | None:
    search = turn.fill(turn.all("textbox")[0], turn.quoted[0]) or turn.click("button", "Search")
    if search is not None:
        return search
    page, place = divmod(int(turn.said(r"the (\d)\w\w search result")) - 1, _RESULTS_A_PAGE)
    results = [link for link in turn.all("link") if re.fullmatch(r"[A-Z][a-z]+", link.text)]
    to_page = turn.click("link", str(page + 1)) if page else None
    if to_page is not None or any(action.target in {("link", one.text) for one in results} for action in turn.taken):
        return to_page
    return Action.click(results[place])


@solves("social-media")
def _social_media(turn: Turn) -> Action | None:
    user, label = turn.said(r"user (@\S+),"), turn.quoted[0]
    icon = _ICONS.get(label, "more")
    listed = next((element for element in turn.elements if element.text.startswith(label)), None)
    if any(action.target is not None and action.target[1].startswith((label, label.lower())) for action in turn.taken):
        return None
    if listed is not None:
        return Action.click(listed)
    icons = [] if turn.clicked("image", icon) else _icons(turn, user, icon)
    return Action.click(icons[0]) if icons else SCROLL_DOWN


@solves("social-media-all", "social-media-some")
def _social_media_many(turn: Turn) -> Action | None:
    user, icon = turn.said(r"by (@\S+) and"), turn.quoted[0].lower()
    number = re.search(r"on (\d+) post", turn.instruction)
    enough = number is not None and turn.count("image", icon) == int(number[1])
    icons = [] if enough or turn.clicked("button", "Submit") else _icons(turn, user, icon)
    return Action.click(icons[0]) if icons else turn.click("button", "Submit")


def _icons(turn: Turn, user: str, icon: str) -> list[Element]:
    """The icons of a name in the posts of a user, as far as both are on the screen."""
    found, author = [], ""
    for element in turn.elements:
        author = element.text if element.text.startswith("@") else author
        if author == user and (element.kind, element.text) == ("image", icon):
            found.append(element)
    return found


@solves("buy-ticket")
def _buy_ticket(turn: Turn) -> Action | None:
    times = [re.findall(r"\d+", text.text) for text in turn.all("text") if re.fullmatch(r"\d+h \d+m", text.text)]
    buttons = turn.all("button")
    prices = [int(button.text.partition("$")[2]) for button in buttons]
    minutes = [60 * int(hours) + int(rest) for hours, rest in times]
    worth = minutes if "duration" in turn.instruction else prices
    best = (max if re.search("longest|most", turn.instruction) else min)(worth)
    return None if turn.taken else Action.click(buttons[worth.index(best)])


@solves("order-food")
def _order_food(turn: Turn) -> Action | None:
    kind, names, orders = _food(turn)
    if sum(action.target is not None and action.target[1] == "+" for action in turn.taken) == orders:
        return turn.click("button", "Order!")
    for dish in turn.all(kind):
        row = itertools.takewhile(lambda element: element.text != "+", turn.after(dish))
        if dish.text in names and (kind == "image" or not any(element.text.isdigit() for element in row)):
            plus = next((element for element in turn.after(dish) if element.text == "+"), None)
            return SCROLL_DOWN if plus is None else Action.click(plus)
    return SCROLL_DOWN


def _food(turn: Turn) -> tuple[str, list[str], int]:
    """What marks the dishes to order (kind, texts), and how many orders it takes."""
    if "items that are" in turn.instruction:
        return "image", [turn.said(r"are (\S+)")], int(turn.said(r"Order (\d)"))
    names = turn.said(r"each item: (.+)").split(", ")
    return "text", names, len(names)


@solves("stock-market")
def _stock_market(turn: Turn) -> Action | None:
    limit = float(turn.said(r"less than \$([\d.]+)\.$"))
    prices = [float(text.text[1:]) for text in turn.all("text") if re.fullmatch(r"\$[\d.]+", text.text)]
    if turn.clicked("button", "Buy"):
        return None
    return turn.click("button", "Buy") if prices and prices[0] < limit else Action(Kind.WAIT)
