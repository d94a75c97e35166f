"""Labels for the steps of failed paths, by what could still be reached from them.

Math-Shepherd's hard estimate (Wang et al. 2024), as in UI-Genie 3.4: a step is good when any rollout from it
ends well. It is bad when none does though one from before it did: where nothing ends well, the agent may be at fault
and not the step (docs/decisions/0035-what-nothing-solved-tells-nothing.md). Nothing else is learned from a failed
path: that it failed is only the reward model's own verdict, which must not teach itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from environments.types import Action, End
from tasks.acceptance import Bar, rejections
from tasks.generators import Generator
from tasks.records import Origin, Trajectory
from tasks.reward_data.draft import Draft, Situation, situation, unsure


def continued(trajectories: Sequence[Trajectory], bar: Bar) -> Iterator[Draft]:
    """A row for each step of a failed search path from which scored continuations start, if the goal could be reached.

    A solved path through the same step counts as one more rollout from it.
    """
    reasons = rejections(trajectories, bar)
    starts = _rolled_on(trajectories)
    solved = {place for item in trajectories if reasons[item.id] is None for place in _places(item)}
    hopeful = {before for before, _ in solved}
    for trajectory in trajectories:
        episode = trajectory.episode
        if trajectory.origin is not Origin.SEARCH or episode.outcome is None or reasons[trajectory.id] is None:
            continue
        for index, place in enumerate(_places(trajectory)):
            if (trajectory.id, index + 1) in starts and place[0] in hopeful:
                good = place in solved
                score = unsure(episode.steps[index].score)
                ease = score if good else 1 - score
                yield Draft(trajectory, index, place[1], Generator.CONTINUATION, good, ease)


def _rolled_on(trajectories: Sequence[Trajectory]) -> set[tuple[str, int]]:
    """From where continuations start that say something: the path, and how many of its steps they share."""
    return {
        (item.parent, item.shared)
        for item in trajectories
        # A crash says nothing about the step, nor does a search cut short or an outcome that was not scored.
        if item.origin is Origin.CONTINUATION
        and item.episode.outcome is not None
        and item.episode.end not in (End.CRASHED, End.BUDGET)
    }


def _places(trajectory: Trajectory) -> Iterator[tuple[Situation, Action]]:
    episode = trajectory.episode
    for index, step in enumerate(episode.acts):
        yield situation(trajectory, index, episode.instruction), step.action
