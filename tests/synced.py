"""What is put on disk for good, and when: the calls that a power cut is survived by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

RENAMED = "renamed"


def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int | str]:
    """A list that gets the inode of whatever is synced, and :data:`RENAMED` at each rename."""
    done: list[int | str] = []
    sync, rename = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        done.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        done.append(RENAMED)
        return rename(path, target)

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    return done


def inodes(*paths: Path) -> list[int]:
    return sorted(path.stat().st_ino for path in paths)
