"""The explored paths played again, for the world's verdict on them: how far the reward model led exploration astray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path

from environments.registry import open_world
from environments.types import End, WorldError
from tasks.files import ROUND
from tasks.progress import log
from tasks.records import Trajectory, read_trajectories
from tasks.search.walker import Walker
from tasks.workers import JSON, crew, spread

_NOT_ENDED = (End.PRUNED, End.CRASHED)


def judge_explored(processes: int, kept: Path) -> dict[str, bool]:
    """The world's verdict on each explored path that came to an end, continuations too, by the trajectory's id.

    A path that does not play as it was recorded is left out, with a warning; one that was asked for something else
    than the world asks for is too, for the world cannot say.
    """
    paths = [one for one in read_trajectories(ROUND / "scored") if one.episode.end not in _NOT_ENDED]
    groups = groupby(paths, key=lambda trajectory: trajectory.episode.instance.name)
    units = [(f"replayed-{name}.json", list(group)) for name, group in groups]
    with crew(make_replayer, (), processes) as workers:
        return dict(spread("replay", workers, units, kept, JSON))


def make_replayer() -> Callable[[Sequence[Trajectory]], list[tuple[str, bool]]]:
    """What plays the paths of one goal instance again."""
    return lambda paths: list(_replayed(paths))


def _replayed(paths: Sequence[Trajectory]) -> Iterator[tuple[str, bool]]:
    instance = paths[0].episode.instance
    with closing(open_world(instance.goal.world)) as world:
        walker = Walker(world, instance)
        for path in paths:
            try:
                if path.episode.instruction == walker.start.instruction:
                    yield path.id, walker.verdict(path.episode)
            except WorldError as error:
                log.warning("%s: not judged by the world: %s", path.id, error)
