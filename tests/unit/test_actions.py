"""Actions as an agent writes them: reading is the inverse of writing, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.types import Action, ActionError, Element, Kind

texts = st.text(st.characters(exclude_categories=["Cs"]))
words = st.from_regex(r"\A[^\s\"]+\Z")
coordinates = st.integers(0, 9999)
clicks = st.builds(
    Action,
    st.just(Kind.CLICK),
    point=st.tuples(coordinates, coordinates),
    target=st.tuples(words, texts),
)
actions = st.one_of(
    clicks,
    st.builds(Action, st.just(Kind.TYPE), text=texts),
    st.builds(Action, st.just(Kind.PRESS), text=words),
    st.builds(Action, st.just(Kind.SCROLL), text=st.sampled_from(["up", "down"])),
    st.sampled_from([Action(Kind.WAIT), Action(Kind.COMPLETE)]),
)


@given(actions)
def test_reading_is_the_inverse_of_writing(action: Action) -> None:
    assert Action.parse(str(action)) == action


@given(actions)
def test_an_action_is_one_line(action: Action) -> None:
    assert "\n" not in str(action)


@given(texts)
def test_any_text_is_an_action_or_an_action_error(text: str) -> None:
    try:
        action = Action.parse(text)
    except ActionError:
        return
    assert Action.parse(str(action)) == action


def test_a_click_repeats_the_line_of_its_element() -> None:
    element = Element("button", 'say "hi"', (10, 20, 5, 4), ("focus",))
    assert element.line == 'focus button "say \\"hi\\"" 12,22'
    assert str(Action.click(element)) == f"click {element.label}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no action"),
        ("press", "a key is one word"),
        ("press Page Down", "a key is one word"),
        ("tap 3,4", "is no action; the kinds are click, type"),
        ("click 3,4", "is no action"),
        ('click button "OK" 3,4 please', "is no action"),
        ('click button "OK" -3,4', "is no action"),
        ("type hello", "is not a quoted string"),
        ("type 5", "is not a quoted string"),
        ("scroll left", "the direction must be one of"),
        ("wait 3", "takes no text"),
        ("complete now", "takes no text"),
    ],
)
def test_what_is_no_action_is_refused_with_the_rule(text: str, message: str) -> None:
    with pytest.raises(ActionError, match=message):
        Action.parse(text)


def test_only_a_click_has_a_point() -> None:
    with pytest.raises(ActionError, match="only a click, has a point"):
        Action(Kind.WAIT, point=(1, 2))
    with pytest.raises(ActionError, match="only a click, has a point"):
        Action(Kind.CLICK, point=(1, 2))
