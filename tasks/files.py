"""Files that are whole or absent, and the fixed places of a workspace."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEED = Path("data/seed")
STATE = Path("data/state")
ROUND = Path("data/round")
WORK = Path(".ratchet")
DEMONSTRATIONS = SEED / "demonstrations"
REHEARSAL = SEED / "rehearsal"
KNOWN = STATE / "corpus" / "seed"  # the demonstrations, as rounds have them
CALIBRATION = "calibration"  # in the demonstrations: what nothing is trained on


def log_of(name: str) -> Path:
    """Where a stage, or a server that was started for one or for a person, writes its log."""
    return WORK / "logs" / f"{name}.log"


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` make a file or directory aside, then rename it into place (fsynced).

    A reader never sees half of it, whatever instant the process dies at.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part")
    remove(aside)
    write(aside)
    for file in [aside] if aside.is_file() else [file for file in aside.rglob("*") if file.is_file()]:
        _fsync(file)
    if path.is_dir():
        remove(path)
    aside.replace(path)
    _fsync(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write JSON with sorted keys, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text, whole or not at all."""

    def write(aside: Path) -> None:
        aside.write_text(text)

    write_whole(path, write)


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text())


def remove(path: Path) -> None:
    """Delete a file or directory if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def copy(source: Path, target: Path) -> None:
    """Copy contents alone, of a file or directory: what DVC checks out may be read-only or a link."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=shutil.copyfile)
    else:
        shutil.copyfile(source, target)


def digest(path: Path) -> str:
    """Content hash of a file or of a directory's files and their names: 12 hex digits of SHA-256."""
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            total.update(str(file.relative_to(path)).encode())
            with file.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()[:12]


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
