"""The gates: a good round passes, and for each rule a planted bad row is named and stops the round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from declared import only_declared_params
from small_round import (
    COMPLETE,
    OK,
    goal,
    params,
    rows_of,
    trajectory,
    write_curriculum,
    write_goals,
    write_round_rows,
)

from environments.types import Action, Candidate, Observation
from tasks import validate
from tasks.errors import GateError, RecordError
from tasks.files import read_json, write_json
from tasks.records import AgentRow, Origin, RewardRow, Trajectory

# Great Expectations imports deprecated modules of the standard library.
pytestmark = pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning")

ROWS = Path("data/round/rows")
SCREEN = "the screenshot is there and is a picture"
FAR, DEEP = 'click button "OK" 500,50', 'click button "OK" 50,500'


@dataclass
class Round:
    """What the rows folder is to hold: trajectory i has agent rows 2i, 2i + 1 and reward rows 2i, 2i + 1."""

    trajectories: list[Trajectory]
    agent: list[AgentRow]
    reward: list[RewardRow]

    @classmethod
    def good(cls, size: int) -> Round:
        made = [trajectory(number, seed=10_000 + number) for number in range(size)]
        rows = [rows_of(item) for item in made]
        return cls(made, [row for a, _ in rows for row in a], [row for _, r in rows for row in r])

    def write(self) -> None:
        write_round_rows(ROWS, self.trajectories, self.agent, self.reward)


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty workspace about to run round 1, with one goal."""
    monkeypatch.chdir(tmp_path)
    write_goals(Path("data/goals"), goal())
    write_curriculum(Path("data/state/curriculum.json"), goal())


Change = Callable[[Trajectory], Trajectory]


def _episode(**changes: Any) -> Change:
    return lambda made: replace(made, episode=replace(made.episode, **changes))


def _step(**changes: Any) -> Change:
    def change(made: Trajectory) -> Trajectory:
        steps = (replace(made.episode.steps[0], **changes),)
        return replace(made, episode=replace(made.episode, steps=steps))

    return change


def _instance(**changes: Any) -> Change:
    def change(made: Trajectory) -> Trajectory:
        instance = replace(made.episode.instance, **changes)
        return replace(made, episode=replace(made.episode, instance=instance))

    return change


def _candidates(score: float) -> tuple[Candidate, ...]:
    return (Candidate(Action.click(OK), 1, score), Candidate(Action.parse(COMPLETE), 1, 0.5))


OF_TRAJECTORIES: list[tuple[str, Change]] = [
    ("the goal is named", _instance(goal=goal(""))),
    ("the goal is in the goal files", _instance(goal=goal("no-such"))),
    ("the round is this one", lambda made: replace(made, round=2)),
    ("a held-out goal instance is never trained on", _instance(seed=1_000_000)),
    ("the agent that acted is named", lambda made: replace(made, agent="")),
    ("the reward model that scored is named", lambda made: replace(made, reward="")),
    ("an evaluation episode is never trained on", lambda made: replace(made, origin=Origin.EVALUATION)),
    ("a continuation names what it continues", lambda made: replace(made, origin=Origin.CONTINUATION)),
    ("the instruction is there", _episode(instruction="")),
    ("an outcome reward is 0..1", _episode(outcome=1.5)),
    ("an outcome reward is 0..1", _episode(outcome=math.nan)),
]
OF_STEPS: list[tuple[str, Change]] = [
    ("a step reward is 0..1", _step(score=-0.1)),
    ("the lowest candidate score is 0..1", _step(candidates=_candidates(-0.1))),
    ("the highest candidate score is 0..1", _step(candidates=_candidates(1.1))),
    ("a point is within the width of its screenshot", _step(action=Action.parse(FAR))),
    ("a point is within the height of its screenshot", _step(action=Action.parse(DEEP))),
]
OF_BOTH_ROWS: list[tuple[str, dict[str, Any]]] = [
    ("its trajectory is among those of the rows", {"trajectory": "round-0001/click-ok/10000/99"}),
    ("the goal is named", {"goal": ""}),
    ("the goal is in the goal files", {"goal": "no-such"}),
    ("the round is this one", {"round": 3}),
    ("a held-out goal instance is never trained on", {"seed": 1_000_003}),
    ("a held-out goal instance is never trained on", {"seed": -1}),
    ("the agent that acted is named", {"agent": ""}),
    ("the reward model that scored is named", {"reward": ""}),
    ("the action can be read", {"action": "jump"}),
    ("a point is within the width of its screenshot", {"action": FAR}),
    ("a point is within the width of its screenshot", {"action": FAR.replace("click", "long_press")}),
    ("a point is within the height of its screenshot", {"action": DEEP}),
    ("a point is within the height of its screenshot", {"action": DEEP.replace("click", "swipe left")}),
]
OF_AGENT_ROWS = [*OF_BOTH_ROWS, ("what made the row is named", {"source": ""})]
OF_REWARD_ROWS = [
    *OF_BOTH_ROWS,
    ("what made the row is named", {"generator": ""}),
    ("the instruction is there", {"instruction": ""}),
]
# Broken by an id, by two rows together, by a step without a screen, or by the table: each has its own test.
ALONE = {
    "there is a row",
    "a row has an id",
    "an id names one row",
    "a step is 0 or more",
    "the step is one of its trajectory or the screen after it",
    SCREEN,
    "no two rows have the same trajectory, step, action",
    "no two rows have the same trajectory, step, action, instruction",
    "the share of positive rows is within validate.min_positive and validate.max_positive",
    "the columns are those of the record",
}
Broken = dict[tuple[str, str], list[str]]


def _found() -> Broken:
    """The rows broken on disk, by suite and rule."""
    from tasks.gates import check
    from tasks.gates.frames import read_frames
    from tasks.gates.suites import Bounds

    checks = check(read_frames(ROWS), Bounds(["click-ok"], 1, params()), validate.DOCS)
    return {(item.suite, item.rule): list(item.broken) for item in checks if not item.success}


def _message() -> str:
    with pytest.raises(GateError) as caught:
        validate.run(params())
    assert not validate.VALIDATION.exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_round_passes_and_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    Round.good(3).write()
    validate.run(params())
    first = validate.VALIDATION.read_bytes()
    assert str(tmp_path).encode() not in first
    validate.run(params())
    assert validate.VALIDATION.read_bytes() == first
    assert (validate.DOCS / "index.html").is_file()
    assert len(list(validate.DOCS.rglob("validations/**/*.html"))) == 4  # those of the run before are gone


def test_its_params_are_all_that_it_reads() -> None:
    Round.good(3).write()
    used = params()
    with only_declared_params("validate"):
        validate.run(used)


def test_the_report_says_what_was_seen() -> None:
    Round.good(3).write()
    validate.run(params())
    report = read_json(validate.VALIDATION)
    assert list(report) == ["agent_rows", "reward_rows", "steps", "trajectories"]
    assert all(item["success"] for suite in report.values() for item in suite)
    balance = report["reward_rows"][-1]
    assert balance["expectation"] == "expect_column_mean_to_be_between"
    assert (balance["columns"], balance["observed"]) == (["label"], 0.5)
    clicks = next(item for item in report["steps"] if "width of" in item["rule"])
    assert clicks["columns"] == ["width", "x"]
    assert clicks["observed"] == {"rows": 3, "broken": 0}


def test_demonstrations_need_no_models() -> None:
    small = Round.good(2)
    small.trajectories = [
        replace(made, origin=Origin.DEMONSTRATION, agent="", reward="") for made in small.trajectories
    ]
    small.agent = [replace(row, agent="", reward="") for row in small.agent]
    small.reward = [replace(row, agent="", reward="") for row in small.reward]
    small.write()
    assert _found() == {}


def test_each_bad_trajectory_and_step_is_named_by_its_rule_alone() -> None:
    changes = [("trajectories", *item) for item in OF_TRAJECTORIES] + [("steps", *item) for item in OF_STEPS]
    small, expected = Round.good(len(changes)), Broken()
    for place, (suite, words, change) in enumerate(changes):
        made = change(small.trajectories[place])
        small.trajectories[place] = made
        expected.setdefault((suite, words), []).append(made.id + ("#0" if suite == "steps" else ""))
    small.write()
    assert _found() == expected


def test_each_bad_row_is_named_by_its_rule_alone() -> None:
    size = max(len(OF_AGENT_ROWS), len(OF_REWARD_ROWS))
    small, expected = Round.good(size), Broken()
    for place, (words, changes) in enumerate(OF_AGENT_ROWS):
        row = small.agent[2 * place] = replace(small.agent[2 * place], **changes)
        expected.setdefault(("agent_rows", words), []).append(row.id)
    for place, (words, changes) in enumerate(OF_REWARD_ROWS):
        judgement = small.reward[2 * place] = replace(small.reward[2 * place], **changes)
        expected.setdefault(("reward_rows", words), []).append(judgement.id)
    for suite, row_id in (("agent_rows", small.agent[0].id), ("reward_rows", small.reward[0].id)):
        expected[suite, SCREEN] = [row_id]  # whose trajectory is not there, so it has no screen either
    small.write()
    assert _found() == expected


def test_duplicates_missing_ids_and_steps_outside_are_named() -> None:
    small = Round.good(4)
    small.agent[0] = replace(small.agent[0], step=-1)
    small.agent[2] = replace(small.agent[2], step=2)
    small.agent += [replace(small.agent[4], id="twin"), replace(small.agent[1], action="wait", id="")]
    small.reward += [replace(small.reward[0], id="twin"), replace(small.reward[0], action="wait")]
    small.write()
    agent, reward = small.agent, small.reward
    assert _found() == {
        ("agent_rows", "a row has an id"): ["row 9"],
        ("agent_rows", "a step is 0 or more"): [agent[0].id],
        ("agent_rows", "the step is one of its trajectory or the screen after it"): [agent[2].id],
        ("agent_rows", SCREEN): [agent[0].id, agent[2].id],
        ("agent_rows", "no two rows have the same trajectory, step, action"): [agent[4].id, "twin"],
        ("reward_rows", "an id names one row"): [reward[0].id, reward[0].id],
        ("reward_rows", "no two rows have the same trajectory, step, action, instruction"): [
            reward[0].id,
            "twin",
        ],
    }


def test_trajectories_without_an_id_or_with_one_id_are_named() -> None:
    small = Round.good(3)
    small.trajectories += [
        replace(small.trajectories[0], id=""),
        replace(small.trajectories[1], round=1),
        _step(observation=Observation(b"not a PNG", ()))(replace(small.trajectories[2], id="odd")),
    ]
    small.write()
    same = small.trajectories[1].id
    assert _found() == {
        ("trajectories", "a row has an id"): ["row 3"],
        ("trajectories", "an id names one row"): [same, same],
        ("steps", SCREEN): ["odd#0"],
    }


def test_every_rule_is_tested() -> None:
    from tasks.gates import suites

    bounds = suites.Bounds(["click-ok"], 1, params())
    every = [
        suites.trajectories(bounds),
        suites.steps(),
        suites.agent_rows(bounds),
        suites.reward_rows(bounds),
    ]
    rules = {suites.rule(expectation) for suite in every for expectation in suite}
    planted = {words for words, _ in [*OF_TRAJECTORIES, *OF_STEPS]}
    planted |= {words for words, _ in [*OF_AGENT_ROWS, *OF_REWARD_ROWS]}
    assert planted | ALONE == {words for words in rules if not words.endswith("in every row")}


def test_empty_datasets_are_named() -> None:
    Round([], [], []).write()
    empty = {suite for suite, rule in _found() if rule == "there is a row"}
    assert empty == {"trajectories", "steps", "agent_rows", "reward_rows"}


def test_a_round_that_accepted_nothing_stops() -> None:
    small = Round.good(2)
    small.agent.clear()
    small.write()
    expected = "agent_rows: expect_table_row_count_to_be_between (the table): there is a row; found 0"
    assert _message().startswith(expected)


def test_one_sided_labels_stop_the_round() -> None:
    small = Round.good(3)
    small.reward = [replace(row, label=True) for row in small.reward]
    small.write()
    assert _message().startswith(
        "reward_rows: expect_column_mean_to_be_between (label): the share of positive rows is within "
        "validate.min_positive and validate.max_positive; found 1.0; see .ratchet/data_docs/index.html"
    )


def test_many_bad_rows_are_named_in_one_line_and_no_old_result_stays() -> None:
    small = Round.good(12)
    write_json(validate.VALIDATION, {"of": "another round"})
    small.reward = [replace(row, instruction="") for row in small.reward]
    small.write()
    ids = [row.id for row in small.reward]
    assert _message() == (
        "reward_rows: expect_column_values_to_not_be_null (instruction): the instruction is there; "
        f"broken by 24: {', '.join(ids[:10])}, ...; see .ratchet/data_docs/index.html, "
        "mend what `dvc repro filter` makes and run `dvc repro validate`"
    )
    assert (validate.DOCS / "index.html").is_file()


def _rewrite(change: Callable[[pa.Table], pa.Table]) -> None:
    Round.good(2).write()
    path = ROWS / "agent_rows.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def test_a_missing_value_is_named_by_column() -> None:
    def blank(table: pa.Table) -> pa.Table:
        steps = pa.array([None, *table["step"].to_pylist()[1:]], pa.int64())
        return table.set_column(table.schema.get_field_index("step"), "step", steps)

    _rewrite(blank)
    assert "(step): step is int64 in every row; found float64" in _message()


def test_a_missing_column_is_named() -> None:
    _rewrite(lambda table: table.drop_columns(["source"]))
    assert "(source): source is str in every row; it could not be checked" in _message()


def test_a_strange_column_is_named() -> None:
    _rewrite(lambda table: table.append_column("verdict", pa.array([True] * len(table))))
    message = _message()
    assert message.startswith("agent_rows: expect_table_columns_to_match_ordered_list")
    assert "'verdict'" in message


def test_a_broken_file_is_named() -> None:
    Round.good(2).write()
    (ROWS / "reward_rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordError, match=r"data/round/rows/reward_rows.parquet: .*`dvc repro filter`"):
        validate.run(params())
