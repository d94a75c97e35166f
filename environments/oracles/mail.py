"""The mail box: find an email by its sender, then delete, star, answer or forward it."""

from __future__ import annotations

import re

from environments.oracles.turn import SCROLL_DOWN, Turn, solves
from environments.types import Action

_NAME = r"\b[A-Z][\w-]*"
_SENDERS = (rf"({_NAME}) sent", rf"({_NAME}) wants h", rf"(?:by|from) ({_NAME})")  # who wrote, as forward-nl words it
_FIRST_WORDS = (
    "Find",
    "Forward",
    "Give",
    "Go",
    "I",
    "It",
    "Locate",
    "Look",
    "Navigate",
    "Please",
    "Search",
    "Send",
    "The",
)


@solves(
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-important",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
)
def _email_inbox(turn: Turn) -> Action | None:
    sender = turn.said(r"email by ([\w-]+)")
    if "trash icon" in turn.instruction:
        return _click_beside(turn, sender, "trash")
    if "star icon" in turn.instruction:
        return _click_beside(turn, sender, "star")
    if "forward" in turn.instruction:
        return _forward(turn, sender, turn.said(r"to ([\w-]+)\.$"))
    return _reply(turn, sender, turn.quoted[0])


@solves("email-inbox-forward-nl")
def _forward_in_other_words(turn: Turn) -> Action | None:
    sender = next(match[1] for pattern in _SENDERS if (match := re.search(pattern, turn.instruction)))
    names = re.findall(_NAME, turn.instruction)
    return _forward(turn, sender, next(name for name in names if name not in (sender, *_FIRST_WORDS)))


def _click_beside(turn: Turn, sender: str, icon: str) -> Action | None:
    """Click the icon in the row of a sender."""
    if turn.clicked("image", icon):
        return None
    name = turn.find("link", sender)
    if name is None:
        return SCROLL_DOWN
    found = next((element for element in turn.after(name) if element.text == icon), None)
    return SCROLL_DOWN if found is None else Action.click(found)


def _reply(turn: Turn, sender: str, text: str) -> Action | None:
    areas = turn.all("textarea")
    if areas:
        return turn.fill(areas[0], text) or turn.click("image", "send-reply")
    return turn.click("link", sender) or turn.click("link", "Reply")


def _forward(turn: Turn, sender: str, to: str) -> Action | None:
    fields = turn.all("textbox")
    if fields:
        return turn.fill(fields[0], to) or turn.click("image", "send-forward")
    return turn.click("link", sender) or turn.click("link", "Forward")
