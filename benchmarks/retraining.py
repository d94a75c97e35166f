"""What the benchmarks share that train a round's champions again."""

from __future__ import annotations

from pathlib import Path

from models.training import Schedule
from tasks.curriculum.plan import Plan
from tasks.files import STATE
from tasks.params import Params, Train
from tasks.versions import tag_of


def began_with(role: str) -> Path:
    """The champion that the round began with."""
    return next(one for one in (STATE / "before" / role, STATE / role) if one.exists())


def earlier() -> list[Path]:
    """The parts of the corpus that the round has not made itself."""
    return sorted(part for part in (STATE / "corpus").iterdir() if part.name != tag_of(Plan.read().round))


def schedule(settings: Train, params: Params) -> Schedule:
    """As the stages train."""
    return Schedule(settings.updates, settings.batch_rows, settings.learning_rate, params.seed)


def quiet(update: int, loss: float) -> None:
    """The table is the progress."""
