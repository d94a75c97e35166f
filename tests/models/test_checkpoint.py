"""The file that an interrupted training goes on from is whole, or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from synced import RENAMED, inodes, syncs

from models.checkpoint import put


def test_tensors_are_on_disk_before_they_are_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = syncs(monkeypatch)
    kept = tmp_path / "eyes" / "kept.safetensors"
    for value in (1.0, 2.0):
        done.clear()
        put({"a": torch.tensor(value)}, kept)
        assert done == [*inodes(kept), RENAMED]
    assert load_file(kept)["a"].item() == 2.0
    assert list(kept.parent.iterdir()) == [kept]
