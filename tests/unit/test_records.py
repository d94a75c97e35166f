"""Records on disk: what was written is read again, and what is not whole is named."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
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
from tasks import records
from tasks.errors import RecordError
from tasks.records import (
    AgentRow,
    Origin,
    RewardRow,
    Trajectory,
    read_rows,
    read_trajectories,
    shards,
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


@settings(max_examples=40)
@given(st.lists(TRAJECTORIES, max_size=4))
def test_trajectories_are_read_as_they_were_written(trajectories: list[Trajectory]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_trajectories(Path(folder), trajectories)
        assert list(read_trajectories(Path(folder))) == trajectories


@settings(max_examples=30)
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
    """Two trajectories in one shard."""
    write_trajectories(tmp_path, PATHS)
    return tmp_path


SHARD = "steps-00000-of-00001.parquet"


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[Trajectory]]:
    """Five trajectories of two screens in shards of four rows."""
    monkeypatch.setattr(records, "SHARD_ROWS", 4)
    paths = [trajectory(click(NAME), seed=seed, shade=10 * (seed // 3)) for seed in range(5)]
    write_trajectories(tmp_path, paths)
    return tmp_path, paths


def test_the_same_records_are_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    write_trajectories(again, PATHS)
    for file in again.iterdir():
        assert file.read_bytes() == (folder / file.name).read_bytes()


def test_each_screenshot_is_stored_once(tmp_path: Path) -> None:
    noise = random.Random(0)
    screens = [noise.randbytes(5000) for _ in range(20)]  # nothing makes these smaller
    paths = [_over(noise.choices(screens, k=9), seed) for seed in range(30)]
    seen = {step.observation.screenshot for path in paths for step in path.episode.steps}
    seen |= {path.episode.last.screenshot for path in paths}
    write_trajectories(tmp_path, paths)
    whole = (tmp_path / SHARD).read_bytes()
    assert [whole.count(png) for png in seen] == [1] * len(seen)
    assert len(whole) < 1.2 * sum(map(len, seen))


def test_any_reader_of_parquet_finds_the_image_in_its_row(folder: Path) -> None:
    rows = pq.read_table(folder / SHARD).to_pylist()
    shown = [[*(step.observation for step in path.episode.steps), path.episode.last] for path in PATHS]
    assert [row["screenshot"]["bytes"] for row in rows] == [screen.screenshot for path in shown for screen in path]
    taken = [[*(str(step.action) for step in path.episode.steps), None] for path in PATHS]
    assert [row["action"] for row in rows] == [action for path in taken for action in path]
    assert [row["trajectory"] for row in rows] == [PATHS[0].id] * 3 + [PATHS[1].id] * 2


def test_a_screenshot_is_named_by_its_content(folder: Path) -> None:
    for image in pq.read_table(folder / SHARD)["screenshot"].to_pylist():
        assert image["path"] == f"{hashlib.sha256(image['bytes']).hexdigest()[:16]}.png"


def test_a_trajectory_lies_in_one_shard(three: tuple[Path, list[Trajectory]]) -> None:
    folder, paths = three
    assert [file.name for file in shards(folder)] == [f"steps-0000{place}-of-00003.parquet" for place in range(3)]
    assert [pq.read_metadata(file).num_rows for file in shards(folder)] == [4, 4, 2]
    assert list(read_trajectories(folder)) == paths


def test_a_shard_is_closed_when_its_screenshots_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "SHARD_BYTES", 10_000)
    noise = random.Random(0)
    shared = noise.randbytes(6000)
    paths = [_over([shared, shared], seed) for seed in range(4)]  # one screenshot between them
    paths += [_over([noise.randbytes(6000)], seed) for seed in range(4, 7)]
    write_trajectories(tmp_path, paths)
    assert [pq.read_metadata(file).num_rows for file in shards(tmp_path)] == [9, 2]
    assert list(read_trajectories(tmp_path)) == paths


def test_trajectories_are_read_before_all_shards_are(three: tuple[Path, list[Trajectory]]) -> None:
    folder, paths = three
    _truncate(shards(folder)[1])
    reader = read_trajectories(folder)
    assert [next(reader), next(reader)] == paths[:2]
    with pytest.raises(RecordError, match=r"steps-00001-of-00003\.parquet: "):
        next(reader)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_missing_shard_is_named(three: tuple[Path, list[Trajectory]], place: int) -> None:
    folder, _ = three
    missing = shards(folder)[place]
    missing.unlink()
    with pytest.raises(RecordError, match="it is not there; fetch it again with `ratchet pull`") as error:
        list(read_trajectories(folder))
    assert str(error.value).startswith(f"{missing}: ")


def test_what_was_not_written_to_its_end_is_no_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "SHARD_ROWS", 2)

    def breaking() -> Iterator[Trajectory]:
        yield from PATHS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_trajectories(tmp_path, breaking())
    assert list(tmp_path.iterdir())  # the first shard was written
    with pytest.raises(RecordError, match=r"it has no steps-\*\.parquet"):
        list(read_trajectories(tmp_path))


def _over(screens: list[bytes], seed: int) -> Trajectory:
    """A trajectory that shows these screens, the last one at its end."""
    steps = tuple(Step(Observation(png, ()), click(NAME)) for png in screens[:-1])
    path = trajectory(seed=seed)
    return replace(path, episode=replace(path.episode, steps=steps, last=Observation(screens[-1], ())))


COPIES = """
import random, resource, sys
from pathlib import Path
from test_records import _over
from tasks import records
records.SHARD_BYTES = 2**20
for count in (50, 500):
    noise = random.Random(0)
    folder, copy = (Path(sys.argv[1]) / f"{name}-{count}" for name in ("first", "copy"))
    folder.mkdir(), copy.mkdir()
    paths = (_over([noise.randbytes(40_000) for _ in range(5)], seed) for seed in range(count))
    records.write_trajectories(folder, paths)
    records.write_trajectories(copy, records.read_trajectories(folder))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_ten_times_as_many_trajectories_take_no_more_memory(tmp_path: Path) -> None:
    """10 MB and 100 MB of screenshots, written, read and written again; at most 16 MB lie between the peaks."""
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    command = [sys.executable, "-c", COPIES, str(tmp_path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True)
    sizes = [sum(file.stat().st_size for file in shards(tmp_path / f"copy-{count}")) for count in (50, 500)]
    assert sizes[0] > 10_000_000
    assert sizes[1] > 100_000_000
    few, many = map(int, done.stdout.split())
    assert many - few < 16


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _scramble(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:40] + bytes(byte ^ 255 for byte in whole[40:80]) + whole[80:])


def _change_a_screenshot(file: Path) -> None:
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    (pictures,) = [column for column in columns if column.path_in_schema == "screenshot.bytes"]
    whole, place = file.read_bytes(), (pictures.dictionary_page_offset + pictures.data_page_offset) // 2
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])


def _replace_by_text(file: Path) -> None:
    file.write_text("version https://git-lfs.github.com/spec/v1\n")


@pytest.mark.parametrize("spoil", [_truncate, _scramble, _change_a_screenshot, _replace_by_text])
def test_a_broken_shard_is_named(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder / SHARD)
    with pytest.raises(RecordError, match=r"make it again with `dvc repro`$") as error:
        list(read_trajectories(folder))
    assert str(error.value).startswith(f"{folder / SHARD}: ")


@pytest.mark.parametrize(("metadata", "said"), [({"schema_version": "1"}, "1"), ({}, "none")])
def test_another_schema_version_is_refused(folder: Path, metadata: dict[str, str], said: str) -> None:
    table = pq.read_table(folder / SHARD).select(["trajectory", "step"]).replace_schema_metadata(metadata)
    pq.write_table(table, folder / SHARD)
    with pytest.raises(RecordError, match="make it again with `dvc repro -f`") as error:
        list(read_trajectories(folder))
    assert str(error.value).startswith(f"{folder / SHARD}: schema version {said}, this Ratchet reads 2")


def test_rows_of_another_schema_version_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "agent_rows.parquet"
    write_rows(file, AgentRow, [])
    pq.write_table(pq.read_table(file).replace_schema_metadata({"schema_version": "0"}), file)
    with pytest.raises(RecordError, match="schema version 0, this Ratchet reads 2") as error:
        read_rows(file, AgentRow)
    assert str(file) in str(error.value)


def test_missing_rows_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"reward_rows\.parquet"):
        read_rows(tmp_path / "reward_rows.parquet", RewardRow)


@pytest.mark.parametrize("broken", [_truncate, _scramble, _replace_by_text])
def test_broken_rows_are_named(tmp_path: Path, broken: Callable[[Path], None]) -> None:
    file = tmp_path / "agent_rows.parquet"
    write_rows(file, AgentRow, [AgentRow("a#0", "a", 0, "form", 0, 1, "wait", "accepted", "", "")] * 50)
    broken(file)
    with pytest.raises(RecordError) as error:
        read_rows(file, AgentRow)
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
