"""Records on disk: what was written is read again, and what is not whole is named."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hand_built import MAIL, NAME, SUBMIT, click, picture, trajectory
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.types import (
    Action,
    Candidate,
    Element,
    End,
    Episode,
    Goal,
    Instance,
    Kind,
    Observation,
    Step,
)
from tasks.errors import RecordError
from tasks.records import (
    AgentRow,
    Origin,
    RewardRow,
    Trajectory,
    read_rows,
    read_trajectories,
    write_rows,
    write_trajectories,
)

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
SCORES = st.none() | st.floats(0, 1)
ELEMENTS = st.builds(
    Element,
    st.sampled_from(["button", "textbox"]),
    st.text(),
    st.tuples(*[st.integers(0, 999)] * 4),
    st.sampled_from([(), ("on",), ("focus", "on")]),
)
ACTIONS = st.one_of(
    ELEMENTS.map(Action.click),
    ELEMENTS.map(Action(Kind.LONG_PRESS, (0, 0), ("", "")).on),
    st.builds(Action(Kind.SWIPE, (0, 0), ("", ""), "up").on, ELEMENTS),
    st.builds(Action, st.just(Kind.TYPE), text=st.text()),
    st.builds(Action, st.just(Kind.PRESS), text=st.sampled_from(["Enter", "é", "ArrowDown"])),
    st.builds(Action, st.just(Kind.SCROLL), text=st.sampled_from(["up", "right"])),
    st.sampled_from([Action(Kind.WAIT), Action(Kind.COMPLETE)]),
)
SCREENS = st.builds(
    Observation,
    st.sampled_from([b"", picture(0), picture(200)]),  # a world that broke at its start shows nothing
    st.lists(ELEMENTS, max_size=3).map(tuple),
)
STEPS = st.builds(
    Step,
    SCREENS,
    ACTIONS,
    st.lists(st.builds(Candidate, ACTIONS, st.integers(1, 64), SCORES), max_size=3).map(tuple),
    SCORES,
)
INSTANCES = st.builds(Instance, st.builds(Goal, st.text(), st.text(), st.text(), INT32, INT32), INT64)
EPISODES = st.builds(
    Episode,
    INSTANCES,
    st.text(),
    st.lists(STEPS, max_size=3).map(tuple),
    SCREENS,
    st.sampled_from(End),
    SCORES,
)
TRAJECTORIES = st.builds(
    Trajectory,
    st.text(),
    INT32,
    st.sampled_from(Origin),
    EPISODES,
    st.text(),
    st.text(),
    st.text(),
    st.integers(0, 99),
    st.none() | st.booleans(),
)
AGENT_ROWS = st.builds(AgentRow, step=INT64, seed=INT64, round=INT64)
REWARD_ROWS = st.builds(RewardRow, step=INT64, seed=INT64, round=INT64)
PATHS = [trajectory(click(NAME), click(SUBMIT)), trajectory(click(MAIL), seed=1, shade=100)]


@settings(deadline=None, max_examples=40)
@given(st.lists(TRAJECTORIES, max_size=4))
def test_trajectories_are_read_as_they_were_written(trajectories: list[Trajectory]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_trajectories(Path(folder), trajectories)
        assert read_trajectories(Path(folder)) == trajectories


@settings(deadline=None, max_examples=30)
@given(st.lists(AGENT_ROWS, max_size=4), st.lists(REWARD_ROWS, max_size=4))
def test_rows_are_read_as_they_were_written(for_agent: list[AgentRow], for_reward: list[RewardRow]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        write_rows(file, AgentRow, for_agent)
        assert read_rows(file, AgentRow) == for_agent
        write_rows(file, RewardRow, for_reward)
        assert read_rows(file, RewardRow) == for_reward


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_trajectories(tmp_path, PATHS)
    return tmp_path


def test_the_same_records_are_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    write_trajectories(again, PATHS)
    for file in again.iterdir():
        assert file.read_bytes() == (folder / file.name).read_bytes()


def test_a_screenshot_is_stored_once(folder: Path) -> None:
    screens = {step.observation.screenshot for path in PATHS for step in path.episode.steps}
    screens |= {path.episode.last.screenshot for path in PATHS}
    assert sorted(pq.read_table(folder / "screenshots.parquet")["png"].to_pylist()) == sorted(screens)


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _scramble(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:40] + bytes(byte ^ 255 for byte in whole[40:80]) + whole[80:])


def _replace_by_text(file: Path) -> None:
    file.write_text("version https://git-lfs.github.com/spec/v1\n")


@pytest.mark.parametrize("name", ["trajectories.parquet", "screenshots.parquet"])
@pytest.mark.parametrize("spoil", [_truncate, _scramble, _replace_by_text, Path.unlink])
def test_a_broken_file_is_named(folder: Path, name: str, spoil: Callable[[Path], None]) -> None:
    spoil(folder / name)
    with pytest.raises(RecordError, match=r"make it again with `dvc repro`$") as error:
        read_trajectories(folder)
    assert str(error.value).startswith(f"{folder / name}: ")


@pytest.mark.parametrize("name", ["trajectories.parquet", "screenshots.parquet"])
@pytest.mark.parametrize(("metadata", "said"), [({"schema_version": "99"}, "99"), ({}, "none")])
def test_another_schema_version_is_refused(folder: Path, name: str, metadata: dict[str, str], said: str) -> None:
    table = pq.read_table(folder / name).replace_schema_metadata(metadata)
    pq.write_table(table, folder / name)
    with pytest.raises(RecordError) as error:
        read_trajectories(folder)
    assert str(error.value).startswith(f"{folder / name}: schema version {said}, this Ratchet reads 1")


def test_rows_of_another_schema_version_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "agent_rows.parquet"
    write_rows(file, AgentRow, [])
    pq.write_table(pq.read_table(file).replace_schema_metadata({"schema_version": "0"}), file)
    with pytest.raises(RecordError, match="schema version 0, this Ratchet reads 1") as error:
        read_rows(file, AgentRow)
    assert str(file) in str(error.value)


def test_missing_rows_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"reward_rows\.parquet"):
        read_rows(tmp_path / "reward_rows.parquet", RewardRow)


def test_a_missing_screenshot_is_named(folder: Path) -> None:
    file = folder / "screenshots.parquet"
    pq.write_table(pq.read_table(file).slice(0, 2), file)
    with pytest.raises(RecordError, match=r"round-0001/form/./0: screenshot [0-9a-f]{16} is not there") as error:
        read_trajectories(folder)
    assert str(error.value).startswith(str(folder))


def test_a_screenshot_with_other_content_is_named(folder: Path) -> None:
    file = folder / "screenshots.parquet"
    table = pq.read_table(file)
    pngs = table["png"].to_pylist()
    pq.write_table(table.set_column(1, table.schema.field(1), [[pngs[1], *pngs[1:]]]), file)
    name = table["hash"][0].as_py()
    with pytest.raises(RecordError, match=f"screenshot {name} has other content") as error:
        read_trajectories(folder)
    assert str(error.value).startswith(f"{file}: ")


def test_not_scored_is_not_zero(tmp_path: Path) -> None:
    paths = [trajectory(click(NAME), outcome=outcome, place=place) for place, outcome in enumerate((None, 0.0))]
    write_trajectories(tmp_path, paths)
    assert [path.episode.outcome for path in read_trajectories(tmp_path)] == [None, 0.0]


def test_a_continuation_keeps_what_it_continues(tmp_path: Path) -> None:
    path = replace(PATHS[0], origin=Origin.CONTINUATION, parent="round-0001/form/0/9", shared=1)
    write_trajectories(tmp_path, [path])
    (read,) = read_trajectories(tmp_path)
    assert (read.parent, read.shared) == ("round-0001/form/0/9", 1)
