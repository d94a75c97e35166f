"""Rows of demonstrations played otherwise (:mod:`tasks.variations`): what failed for it, and what did not."""

from __future__ import annotations

from collections.abc import Iterator

from environments.types import COMPLETE
from tasks.generators import Generator
from tasks.records import Origin, Trajectory
from tasks.reward_data.draft import MADE_UP, Draft, unsure


def varied(trajectory: Trajectory) -> Iterator[Draft]:
    """The rows about such a path: its end is one or is none, and so are the actions right, or the last one wrong."""
    match trajectory.origin:
        case Origin.SPOILED:
            yield from _rows(trajectory, len(trajectory.episode.acts) - 1, Generator.SPOILED, label=False)
        case Origin.REORDERED:
            yield from _rows(trajectory, 0, Generator.EQUIVALENT, label=True)
        case Origin.SLIPPED:
            yield from _rows(trajectory, 1, Generator.RECOVERED, label=True)


def _rows(trajectory: Trajectory, first: int, generator: Generator, *, label: bool) -> Iterator[Draft]:
    """From a step on, and of the end."""
    actions = [*(step.action for step in trajectory.episode.acts), COMPLETE]
    for step, action in enumerate(actions[first:], first):
        yield Draft(trajectory, step, action, generator, label, unsure(None) if label else MADE_UP)
