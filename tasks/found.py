"""Stage found: the first state - agent, reward model, corpus and curriculum."""

from __future__ import annotations

from pathlib import Path

from environments.registry import load_goals
from tasks.curriculum import Curriculum
from tasks.files import DEMONSTRATIONS, SEED, copy, write_whole
from tasks.params import Params


def run(params: Params) -> None:
    """Put the warm models and the demonstrations together. Writes ``data/seed/state``."""
    write_whole(SEED / "state", lambda aside: _assemble(aside, params))


def _assemble(folder: Path, params: Params) -> None:
    folder.mkdir()
    for name in ("agent", "reward"):
        copy(SEED / name, folder / name)
    copy(DEMONSTRATIONS, folder / "corpus" / "seed")
    Curriculum.first(list(load_goals(Path(params.goals)))).write(folder / "curriculum.json")
