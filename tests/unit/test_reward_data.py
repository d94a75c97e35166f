"""What each generator makes of trajectories made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hand_built import (
    COMPLETE,
    FORM,
    MAIL,
    NAME,
    POST,
    SUBMIT,
    click,
    demonstration,
    screen,
    trajectory,
    tried,
    typed,
)

from environments.types import Action, Element, End, Kind
from tasks.acceptance import Bar
from tasks.records import Origin, RewardRow, Trajectory
from tasks.reward_data import Generator, reward_rows
from tasks.reward_data.continuation import continued
from tasks.reward_data.corruption import endings
from tasks.reward_data.draft import Draft
from tasks.reward_data.rule import agrees, executed, proposed, siblings, wrong_actions

DOWN, UP = Action(Kind.SCROLL, text="down"), Action(Kind.SCROLL, text="up")
LEFT, RIGHT = Action(Kind.SCROLL, text="left"), Action(Kind.SCROLL, text="right")
ENTER = Action(Kind.PRESS, text="Enter")


def brief(drafts: Iterable[Draft]) -> list[tuple[int, Action, Generator, bool]]:
    return [(item.step, item.action, item.generator, item.label) for item in drafts]


def make(*trajectories: Trajectory, most: int = 3) -> list[RewardRow]:
    return reward_rows(trajectories, bar=Bar(0.5), max_negatives=most, seed=0)


@pytest.mark.parametrize("off", [Generator.EARLY, Generator.WRONG_TEXT, Generator.REPEAT])
def test_a_generator_switched_off_leaves_the_rows_of_the_others(off: Generator) -> None:
    path = demonstration(click(NAME), typed("Ann"), click(SUBMIT))
    known = {(row.step, row.action, row.generator) for row in make(path)}
    rows = reward_rows([path], bar=Bar(0.5), max_negatives=3, seed=0, without=[off])
    found = {(row.step, row.action, row.generator) for row in rows}
    assert off in {generator for *_, generator in known}
    assert off not in {generator for *_, generator in found}
    assert {row for row in known if row[2] != off} <= found


def test_a_demonstration_gives_exactly_these_rows() -> None:
    path = demonstration(click(NAME), typed("Ann"), click(SUBMIT))
    other = trajectory(seed=1, instruction='Enter "Bob" and submit', outcome=0.1)
    own = path.episode.instruction
    assert [(row.id, row.instruction, row.action, row.label, row.generator) for row in make(path, other)] == [
        ("round-0001/form/0/0#0.0", own, 'click textbox "" 70,40', True, "executed"),
        ("round-0001/form/0/0#0.1", own, 'click button "Submit" 50,130', False, "too_soon"),
        ("round-0001/form/0/0#1.0", own, 'type "Ann"', True, "executed"),
        ("round-0001/form/0/0#1.1", own, 'type "and"', False, "wrong_text"),
        ("round-0001/form/0/0#1.2", own, 'click button "Submit" 50,130', False, "too_soon"),
        ("round-0001/form/0/0#1.3", 'Enter "nnA" and submit', 'type "Ann"', False, "edited"),
        ("round-0001/form/0/0#1.4", 'Enter "nnA" and submit', 'type "nnA"', True, "edited"),
        ("round-0001/form/0/0#2.0", own, 'click button "Submit" 50,130', True, "executed"),
        ("round-0001/form/0/0#2.1", own, 'type "Ann"', False, "repeat"),
        ("round-0001/form/0/0#2.2", own, "complete", False, "early"),
        ("round-0001/form/0/0#3.0", own, "complete", True, "outcome"),
        ("round-0001/form/0/0#3.1", own, 'click button "Submit" 50,130', False, "past_end"),
        ("round-0001/form/0/0#3.2", own, 'click checkbox "Post" 26,86', False, "past_end"),
        ("round-0001/form/0/0#3.3", 'Enter "nnA" and submit', "complete", False, "edited"),
    ]


def test_a_row_names_the_goal_the_round_and_the_models() -> None:
    row = make(trajectory(click(SUBMIT), seed=7))[0]
    assert (row.trajectory, row.goal, row.seed, row.round) == ("round-0001/form/7/0", "form", 7, 1)
    assert (row.agent, row.reward) == ("a" * 12, "b" * 12)


def held(element: Element) -> Action:
    return Action(Kind.LONG_PRESS, element.point, (element.kind, element.text))


def swiped(element: Element, way: str) -> Action:
    return Action(Kind.SWIPE, element.point, (element.kind, element.text), way)


LINK = Element("link", "Submit", (30, 125, 20, 8))  # within the button


@pytest.mark.parametrize(
    ("action", "right", "same"),
    [
        (
            Action(Kind.CLICK, (21, 139), ("button", "Go")),
            click(SUBMIT),
            True,
        ),  # in the box, whatever it says
        (Action(Kind.CLICK, (81, 130), ("button", "Submit")), click(SUBMIT), False),  # beside the box
        (click(MAIL), click(POST), False),
        (typed("  New  York "), typed("New York"), True),
        (typed("new york"), typed("New York"), False),
        (typed("New"), typed("New York"), False),
        (typed("ls"), typed("ls\n"), False),  # a line break at the end presses Enter
        (ENTER, ENTER, True),
        (Action(Kind.PRESS, text="Tab"), ENTER, False),
        (UP, DOWN, False),
        (LEFT, DOWN, False),
        (Action(Kind.LONG_PRESS, (21, 139), ("button", "Go")), held(SUBMIT), True),
        (held(MAIL), held(SUBMIT), False),
        (click(SUBMIT), held(SUBMIT), False),
        (Action(Kind.SWIPE, (21, 139), ("button", "Go"), "left"), swiped(SUBMIT, "left"), True),
        (swiped(SUBMIT, "right"), swiped(SUBMIT, "left"), False),
        (swiped(MAIL, "left"), swiped(SUBMIT, "left"), False),
        (typed("Ann"), click(NAME), False),
        (COMPLETE, click(NAME), False),
        (Action(Kind.CLICK, (5, 5), ("x", "")), Action(Kind.CLICK, (5, 5), ("y", "")), True),  # on no element
        (Action(Kind.CLICK, (10, 5), ("y", "")), Action(Kind.CLICK, (5, 5), ("y", "")), True),  # 5 pixels of 264
        (Action(Kind.CLICK, (11, 5), ("y", "")), Action(Kind.CLICK, (5, 5), ("y", "")), False),
        (Action(Kind.CLICK, (20, 35), ("y", "")), Action(Kind.CLICK, (18, 35), ("y", "")), False),  # on the text box
        (Action(Kind.CLICK, (21, 139), ("x", "")), click(LINK), False),  # the button is not the link on it
        (click(LINK), Action(Kind.CLICK, (32, 126), ("button", "Submit")), True),  # the link is on the button
    ],
)
def test_an_action_is_compared_by_rule(action: Action, right: Action, same: bool) -> None:
    assert agrees(action, right, screen(0, (*FORM, LINK))) is same


def test_a_slip_that_was_made_up_for_is_taught_neither_way() -> None:
    """Mail was pressed by mistake, and pressed again; what was liked more there is not called wrong for it."""
    options = (tried(click(MAIL), 0.1), tried(click(NAME), 0.9))
    path = trajectory(
        *(click(MAIL), click(MAIL), click(SUBMIT)), scores={0: 0.1, 1: 0.9, 2: 0.9}, candidates={0: options},
        origin=Origin.CONTINUATION, parent="r/0", shared=1,
    )  # fmt: skip
    rows = reward_rows([path], bar=Bar(0.5, 0.5), max_negatives=3, seed=0)
    assert {row.action for row in rows if row.step == 0} <= {"complete"}
    assert (1, True) in {(row.step, row.label) for row in rows}


def test_candidates_are_compared_with_what_was_done() -> None:
    on_submit = Action(Kind.CLICK, (30, 125), ("button", "Submit"))
    candidates = (
        tried(click(SUBMIT), 0.9),
        tried(on_submit, 0.8),
        tried(click(MAIL), 0.5),
        tried(click(POST), 0.4),
        tried(ENTER),
    )
    path = trajectory(click(SUBMIT), candidates={0: candidates})
    assert brief(proposed(path, Bar(0.0))) == [
        (0, on_submit, Generator.RULE_POSITIVE, True),
        (0, click(MAIL), Generator.HARD_NEGATIVE, False),
        (0, click(POST), Generator.RULE, False),
        (0, ENTER, Generator.RULE, False),  # not scored is not liked
    ]


def test_candidates_on_the_last_screen_go_past_the_end() -> None:
    candidates = (tried(COMPLETE, 0.9), tried(click(MAIL), 0.6))
    path = trajectory(click(SUBMIT), COMPLETE, candidates={1: candidates})
    assert brief(proposed(path, Bar(0.0))) == [(1, click(MAIL), Generator.HARD_NEGATIVE, False)]


def test_what_is_clicked_later_is_not_wrong_now_but_ending_the_work_is() -> None:
    candidates = (tried(click(POST), 0.9), tried(click(SUBMIT), 0.9))
    path = trajectory(click(MAIL), click(POST), click(SUBMIT), candidates={0: candidates})
    assert brief(proposed(path, Bar(0.0))) == [(0, click(SUBMIT), Generator.HARD_NEGATIVE, False)]
    assert click(POST) not in {item.action for item in executed(path, Bar(0.0), 9) if item.step == 0}
    assert click(MAIL) in {item.action for item in executed(path, Bar(0.0), 9) if item.step == 1}


def test_the_same_field_is_right_even_if_one_like_it_is_clicked_later() -> None:
    beside = Action(Kind.CLICK, (30, 35), ("textbox", ""))
    path = trajectory(click(NAME), click(MAIL), click(NAME), click(SUBMIT), candidates={0: (tried(beside, 0.9),)})
    assert brief(proposed(path, Bar(0.0))) == [(0, beside, Generator.RULE_POSITIVE, True)]


def test_of_things_without_text_those_clicked_later_are_told_by_their_place() -> None:
    first, second, third = (Element("image", "", (10 + 40 * place, 20, 20, 20)) for place in range(3))
    path = trajectory(click(first), click(second), click(SUBMIT), elements=(first, second, third, SUBMIT))
    wrong = {item.action for item in executed(path, Bar(0.0), 9) if item.step == 0 and not item.label}
    assert click(third) in wrong
    assert click(second) not in wrong


def test_near_misses_are_the_most_tempting_ones() -> None:
    path = demonstration(click(NAME), typed("Ann"), DOWN, click(SUBMIT), instruction='Type "Ann" or "Ben", then go')
    wrong = [
        (item.step, item.generator.value, str(item.action)) for item in executed(path, Bar(0.0), 3) if not item.label
    ]
    assert wrong == [
        (0, "too_soon", 'click button "Submit" 50,130'),
        (0, "sibling", 'click checkbox "Mail" 26,66'),
        (0, "sibling", 'click checkbox "Post" 26,86'),
        (1, "wrong_text", 'type "Ben"'),
        (1, "too_soon", 'click button "Submit" 50,130'),
        (1, "repeat", 'click textbox "" 70,40'),
        (2, "wrong_text", "scroll up"),
        (2, "too_soon", 'click button "Submit" 50,130'),
        (2, "repeat", 'type "Ann"'),
        (3, "repeat", "scroll down"),
        (3, "sibling", 'click checkbox "Post" 26,86'),
        (3, "sibling", 'click checkbox "Mail" 26,66'),
    ]


def test_near_misses_of_touches_are_other_touches() -> None:
    path = demonstration(held(MAIL), swiped(POST, "left"), RIGHT)
    wrong = [
        (item.step, item.generator.value, str(item.action)) for item in executed(path, Bar(0.0), 4) if not item.label
    ]
    assert wrong == [
        (0, "swapped_kind", 'click checkbox "Mail" 26,66'),
        (0, "sibling", 'long_press textbox "" 70,40'),
        (0, "sibling", 'long_press button "Submit" 50,130'),
        (0, "swapped_kind", 'type "Ann"'),
        (1, "wrong_text", 'swipe right checkbox "Post" 26,86'),
        (1, "swapped_kind", 'click checkbox "Post" 26,86'),
        (1, "repeat", 'long_press checkbox "Mail" 26,66'),
        (1, "sibling", 'swipe left checkbox "Mail" 26,66'),
        (2, "wrong_text", "scroll left"),
        (2, "repeat", 'swipe left checkbox "Post" 26,86'),
        (2, "sibling", 'click textbox "" 70,40'),
        (2, "sibling", 'click checkbox "Mail" 26,66'),
    ]
    past = [str(item.action) for item in endings(path, {}, 2, seed=0) if item.generator is Generator.PAST_END]
    assert past == ["scroll right", 'click textbox "" 70,40']


def test_where_little_is_on_the_screen_typing_takes_the_place_of_a_click() -> None:
    path = demonstration(click(SUBMIT), instruction="Click Submit")
    alone = replace(path.episode.steps[0], observation=screen(0, (SUBMIT,)))
    bare = replace(path, episode=replace(path.episode, steps=(alone,)))
    wrong = [(item.generator, item.action) for item in executed(bare, Bar(0.0), 3) if not item.label]
    assert wrong == [(Generator.SWAPPED_KIND, typed("Submit")), (Generator.SWAPPED_KIND, typed("Click"))]


def test_siblings_are_of_the_same_kind_first_then_near() -> None:
    assert [str(action) for action in siblings(screen(0), click(POST))] == [
        'click checkbox "Mail" 26,66',
        'click button "Submit" 50,130',
        'click textbox "" 70,40',
    ]


def test_where_one_types_siblings_are_near_the_field_in_use() -> None:
    field = replace(NAME, box=(20, 90, 100, 20), states=("focus",))
    assert [action.target for action in siblings(screen(0, (NAME, SUBMIT, POST, field)), typed("Ann"))] == [
        ("textbox", ""),  # the field itself
        ("textbox", ""),
        ("button", "Submit"),
        ("checkbox", "Post"),
    ]


def test_complete_is_right_at_the_end_alone() -> None:
    path = trajectory(click(NAME), click(SUBMIT), COMPLETE)
    instructions = {"form": ["Another one", path.episode.instruction]}
    drafts = list(endings(path, instructions, 3, seed=0))
    assert brief(drafts) == [
        (2, COMPLETE, Generator.OUTCOME, True),
        (0, COMPLETE, Generator.EARLY, False),
        (1, COMPLETE, Generator.EARLY, False),
        (2, COMPLETE, Generator.CROSS_GOAL, False),
        (2, click(SUBMIT), Generator.PAST_END, False),
        (2, click(POST), Generator.PAST_END, False),
        (2, click(MAIL), Generator.PAST_END, False),
    ]
    assert [item.instruction for item in drafts if item.generator is Generator.CROSS_GOAL] == ["Another one"]


@pytest.mark.parametrize(
    ("others", "shown_with"),
    [
        (
            [trajectory(seed=1, instruction="Of this goal"), trajectory(goal="other", instruction="Other")],
            "Of this goal",
        ),
        ([trajectory(seed=1), trajectory(goal="other", instruction="Other")], "Other"),
        ([trajectory(seed=1, instruction="", end=End.CRASHED, outcome=None)], None),
        ([], None),
    ],
)
def test_another_goal_is_the_same_goal_with_another_seed_if_there_is_one(
    others: list[Trajectory], shown_with: str | None
) -> None:
    rows = make(trajectory(click(SUBMIT)), *others)
    crossed = [row.instruction for row in rows if row.generator == "cross_goal"]
    assert crossed == ([] if shown_with is None else [shown_with])
    assert [row.generator for row in rows if row.action == "complete" and row.label] == ["outcome"]


def test_which_other_goal_follows_from_the_seed() -> None:
    paths = [trajectory(click(SUBMIT), seed=seed, instruction=f"Number {seed}", shade=10 * seed) for seed in range(12)]

    def crossed(seed: int) -> list[str]:
        rows = reward_rows(paths, bar=Bar(0.5), max_negatives=3, seed=seed)
        return [row.instruction for row in rows if row.generator == "cross_goal"]

    assert crossed(1) == crossed(1) != crossed(2)


def test_the_last_action_is_too_soon_where_a_demonstration_needed_more() -> None:
    """What a search did before it may have been needless."""
    actions = (click(MAIL), click(POST), click(SUBMIT))
    soon = [(0, click(SUBMIT)), (1, click(SUBMIT))]
    for path, expected in ((demonstration(*actions), soon), (trajectory(*actions), [])):
        found = [
            (item.step, item.action) for item in executed(path, Bar(0.0), 9) if item.generator is Generator.TOO_SOON
        ]
        assert found == expected


def test_the_last_of_several_boxes_is_not_too_soon() -> None:
    """Where nothing is sent in the end, they may be ticked in any order."""
    liked = (tried(click(POST), 0.9, 3), tried(click(NAME), 0.8, 1))
    path = trajectory(click(MAIL), click(POST), COMPLETE, candidates={0: liked})
    assert [(item.step, item.action) for item in proposed(path, Bar(0.0))] == [(0, click(NAME))]
    assert click(POST) not in wrong_actions(demonstration(click(MAIL), click(POST)), 0)


def test_search_and_demonstration_end_alike() -> None:
    actions = (click(SUBMIT),)
    rows = [
        [(row.step, row.action, row.label) for row in make(path)]
        for path in (trajectory(*actions, COMPLETE), demonstration(*actions))
    ]
    assert rows[0] == rows[1]
    assert (1, "complete", True) in rows[0]


def continuation(failed: Trajectory, shared: int, outcome: float | None, place: int, **about: object) -> Trajectory:
    actions = [step.action for step in failed.episode.steps[:shared]]
    return trajectory(
        *actions, click(SUBMIT), origin=Origin.CONTINUATION, outcome=outcome, place=place,
        parent=failed.id, shared=shared, **about,  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_step_of_a_failed_path_is_judged_by_its_continuations() -> None:
    failed = trajectory(click(NAME), click(MAIL), click(POST), click(NAME), outcome=0.2)
    paths = [
        failed,
        continuation(failed, 1, 0.1, 1),
        continuation(failed, 1, 0.8, 2),
        continuation(failed, 2, 0.1, 3),
        continuation(failed, 2, 0.9, 4, end=End.INVALID),
        continuation(failed, 3, None, 5),
        continuation(failed, 3, 0.1, 6, end=End.CRASHED),
    ]
    assert brief(continued(paths, Bar(0.5))) == [
        (0, click(NAME), Generator.CONTINUATION, True),
        (1, click(MAIL), Generator.CONTINUATION, False),
    ]


def test_where_no_continuation_ends_well_the_steps_are_not_to_blame() -> None:
    """What comes after a step that nothing followed well is not known to be wrong either."""
    failed = trajectory(click(NAME), click(MAIL), click(POST), outcome=0.2)
    hopeless = [continuation(failed, shared, 0.1, shared) for shared in (1, 2)]
    assert brief(continued([failed, *hopeless], Bar(0.5))) == []
    solved = trajectory(click(POST), click(SUBMIT), place=3)
    assert brief(continued([failed, *hopeless, solved], Bar(0.5))) == [(0, click(NAME), Generator.CONTINUATION, False)]


def test_a_solved_path_is_not_judged_by_its_continuations() -> None:
    solved = trajectory(click(NAME), click(MAIL), outcome=0.5)
    assert brief(continued([solved, continuation(solved, 1, 0.1, 1)], Bar(0.5))) == []


def test_a_solved_path_through_a_step_counts_as_a_continuation() -> None:
    failed = trajectory(click(NAME), click(MAIL), outcome=0.2)
    hopeless = continuation(failed, 1, 0.1, 1)
    solved = trajectory(click(NAME), click(SUBMIT), place=2)
    assert brief(continued([failed, hopeless, solved], Bar(0.5))) == [(0, click(NAME), Generator.CONTINUATION, True)]


@pytest.mark.parametrize(
    "path",
    [
        trajectory(click(NAME), click(SUBMIT), outcome=0.49),
        trajectory(click(NAME), click(SUBMIT), outcome=None),
        trajectory(click(NAME), click(SUBMIT), end=End.CRASHED),
        trajectory(click(NAME), click(SUBMIT), end=End.INVALID),
        trajectory(click(NAME), click(SUBMIT), origin=Origin.EVALUATION),
        trajectory(COMPLETE, outcome=1.0),
        trajectory(outcome=1.0),
    ],
    ids=["failed", "not scored", "crashed", "invalid", "evaluation", "only complete", "nothing done"],
)
def test_a_path_that_is_not_solved_teaches_nothing_by_itself(path: Trajectory) -> None:
    liked = (tried(click(NAME), 0.9), tried(click(MAIL), 0.9))
    solved = trajectory(click(SUBMIT), goal="other", seed=1, candidates={0: liked})
    assert {row.trajectory for row in make(path, solved)} == {solved.id}
