"""Actions as an agent writes them: reading is the inverse of writing, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.types import Action, ActionError, Element, Kind

texts = st.text(st.characters(exclude_categories=["Cs"]))
words = st.from_regex(r"\A[^\s\"]+\Z")
coordinates = st.integers(0, 9999)
directions = st.sampled_from(["up", "down", "left", "right"])
points = st.tuples(coordinates, coordinates)
targets = st.tuples(words, texts)
actions = st.one_of(
    st.builds(Action, st.sampled_from([Kind.CLICK, Kind.LONG_PRESS]), points, targets),
    st.builds(Action, st.just(Kind.SWIPE), points, targets, directions),
    st.builds(Action, st.just(Kind.TYPE), text=texts),
    st.builds(Action, st.just(Kind.PRESS), text=words),
    st.builds(Action, st.just(Kind.SCROLL), text=directions),
    st.sampled_from([Action(Kind.WAIT), Action(Kind.COMPLETE)]),
)


@given(actions)
def test_reading_is_the_inverse_of_writing(action: Action) -> None:
    assert Action.parse(str(action)) == action


@given(actions)
def test_an_action_is_one_line(action: Action) -> None:
    assert "\n" not in str(action)


@given(actions, st.sampled_from(["", "\n", "\ncomplete", "\n\n61,88"]))
def test_an_answer_is_read_as_the_action_of_its_first_line(action: Action, rest: str) -> None:
    assert Action.begun(str(action) + rest) == action


@given(actions.filter(lambda action: action.point is not None or action.kind is Kind.TYPE), texts)
def test_what_an_answer_says_after_its_action_is_left_out(action: Action, rest: str) -> None:
    assert Action.begun(f"{action} {rest}") == action


def test_a_place_ends_where_its_digits_end() -> None:
    assert Action.begun('click radio "UUYJ22" 17,61"17,97" 17,97') == Action.parse('click radio "UUYJ22" 17,61')


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
    ("text", "action"),
    [
        ('click button "OK" 3,4', Action(Kind.CLICK, (3, 4), ("button", "OK"))),
        ('long_press text "Milk, 2 l" 12,340', Action(Kind.LONG_PRESS, (12, 340), ("text", "Milk, 2 l"))),
        ('swipe left text "Milk" 12,340', Action(Kind.SWIPE, (12, 340), ("text", "Milk"), "left")),
        ('type "a b"', Action(Kind.TYPE, text="a b")),
        ("press Back", Action(Kind.PRESS, text="Back")),
        ("scroll up", Action(Kind.SCROLL, text="up")),
        ("scroll right", Action(Kind.SCROLL, text="right")),
        ("wait", Action(Kind.WAIT)),
        ("complete", Action(Kind.COMPLETE)),
    ],
)
def test_each_kind_has_one_wording(text: str, action: Action) -> None:
    assert Action.parse(text) == action
    assert str(action) == text


def test_a_touch_moves_to_another_element() -> None:
    element = Element("text", "Tea", (0, 10, 20, 4))
    assert str(Action.parse('swipe up text "Milk" 12,340').on(element)) == 'swipe up text "Tea" 10,12'
    assert Action.parse('click text "Milk" 12,340').on(element) == Action.click(element)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no action"),
        ("press", "a key is one word"),
        ("press Page Down", "a key is one word"),
        ("tap 3,4", "is no action; the kinds are click, long_press, swipe, type"),
        ("click 3,4", "is no action"),
        ('click button "OK" 3,4 please', "is no action"),
        ('click button "OK" -3,4', "is no action"),
        ("type hello", "is not a quoted string"),
        ("type 5", "is not a quoted string"),
        (r'type "\ud83d"', "has half a pair of code units"),
        ("scroll sideways", "scroll 'sideways': the direction must be one of up, down, left, right"),
        ("scroll", "the direction must be one of"),
        ('swipe over button "OK" 3,4', "swipe 'over': the direction must be one of"),
        ('swipe button "OK" 3,4', "is no action"),
        ('swipe left "OK" 3,4', "is no action"),
        ("swipe left", "is no action"),
        ('long_press left button "OK" 3,4', "is no action"),
        ("long_press 3,4", "is no action"),
        ("wait 3", "takes no text"),
        ("complete now", "takes no text"),
    ],
)
def test_what_is_no_action_is_refused_with_the_rule(text: str, message: str) -> None:
    with pytest.raises(ActionError, match=message):
        Action.parse(text)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "now click button",
        'click button "OK"',
        'type "say "hi""',
        'type "June',
        'click radio "a" 17,61234',
        'complete button "OK" 3,4',
        "\nwait 3",
    ],
)
def test_an_answer_that_begins_with_no_action_is_refused(answer: str) -> None:
    with pytest.raises(ActionError):
        Action.begun(answer)


@pytest.mark.parametrize("kind", Kind)
def test_only_touches_have_a_point_and_a_target(kind: Kind) -> None:
    with pytest.raises(ActionError, match="click, long_press, swipe, and only they, have a point and a target"):
        Action(kind, point=(1, 2))


@pytest.mark.parametrize("kind", [Kind.LONG_PRESS, Kind.CLICK])
def test_only_a_swipe_has_a_direction_too(kind: Kind) -> None:
    with pytest.raises(ActionError, match="takes no text, got 'left'"):
        Action(kind, (1, 2), ("text", ""), "left")
