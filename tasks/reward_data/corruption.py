"""Controlled corruption: when a solved path is over, and when it is not (UI-Genie 3.3).

Each `complete` that is right has its counterparts that are wrong: said too early, or for another goal. An
independent check of reward models for GUI agents found a near-constant liking for `terminate`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from environments.types import COMPLETE, Episode
from tasks.generators import Generator
from tasks.records import Trajectory
from tasks.reward_data.draft import MADE_UP, Draft, unsure
from tasks.reward_data.rule import siblings


def endings(
    trajectory: Trajectory, instructions: Mapping[str, Sequence[str]], max_negatives: int, seed: int
) -> Iterator[Draft]:
    """The rows about the end of a solved trajectory: right, too early, of another goal, gone past.

    ``instructions`` are those of each goal, by its id; another instance of the same goal is preferred.
    """
    episode = trajectory.episode
    done = episode.acts
    end = len(done)
    yield Draft(trajectory, end, COMPLETE, Generator.OUTCOME, True, unsure(episode.outcome))
    for step in range(end):
        ease = MADE_UP + end - 1 - step
        yield Draft(trajectory, step, COMPLETE, Generator.EARLY, False, ease)
    if others := _others(episode, instructions):
        instruction = random.Random(f"{seed}/{trajectory.id}").choice(others)
        yield Draft(trajectory, end, COMPLETE, Generator.CROSS_GOAL, False, MADE_UP + 0.5, instruction)
    last = done[-1].action
    further = islice(chain([last], siblings(episode.last, last)), max_negatives)
    for rank, action in enumerate(further):
        yield Draft(trajectory, end, action, Generator.PAST_END, False, MADE_UP + rank)


def _others(episode: Episode, instructions: Mapping[str, Sequence[str]]) -> list[str]:
    """Instructions that differ from the episode's own: of its goal, else of any."""
    of_goal = instructions.get(episode.instance.goal.id, ())
    return [other for other in of_goal if other != episode.instruction] or [
        other for of_any in instructions.values() for other in of_any if other != episode.instruction
    ]
