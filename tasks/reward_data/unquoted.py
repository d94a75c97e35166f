"""Rows of paths that ended without what their instruction quotes (:mod:`tasks.quoted`): that end is none.

It is the one thing to be learnt of a failed path that no rollout shows and no opinion of the reward model is: a rule
says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from environments.types import COMPLETE, End
from tasks.generators import Generator
from tasks.quoted import missing
from tasks.records import Origin, Trajectory
from tasks.reward_data.draft import Draft, unsure

_ENDED = (End.COMPLETED, End.WORLD, End.STEP_LIMIT)


def unquoted(trajectory: Trajectory) -> Iterator[Draft]:
    """`complete` on the last screen of such a path is wrong, and so is the action after which its world closed."""
    episode = trajectory.episode
    explored = trajectory.origin in (Origin.SEARCH, Origin.CONTINUATION)
    if not explored or episode.end not in _ENDED or not missing(episode):
        return
    place = len(episode.acts)
    yield Draft(trajectory, place, COMPLETE, Generator.UNQUOTED, False, 1 - unsure(episode.outcome))
    if episode.end is End.WORLD and episode.acts:
        last = episode.acts[-1]
        yield Draft(trajectory, place - 1, last.action, Generator.UNQUOTED, False, 1 - unsure(last.score))
