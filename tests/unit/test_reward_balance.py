"""Which reward rows stay: of paths made by hand, and of any paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hand_built import (
    COMPLETE,
    FORM,
    MAIL,
    NAME,
    POST,
    SUBMIT,
    click,
    demonstration,
    trajectory,
    tried,
    typed,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.types import Action, Candidate, End, Kind
from models.prompts import context_at, message
from tasks.acceptance import Bar
from tasks.records import Origin, RewardRow, Trajectory
from tasks.reward_data import Generator, reward_rows
from tasks.reward_data.balance import choose
from tasks.reward_data.draft import Draft
from tasks.reward_data.draft import screen as shown

DOWN, UP = Action(Kind.SCROLL, text="down"), Action(Kind.SCROLL, text="up")
HOLD = Action(Kind.LONG_PRESS, MAIL.point, (MAIL.kind, MAIL.text))
ASIDE = Action(Kind.SWIPE, POST.point, (POST.kind, POST.text), "left")
ENTER = Action(Kind.PRESS, text="Enter")


def make(*trajectories: Trajectory, most: int = 3) -> list[RewardRow]:
    return reward_rows(trajectories, bar=Bar(0.5), max_negatives=most, seed=0)


def test_a_prompt_is_judged_once() -> None:
    rows = make(*(trajectory(click(SUBMIT), seed=seed) for seed in range(3)))
    assert {row.trajectory for row in rows} == {"round-0001/form/0/0"}


def test_the_hardest_of_equal_rows_stays() -> None:
    path = trajectory(click(SUBMIT), candidates={0: (tried(COMPLETE, 0.8),)})
    assert [row.generator for row in make(path) if row.step == 0 and row.action == "complete"] == ["hard_negative"]


def test_of_a_contradiction_neither_side_stays() -> None:
    both = (tried(click(MAIL), 0.9), tried(click(POST), 0.9))
    paths = [
        trajectory(click(first), click(SUBMIT), seed=seed, candidates={0: both})
        for seed, first in enumerate((MAIL, POST))
    ]
    rows = make(*paths)
    assert not {row.action for row in rows if row.step == 0} & {str(click(MAIL)), str(click(POST))}
    assert {row.trajectory for row in rows if row.step == 1} == {path.id for path in paths}


def test_a_step_keeps_its_hardest_negatives() -> None:
    candidates = (tried(click(MAIL), 0.2), tried(click(POST), 0.9), tried(ENTER, 0.6))
    easy = [trajectory(click(SUBMIT), seed=seed, instruction=f"Number {seed}", shade=10 * seed) for seed in range(1, 5)]
    rows = make(trajectory(click(SUBMIT), candidates={0: candidates}), *easy, most=2)
    wrong = [row.action for row in rows if row.trajectory == "round-0001/form/0/0" and row.step == 0 and not row.label]
    assert sorted(wrong) == [str(click(POST)), "complete"]


def test_surplus_complete_is_dropped_from_the_start_of_paths() -> None:
    path = demonstration(*[click(NAME), click(MAIL), click(POST)] * 3, click(SUBMIT))
    other = trajectory(instruction="Another", seed=1, outcome=0.1)
    said = [(row.step, row.label) for row in make(path, other) if row.action == "complete"]
    assert said == [(9, False), (10, True), (10, False)]


def test_complete_is_wrong_twice_as_often_as_right_at_most() -> None:
    paths = [
        demonstration(
            *[click(MAIL), click(POST)] * 2,
            click(SUBMIT),
            seed=seed,
            instruction=f"Do {seed}",
            shade=9 * seed,
        )
        for seed in range(3)
    ]
    said = Counter(row.label for row in make(*paths) if row.action == "complete")
    assert said == {True: 3, False: 6}


def test_surplus_is_dropped_where_it_leads_most() -> None:
    path = trajectory(click(SUBMIT))
    spots = [Action(Kind.CLICK, (x, 1), ("text", "")) for x in range(15)]
    keys = [Action(Kind.PRESS, text=f"F{number}") for number in range(8)]
    drafts = [Draft(path, step, spot, Generator.RULE, step < 5, 0.5) for step, spot in enumerate(spots)]
    drafts += [Draft(path, step, key, Generator.RULE, False, 0.5) for step, key in enumerate(keys)]
    kept = Counter((item.action.kind.value, item.label) for item in choose(drafts, 9))
    assert kept == {("click", True): 5, ("click", False): 8, ("press", False): 3}


CLICKS = [click(element) for element in FORM]
ACTIONS = st.sampled_from([*CLICKS, typed("Ann"), typed("Bob"), ENTER, DOWN, HOLD, ASIDE, Action(Kind.WAIT)])
SCORES = st.none() | st.sampled_from([0.0, 0.3, 0.5, 0.9])
CANDIDATES = st.lists(
    st.builds(Candidate, ACTIONS | st.just(COMPLETE), st.just(1), SCORES),
    max_size=4,
    unique_by=lambda c: c.action,
)


@st.composite
def explored(draw: st.DrawFn) -> list[Trajectory]:
    """A few paths in a world so small that their prompts are often equal."""
    paths: list[Trajectory] = []
    for place in range(draw(st.integers(0, 6))):
        failed = [path for path in paths if path.origin is Origin.SEARCH and path.episode.steps]
        parent = draw(st.none() | st.sampled_from(failed)) if failed else None
        shared = draw(st.integers(1, len(parent.episode.steps))) if parent else 0
        start = [step.action for step in parent.episode.steps[:shared]] if parent else []
        start = start[:-1] if start[-1:] == [COMPLETE] else start
        actions = [*start, *draw(st.lists(ACTIONS, max_size=4)), *draw(st.sampled_from([[], [COMPLETE]]))]
        alone = st.sampled_from([Origin.SEARCH, Origin.DEMONSTRATION, Origin.EVALUATION])
        paths.append(
            trajectory(
                *actions,
                instruction=draw(st.sampled_from(['Enter "Ann"', "Tick Mail", "Submit"])),
                goal=draw(st.sampled_from(["a", "b"])),
                place=place,
                origin=Origin.CONTINUATION if parent else draw(alone),
                outcome=draw(st.none() | st.sampled_from([0.1, 0.5, 0.9])),
                end=draw(st.sampled_from(End)),
                candidates={step: tuple(draw(CANDIDATES)) for step in range(len(actions))},
                parent=parent.id if parent else "",
                shared=shared,
            )
        )
    return paths


def prompt(row: RewardRow, paths: Sequence[Trajectory]) -> tuple[str, bytes, str]:
    """What the reward model reads: every word, and the screen."""
    path = next(path for path in paths if path.id == row.trajectory)
    observation = shown(path, row.step)
    (said,), _ = message(context_at(row.instruction, path.episode.steps[: row.step], observation), 0)
    words = "".join(part.get("text", "") for part in said["content"])
    return words, observation.screenshot, row.action


@settings(max_examples=150)
@given(explored(), st.integers(1, 4))
def test_rows_of_any_paths(paths: list[Trajectory], most: int) -> None:
    rows = make(*paths, most=most)
    assert make(*reversed(paths), most=most) == rows
    assert len({row.id for row in rows}) == len(rows)
    assert len({prompt(row, paths) for row in rows}) == len(rows)  # so none contradicts another either
    negatives = Counter((row.trajectory, row.step) for row in rows if not row.label)
    assert max(negatives.values(), default=0) <= most
    assert within([row.label for row in rows], 0.3)
    for kind in Kind:
        labels = [row.label for row in rows if Action.parse(row.action).kind is kind]
        assert within(labels, 1 / 3 if kind is Kind.COMPLETE else 0.3)


def within(labels: Sequence[bool], least: float) -> bool:
    """Whether the share of positives is within bounds, or cannot be: there is one label only."""
    return len(set(labels)) < 2 or least - 1e-9 <= sum(labels) / len(labels) <= 1 - least + 1e-9
