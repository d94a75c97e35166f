"""What an instruction quotes: which paths lack it, that they do not count as solved, and what is learnt of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_built import COMPLETE, MAIL, NAME, SUBMIT, click, demonstration, trajectory, typed

from environments.types import Action, Element, End
from tasks.acceptance import Bar, Rejection, rejection
from tasks.generators import Generator
from tasks.quoted import missing
from tasks.records import Origin, Trajectory
from tasks.reward_data import reward_rows

BAR = Bar(0.5, quoted=True)
SHOWN = (NAME, Element("text", "Dear  ANN,\nhello", (0, 0, 9, 9)), SUBMIT)


@pytest.mark.parametrize(
    ("instruction", "actions", "elements", "lacking"),
    [
        ('Enter "Ann" and submit', (click(NAME), typed("Ann")), (NAME, SUBMIT), []),
        ('Enter "Ann" and submit', (click(NAME), typed("ann ")), (NAME, SUBMIT), []),
        ('Enter "Ann" and submit', (click(NAME), typed("An")), (NAME, SUBMIT), ["Ann"]),
        ("Enter “Ann” and submit", (click(SUBMIT),), (NAME, SUBMIT), ["Ann"]),
        ('Find "dear ann" and press "Submit"', (click(SUBMIT),), SHOWN, []),
        ('Starts with "An" and ends with "llo"', (click(SUBMIT),), SHOWN, []),
        ('Open "Mail", then "Post"', (click(MAIL),), (MAIL, SUBMIT), ["Post"]),
        ('Click on a "checkbox"', (click(MAIL),), (MAIL, SUBMIT), []),  # a kind of element
        ("Enter Ann and submit", (click(SUBMIT),), (NAME, SUBMIT), []),  # nothing is quoted
        ('Enter "" and submit', (click(SUBMIT),), (NAME, SUBMIT), []),
        ('Enter "Ann" and submit', (click(SUBMIT),), (), []),  # no list says what the screens show
    ],
)
def test_a_path_lacks_what_is_quoted_and_neither_typed_nor_shown(
    instruction: str, actions: tuple[Action, ...], elements: tuple[Element, ...], lacking: list[str]
) -> None:
    path = trajectory(*actions, instruction=instruction, elements=elements).episode
    assert missing(replace(path, last=replace(path.last, elements=elements))) == lacking


def test_what_only_the_last_screen_shows_was_seen() -> None:
    path = trajectory(click(SUBMIT), instruction='Bring up "hello"', elements=(SUBMIT,)).episode
    assert missing(replace(path, last=replace(path.last, elements=SHOWN))) == []


SENT = trajectory(click(NAME), click(SUBMIT), scores={1: 0.8}, end=End.WORLD)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (SENT, Rejection.UNQUOTED),
        (trajectory(click(NAME), typed("Ann"), click(SUBMIT)), None),
        (trajectory(click(NAME), outcome=0.1), Rejection.LOW_OUTCOME),
        (demonstration(click(SUBMIT)), None),  # the world says that it is right
    ],
)
def test_such_a_path_is_not_solved_however_much_its_end_is_liked(path: Trajectory, reason: Rejection | None) -> None:
    assert rejection(path, BAR) is reason
    assert rejection(SENT, replace(BAR, quoted=False)) is None


def test_its_end_and_what_closed_the_world_are_taught_as_wrong() -> None:
    """Not the steps before, which may be right; nor what was cut short."""
    said = trajectory(click(MAIL), COMPLETE, seed=1, shade=20)
    cut = trajectory(click(MAIL), seed=2, end=End.PRUNED, outcome=None, shade=40)
    rows = reward_rows([SENT, said, cut], bar=BAR, max_negatives=3, seed=0)
    assert [(row.id.split("/")[2], row.step, row.action, row.label, row.generator) for row in rows] == [
        ("0", 1, str(click(SUBMIT)), False, Generator.UNQUOTED),
        ("0", 2, "complete", False, Generator.UNQUOTED),
        ("1", 1, "complete", False, Generator.UNQUOTED),
    ]
    assert not reward_rows([SENT, said, cut], bar=BAR, max_negatives=3, seed=0, without=[Generator.UNQUOTED])
    off = reward_rows([SENT], bar=replace(BAR, quoted=False), max_negatives=3, seed=0)
    assert Generator.UNQUOTED not in {row.generator for row in off}


@pytest.mark.parametrize("origin", [one for one in Origin if one not in (Origin.SEARCH, Origin.CONTINUATION)])
def test_only_what_was_explored_teaches_so(origin: Origin) -> None:
    """Of what was shown, played otherwise on purpose or evaluated, the world says what it is worth."""
    rows = reward_rows([replace(SENT, origin=origin)], bar=BAR, max_negatives=3, seed=0)
    assert Generator.UNQUOTED not in {row.generator for row in rows}
