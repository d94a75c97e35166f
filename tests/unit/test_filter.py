"""The filter stage on a round made by hand: which trajectories are accepted, and what lies on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from declared import only_declared_params
from hand_built import COMPLETE, MAIL, NAME, POST, SUBMIT, click, demonstration, trajectory, tried
from hypothesis import given
from hypothesis import strategies as st
from small_round import params

from environments.types import Candidate, End, Instance
from tasks.acceptance import Bar, Rejection, best, judge, rejection, rejections
from tasks.curriculum.plan import Plan
from tasks.errors import GateError
from tasks.explore import failed
from tasks.files import ROUND, digest, read_json
from tasks.filter import agent_rows, run
from tasks.records import (
    AgentRow,
    Origin,
    RewardRow,
    Trajectory,
    read_rows,
    read_trajectories,
    write_trajectories,
)
from tasks.reward_data import reward_rows

Stage = Callable[..., Path]


@pytest.fixture
def filtered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Runs the stage on scored trajectories; the folder it made."""
    monkeypatch.chdir(tmp_path)
    (ROUND / "scored").mkdir(parents=True)
    Plan(1, []).write()

    def run_on(trajectories: Iterable[Trajectory], max_per_goal: int = 4, quoted: bool = False) -> Path:
        write_trajectories(ROUND / "scored", trajectories)
        keys = {"accept": 0.5, "max_per_goal": max_per_goal, "max_negatives": 3, "quoted": quoted}
        run(params(filter=keys))
        return ROUND / "rows"

    return run_on


TWO_WAYS = (tried(click(NAME), count=9), tried(click(MAIL)))
RARE = (*TWO_WAYS, tried(click(POST), count=90))
SOLVED = trajectory(
    *(click(NAME), click(SUBMIT), COMPLETE), candidates={1: (tried(click(SUBMIT), count=9), tried(click(MAIL), 0.7))}
)
FAILED = trajectory(click(POST), click(MAIL), click(SUBMIT), seed=1, outcome=0.2, instruction="Tick Mail", shade=50)
HOPELESS = trajectory(
    *(click(POST), click(NAME)), seed=1, place=1, outcome=0.1, instruction="Tick Mail", shade=50,
    origin=Origin.CONTINUATION, parent=FAILED.id, shared=1,
)  # fmt: skip
CRASHED = trajectory(goal="broken", outcome=None, end=End.CRASHED, instruction="")


def test_a_round_gives_exactly_these_rows(filtered: Stage) -> None:
    rows = filtered([SOLVED, FAILED, HOPELESS, CRASHED])
    assert sorted(file.name for file in rows.iterdir()) == [
        "README.md",
        "agent_rows.parquet",
        "filter.json",
        "reward_rows.parquet",
        "steps-00000-of-00001.parquet",
    ]
    assert read_rows(rows / "agent_rows.parquet", AgentRow) == [
        AgentRow(f"{SOLVED.id}#{step}", SOLVED.id, step, "form", 0, 1, action, "accepted", "a" * 12, "b" * 12)
        for step, action in enumerate([str(click(NAME)), str(click(SUBMIT)), "complete"])
    ]
    for_reward = read_rows(rows / "reward_rows.parquet", RewardRow)
    assert [(row.id, row.action, row.label, row.generator) for row in for_reward] == [
        (f"{SOLVED.id}#0.0", str(click(NAME)), True, "executed"),
        (f"{SOLVED.id}#0.1", str(click(MAIL)), False, "sibling"),
        (f"{SOLVED.id}#1.0", str(click(MAIL)), False, "hard_negative"),
        (f"{SOLVED.id}#1.1", str(click(SUBMIT)), True, "executed"),
        (f"{SOLVED.id}#1.2", str(click(NAME)), False, "repeat"),
        (f"{SOLVED.id}#1.3", "complete", False, "early"),
        (f"{SOLVED.id}#2.0", "complete", True, "outcome"),
        (f"{SOLVED.id}#2.1", "complete", False, "cross_goal"),
        (f"{SOLVED.id}#2.2", str(click(SUBMIT)), False, "past_end"),
    ]


def test_only_the_trajectories_that_rows_refer_to_are_kept(filtered: Stage) -> None:
    rows = filtered([CRASHED, HOPELESS, FAILED, SOLVED])
    assert list(read_trajectories(rows)) == [SOLVED]


def test_a_failed_path_where_another_was_solved_is_kept_for_the_step_that_led_nowhere(filtered: Stage) -> None:
    way = trajectory(
        *(click(MAIL), click(SUBMIT), COMPLETE), seed=1, place=2, outcome=0.9, instruction="Tick Mail", shade=50
    )
    rows = filtered([FAILED, HOPELESS, way])
    assert list(read_trajectories(rows)) == [FAILED, way]
    told = [row for row in read_rows(rows / "reward_rows.parquet", RewardRow) if row.generator == "continuation"]
    assert [(row.id, row.action, row.label) for row in told] == [(f"{FAILED.id}#0.0", str(click(POST)), False)]
    assert read_json(rows / "filter.json")["reward_rows"]["continuation"] == {"positive": 0, "negative": 1}


def test_its_params_are_all_that_it_reads(filtered: Stage) -> None:
    filtered([SOLVED, FAILED, HOPELESS, CRASHED])
    used = params()
    with only_declared_params("filter"):
        run(used)


def test_what_was_kept_and_why_not_is_told(filtered: Stage) -> None:
    rare = {0: (tried(click(NAME)), tried(click(SUBMIT)))}
    worse = trajectory(click(SUBMIT), COMPLETE, place=1, outcome=0.8, candidates=rare)
    paths = [SOLVED, FAILED, HOPELESS, CRASHED, worse]
    paths += [trajectory(click(SUBMIT), COMPLETE, seed=seed, outcome=0.7, shade=seed * 9) for seed in (2, 3)]
    report = read_json(filtered(paths, max_per_goal=2) / "filter.json")
    assert report["goals"] == {
        "form": {
            "tried": 6,
            "finished": 6,
            "accepted": 2,
            "dropped": {"low_outcome": 2, "not_best": 1, "over_limit": 1},
        },
        "broken": {"tried": 1, "finished": 0, "accepted": 0, "dropped": {"crashed": 1}},
    }
    assert report["agent_rows"] == 5  # three of the best path, two of the one that is within the limit
    assert report["reward_rows"]["executed"]["negative"] == 0


def test_what_a_plan_says_of_accepting_stands_in_place_of_the_parameters(filtered: Stage) -> None:
    """A path with an outcome of .9 is good enough for the parameters, and one of .96 for the plan."""
    Plan(1, [], accept=0.95).write()
    surer = trajectory(click(NAME), click(SUBMIT), COMPLETE, seed=2, outcome=0.96, shade=30)
    told = read_json(filtered([SOLVED, surer]) / "filter.json")["goals"]["form"]
    assert (told["accepted"], told["dropped"]) == (1, {"low_outcome": 1})
    with pytest.raises(GateError, match=r"1 low_outcome\) give no row; .* at least filter.accept = 0.95 "):
        filtered([SOLVED])


def test_the_same_input_gives_the_same_bytes(filtered: Stage) -> None:
    paths = [SOLVED, FAILED, HOPELESS]
    first = digest(filtered(paths))
    assert digest(filtered(paths)) == first


def test_the_order_of_trajectories_changes_no_row(filtered: Stage) -> None:
    paths = [SOLVED, FAILED, HOPELESS, trajectory(click(SUBMIT), COMPLETE, place=9)]
    files = ("agent_rows.parquet", "reward_rows.parquet", "filter.json")
    first = [digest(filtered(paths) / file) for file in files]
    assert [digest(filtered(reversed(paths)) / file) for file in files] == first


def test_a_world_verdict_changes_no_row(filtered: Stage) -> None:
    paths = [SOLVED, FAILED, HOPELESS]
    files = ("agent_rows.parquet", "reward_rows.parquet", "filter.json")
    found = []
    for verdict in (True, False):
        rows = filtered([replace(path, verdict=verdict) for path in paths])
        found.append([digest(rows / file) for file in files])
    assert found[0] == found[1]


def test_without_any_row_the_round_stops(filtered: Stage) -> None:
    with pytest.raises(GateError) as error:
        filtered([FAILED, CRASHED])
    assert str(error.value) == (
        "data/round/scored: 2 trajectories (1 crashed, 1 low_outcome) give no row; training needs one with "
        "an outcome of at least filter.accept = 0.5 and steps of at least filter.min_step = 0.5; "
        "raise propose.per_goal or explore.candidates in params.yaml and run `dvc repro filter`"
    )
    assert not (ROUND / "rows").exists()


def test_without_any_trajectory_the_round_stops(filtered: Stage) -> None:
    with pytest.raises(GateError, match=r"0 trajectories \(there are none\) give no row"):
        filtered([])


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (trajectory(click(SUBMIT), outcome=0.5), None),
        (trajectory(click(SUBMIT), end=End.STEP_LIMIT), None),
        (trajectory(click(SUBMIT), end=End.WORLD), None),
        (demonstration(click(SUBMIT)), None),
        (trajectory(click(SUBMIT), outcome=0.49), Rejection.LOW_OUTCOME),
        (trajectory(click(SUBMIT), outcome=None), Rejection.NOT_SCORED),
        (trajectory(click(SUBMIT), end=End.CRASHED), Rejection.CRASHED),
        (trajectory(click(SUBMIT), end=End.INVALID), Rejection.INVALID),
        (trajectory(click(SUBMIT), origin=Origin.EVALUATION), Rejection.EVALUATION),
        (trajectory(COMPLETE), Rejection.NO_STEPS),
        (trajectory(), Rejection.NO_STEPS),
    ],
)
def test_a_trajectory_is_solved_or_it_is_said_why_not(path: Trajectory, reason: Rejection | None) -> None:
    assert rejection(path, Bar(0.5)) is reason


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (trajectory(click(NAME), outcome=0.9), trajectory(click(MAIL), outcome=0.8)),
        (trajectory(*[click(NAME)] * 3, outcome=0.9), trajectory(click(NAME), outcome=0.8)),
        (trajectory(click(NAME), outcome=0.9), trajectory(*[click(NAME)] * 3, outcome=0.9)),
        (trajectory(*[click(NAME)] * 2, COMPLETE, outcome=0.5), trajectory(click(NAME), outcome=0.4)),
        (
            trajectory(click(NAME), outcome=0.8, candidates={0: TWO_WAYS}),
            trajectory(click(MAIL), click(POST), outcome=0.92, candidates={0: TWO_WAYS}),
        ),
        (
            trajectory(*[click(NAME)] * 2, outcome=0.9, candidates={0: RARE}),
            trajectory(click(MAIL), outcome=0.8, candidates={0: RARE}),
        ),
        (
            trajectory(*[click(NAME)] * 6, outcome=0.98, candidates=dict.fromkeys(range(6), TWO_WAYS)),
            trajectory(*[click(NAME)] * 3, outcome=0.86, candidates=dict.fromkeys(range(3), TWO_WAYS)),
        ),
    ],
    ids=["surer", "surer, though longer", "as sure, and shorter", "solved", "its own way", "neither its own", "long"],
)
def test_the_best_of_an_instance_is_accepted(better: Trajectory, worse: Trajectory) -> None:
    paths = [replace(worse, id="r/form/0/0"), replace(better, id="r/form/0/1")]
    assert [name for name, reason in judge(paths, Bar(0.5), 4).items() if reason is None] == ["r/form/0/1"]


def test_of_two_equally_good_ones_the_lower_id_is_accepted() -> None:
    paths = [trajectory(click(NAME), place=1), trajectory(click(NAME), COMPLETE, place=0)]
    assert [name for name, reason in judge(paths, Bar(0.5), 4).items() if reason is None] == [paths[1].id]


def test_of_a_goal_the_surest_are_accepted_however_long() -> None:
    long = trajectory(*[click(NAME)] * 3, seed=1, outcome=0.9)
    short = trajectory(click(NAME), seed=2, outcome=0.8)
    assert judge([short, long], Bar(0.5), 1) == {long.id: None, short.id: Rejection.OVER_LIMIT}


def test_of_a_goal_those_that_the_judge_is_surest_of_are_accepted_however_sure_the_agent_is() -> None:
    rare = trajectory(click(NAME), seed=1, outcome=0.9, candidates={0: RARE})
    usual = trajectory(click(NAME), seed=2, outcome=0.8, candidates={0: TWO_WAYS})
    assert judge([usual, rare], Bar(0.5), 1) == {rare.id: None, usual.id: Rejection.OVER_LIMIT}


def test_what_is_right_is_told_by_the_best_path_without_a_slip() -> None:
    """A form that is half filled in is shorter, and less sure; one in which Mail was pressed for nothing has a slip."""
    first = {0: (tried(click(NAME), count=9), tried(click(MAIL), 0.9))}
    whole = trajectory(click(NAME), click(POST), click(SUBMIT), outcome=0.98, candidates=first)
    half = trajectory(click(NAME), click(SUBMIT), place=1, outcome=0.95, candidates=first)
    slip = trajectory(*[click(MAIL)] * 2, click(SUBMIT), place=2, outcome=0.99, scores={0: 0.8, 1: 0.02, 2: 0.9})
    wrong = trajectory(click(SUBMIT), place=3, outcome=0.1)
    elsewhere = trajectory(*[click(MAIL)] * 3, seed=4, outcome=0.8)
    bar = Bar(0.5, 0.5)
    assert best([half, whole, slip, wrong, elsewhere], bar) == [whole, elsewhere]
    rows = reward_rows([half, whole, slip], bar=bar, max_negatives=3, seed=0)
    at_first = {row.action: row.label for row in rows if row.step == 0}
    assert at_first[str(click(NAME))] is True
    assert at_first[str(click(MAIL))] is False
    assert {row.trajectory for row in rows} == {whole.id}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (trajectory(click(MAIL), click(SUBMIT), scores={0: 0.49, 1: 0.9}), Rejection.LOW_STEP),
        (trajectory(click(MAIL), click(SUBMIT), scores={0: 0.5, 1: 0.9}), None),
        (trajectory(click(MAIL), click(SUBMIT), scores={1: 0.9}), None),  # what was not scored is not low
        (trajectory(click(MAIL), click(SUBMIT), scores={0: 0.1}, candidates={0: (tried(click(NAME), 0.1),)}), None),
        (
            trajectory(click(MAIL), click(SUBMIT), scores={0: 0.1}, candidates={0: (tried(click(NAME), 0.2),)}),
            Rejection.LOW_STEP,
        ),
        (trajectory(click(MAIL), COMPLETE, scores={0: 0.9, 1: 0.1}), None),  # its outcome is judged, not its last word
    ],
)
def test_a_path_with_a_slip_is_not_solved(path: Trajectory, reason: Rejection | None) -> None:
    bar = Bar(0.5, 0.5)
    assert rejection(path, bar) is reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((tried(click(SUBMIT), 0.98, 9), tried(click(NAME), 0.99)), None),  # liked a little less, done far oftener
        ((tried(click(SUBMIT), 0.6, 3), tried(click(NAME), 0.95, 2)), Rejection.HASTY),
        ((tried(click(SUBMIT), 0.6, 1), tried(click(NAME), 0.5, 9)), None),  # seldom done, and liked most
    ],
)
def test_a_last_step_is_compared_by_its_reward_and_its_share(
    options: tuple[Candidate, ...], reason: Rejection | None
) -> None:
    score = options[0].score or 0.0
    path = trajectory(click(SUBMIT), candidates={0: options}, scores={0: score}, end=End.WORLD)
    assert rejection(path, Bar(0.5, 0.5)) is reason


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([tried(click(NAME), 0.95)], Rejection.HASTY),  # the name is still to be typed
        ([tried(click(NAME), 0.9)], None),  # liked as much, not more
        ([tried(click(NAME), 0.2), tried(COMPLETE, 0.95)], Rejection.HASTY),  # then Submit was too much
        ([tried(click(replace(SUBMIT, box=(90, 120, 60, 20))), 0.95)], None),  # another Submit does the same
        ([tried(click(NAME))], None),  # not scored
    ],
)
def test_a_path_that_ends_while_something_else_is_liked_more_is_not_solved(
    others: list[Candidate], reason: Rejection | None
) -> None:
    """Elsewhere on the way something else may be: the order of things is often free."""
    options = (tried(click(SUBMIT), 0.9), *others)
    path = trajectory(
        *(click(MAIL), click(SUBMIT)), candidates={0: options, 1: options}, scores={0: 0.6, 1: 0.9}, end=End.WORLD
    )
    assert rejection(path, Bar(0.5, 0.5)) is reason


@pytest.mark.parametrize("idle", [True, False])
def test_what_was_done_there_and_changed_nothing_is_not_left_to_do(idle: bool) -> None:
    options = (tried(click(MAIL), 0.95, 9), tried(click(SUBMIT), 0.9))
    path = trajectory(click(MAIL), click(SUBMIT), candidates={1: options}, scores={0: 0.9, 1: 0.9}, end=End.WORLD)
    first, last = path.episode.steps
    first = replace(first, observation=last.observation) if idle else first
    path = replace(path, episode=replace(path.episode, steps=(first, last)))
    assert rejection(path, Bar(0.5, 0.5)) is (None if idle else Rejection.HASTY)


@pytest.mark.parametrize(("other", "reason"), [(0.95, Rejection.HASTY), (0.85, None)])
def test_a_path_whose_complete_is_less_liked_than_something_else_is_not_solved(
    other: float, reason: Rejection | None
) -> None:
    path = trajectory(
        click(MAIL), COMPLETE, candidates={1: (tried(COMPLETE, 0.9), tried(click(SUBMIT), other))}, scores={1: 0.9}
    )
    assert rejection(path, Bar(0.5, 0.5)) is reason


def test_what_did_the_same_as_a_rejected_path_is_rejected_too() -> None:
    """The continuation repeats the end that the search knew something better for; another one does not."""
    better = {0: (tried(click(SUBMIT), 0.9), tried(click(NAME), 0.95))}
    path = trajectory(click(SUBMIT), scores={0: 0.9}, candidates=better, end=End.WORLD)
    again = trajectory(click(SUBMIT), place=1, origin=Origin.CONTINUATION, parent=path.id, end=End.WORLD)
    whole = trajectory(click(NAME), click(SUBMIT), place=2, origin=Origin.CONTINUATION, parent=path.id, end=End.WORLD)
    elsewhere = trajectory(click(SUBMIT), seed=1, end=End.WORLD)
    assert rejections([again, path, whole, elsewhere], Bar(0.5, 0.5)) == {
        path.id: Rejection.HASTY,
        again.id: Rejection.HASTY,
        whole.id: None,
        elsewhere.id: None,
    }


def test_a_continuation_may_make_up_for_the_slips_of_the_failed_path() -> None:
    """It shares the first step; a slip of its own is another matter."""
    scores = {0: 0.1, 1: 0.9, 2: 0.8}
    made_up = trajectory(
        *(click(MAIL), click(MAIL), click(SUBMIT)), origin=Origin.CONTINUATION, parent="r/0", shared=1, scores=scores
    )
    assert rejection(made_up, Bar(0.5, 0.5)) is None
    assert [row.step for row in agent_rows([made_up], Bar(0.0, 0.5))] == [1, 2, 3]  # and its slip is not imitated
    assert rejection(replace(made_up, shared=0), Bar(0.5, 0.5)) is Rejection.LOW_STEP


def test_a_low_step_is_a_slip_where_what_was_drawn_beside_it_was_not_judged() -> None:
    """Continuations, and whole sampled paths, note what they drew; only their own steps are scored."""
    drawn = {0: (tried(click(MAIL)), tried(click(NAME))), 1: (tried(click(SUBMIT)),)}
    path = trajectory(click(MAIL), click(SUBMIT), candidates=drawn, scores={0: 0.1, 1: 0.9}, end=End.WORLD)
    assert rejection(path, Bar(0.5, 0.5)) is Rejection.LOW_STEP
    alone = trajectory(click(MAIL), candidates={0: (tried(click(MAIL), 0.1),)}, scores={0: 0.1}, end=End.WORLD)
    assert rejection(alone, Bar(0.5, 0.5)) is None  # judged, and nothing was liked more


@pytest.mark.parametrize("liked", [trajectory(COMPLETE), trajectory(click(MAIL), end=End.INVALID)])
def test_a_path_that_the_filter_leaves_out_does_not_stop_that_others_are_continued(liked: Trajectory) -> None:
    poor = trajectory(click(MAIL), click(MAIL), click(SUBMIT), place=1, outcome=0.1)
    assert failed([liked, poor], params(filter={"quoted": False})) == [(1, poor.episode)]
    assert failed([poor, trajectory(click(SUBMIT), place=2)], params(filter={"quoted": False})) == []


OUTCOMES = st.sampled_from([None, 0.1, 0.6, 0.9])
TRIES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), OUTCOMES, st.sampled_from(End)))


@given(TRIES, st.integers(1, 3))
def test_what_is_accepted_of_any_round(made: list[tuple[str, int, float | None, End]], limit: int) -> None:
    paths = [
        trajectory(click(SUBMIT), goal=goal, seed=seed, place=place, outcome=outcome, end=end)
        for place, (goal, seed, outcome, end) in enumerate(made)
    ]
    verdicts = judge(paths, Bar(0.5), limit)
    accepted = [path for path in paths if verdicts[path.id] is None]
    assert all(rejection(path, Bar(0.5)) is None for path in accepted)
    instances = [path.episode.instance for path in accepted]
    assert len(set(instances)) == len(instances)
    solved = {path.episode.instance for path in paths if rejection(path, Bar(0.5)) is None}
    for goal in "ab":
        assert _of(goal, instances) == min(limit, _of(goal, solved))


def _of(goal: str, instances: Iterable[Instance]) -> int:
    return sum(instance.goal.id == goal for instance in instances)


def test_agent_rows_end_with_one_complete_however_the_path_ended() -> None:
    for path, source in ((SOLVED, "accepted"), (demonstration(click(NAME), click(SUBMIT)), "demonstration")):
        rows = agent_rows([path], Bar(0.0))
        assert [(row.step, row.action) for row in rows] == [
            (0, str(click(NAME))),
            (1, str(click(SUBMIT))),
            (2, "complete"),
        ]
        assert {row.source for row in rows} == {source}


def test_a_slip_on_the_way_to_success_is_not_imitated() -> None:
    """The second step is scored low, the first not at all: only what brought it back to the goal is learnt."""
    way = (click(NAME), click(POST), click(MAIL), click(SUBMIT), COMPLETE)
    corrected = trajectory(
        *way, scores={1: 0.09, 2: 0.1, 3: 0.8}, origin=Origin.CONTINUATION, parent=FAILED.id, shared=2
    )
    rows = agent_rows([corrected], Bar(0.0, 0.1))
    assert [(row.step, row.source) for row in rows] == [(step, "corrected") for step in (0, 2, 3, 4)]
    assert [row.step for row in agent_rows([corrected], Bar(0.0))] == [0, 1, 2, 3, 4]


def test_equal_agent_rows_are_kept_once_and_different_actions_both() -> None:
    paths = [trajectory(click(NAME), click(last), COMPLETE, seed=seed) for seed, last in enumerate((MAIL, MAIL, POST))]
    rows = agent_rows(paths, Bar(0.0))
    assert [(row.seed, row.step) for row in rows] == [(0, 0), (0, 1), (0, 2), (2, 1), (2, 2)]


def test_complete_is_no_act() -> None:
    assert len(SOLVED.episode.acts) == len(SOLVED.episode.steps) - 1
    assert FAILED.episode.acts == FAILED.episode.steps
