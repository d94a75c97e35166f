"""The Python in docs/data.md runs as it stands there, on a round made by hand."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import datasets
import pytest
from PIL import Image
from small_round import agent_row, reward_row, trajectory, write_round_rows

from tasks.records import Trajectory

PAGE = (Path(__file__).parents[2] / "docs/data.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trajectory]:
    """Two trajectories under ``data/round/rows``, with rows beside them."""
    monkeypatch.chdir(tmp_path)
    paths = [trajectory(number, seed=10_000 + number) for number in range(2)]
    write_round_rows(
        Path("data/round/rows"),
        paths,
        [agent_row(path) for path in paths],
        [reward_row(path, "complete", label=False) for path in paths],
    )
    return paths


def _run(word: str) -> dict[str, Any]:
    """What is left after the one block with a word in it."""
    (block,) = [block for block in BLOCKS if word in block]
    names: dict[str, Any] = {}
    exec(block, names)
    return names


def _picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png))


def test_datasets_opens_the_shards_as_images(
    rows: list[Trajectory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    names = _run("load_dataset")
    assert names["steps"].features["screenshot"] == datasets.Image()
    shown = [image.tobytes() for image in names["steps"]["screenshot"]]
    screens = [screen for path in rows for screen in (path.episode.steps[0].observation, path.episode.last)]
    assert shown == [_picture(screen.screenshot).tobytes() for screen in screens]
    assert names["taken"]["action"][:] == [str(path.episode.steps[0].action) for path in rows]
    assert names["rows"]["trajectory"][:] == [path.id for path in rows]
    stream = datasets.load_dataset("data/round/rows", streaming=True, split="train")
    assert [row["screenshot"].size for row in stream] == [(160, 210)] * 4


def test_pandas_opens_the_shards(rows: list[Trajectory]) -> None:
    names = _run("read_parquet")
    assert list(names["likely"]) == [path.id for path in rows]
    assert names["shown"].screenshot[1]["bytes"] == rows[0].episode.last.screenshot


def test_ratchet_reads_its_own(rows: list[Trajectory], capsys: pytest.CaptureFixture[str]) -> None:
    _run("read_trajectories")
    expected = [f"{path.id} {[str(step.action) for step in path.episode.steps]}" for path in rows]
    assert capsys.readouterr().out.splitlines() == expected
