from __future__ import annotations

from pathlib import Path

import pytest
from synced import RENAMED, inodes, syncs

from tasks.files import digest, read_json, write_json, write_whole


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "rows"
    target.mkdir()
    (target / "old").write_text("old")

    def half(folder: Path) -> None:
        folder.mkdir()
        (folder / "new").write_text("new")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_whole(target, half)
    assert [file.name for file in target.iterdir()] == ["old"]


def test_what_a_kill_left_aside_does_not_reach_the_next_write(tmp_path: Path) -> None:
    left = tmp_path / ".rows.part"
    left.mkdir()
    (left / "half").write_text("half")

    def whole(folder: Path) -> None:
        folder.mkdir()
        (folder / "new").write_text("new")

    write_whole(tmp_path / "rows", whole)
    assert [path.name for path in tmp_path.rglob("*")] == ["rows", "new"]


def test_each_file_of_a_folder_is_on_disk_before_the_folder_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = syncs(monkeypatch)

    def some(folder: Path) -> None:
        (folder / "deep").mkdir(parents=True)
        for name in ("a", "b", "deep/c"):
            (folder / name).write_text(name)

    rows = tmp_path / "rows"
    write_whole(rows, some)
    *files, renamed, parent = done
    assert sorted(map(int, files)) == inodes(rows / "a", rows / "b", rows / "deep/c")
    assert renamed == RENAMED
    assert [parent] == inodes(tmp_path)


def test_a_file_is_on_disk_before_it_is_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = syncs(monkeypatch)
    write_json(tmp_path / "a", {})
    assert done == [*inodes(tmp_path / "a"), RENAMED, *inodes(tmp_path)]


def test_json_is_the_same_bytes_for_the_same_value(tmp_path: Path) -> None:
    write_json(tmp_path / "a", {"b": 1, "a": [None, "é"]})
    write_json(tmp_path / "b", {"a": [None, "é"], "b": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_json(tmp_path / "a") == {"a": [None, "é"], "b": 1}


def test_a_digest_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("same")
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    (tmp_path / "two" / "x").rename(tmp_path / "two" / "y")
    assert digest(tmp_path / "one") != digest(tmp_path / "two")
