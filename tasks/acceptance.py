"""Which trajectories count as solved, and which of those the agent learns from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from environments.types import End
from tasks.records import VARIED, Origin, Trajectory


class Rejection(StrEnum):
    """Why a trajectory gives no agent rows."""

    CRASHED = "crashed"  # the world broke
    PRUNED = "pruned"  # the search went on with better paths
    INVALID = "invalid"  # an answer of the agent was no action
    VARIED = "varied"  # a demonstration played otherwise: it is for the reward model alone
    EVALUATION = "evaluation"  # of a held-out instance: nothing is trained on it
    NO_STEPS = "no_steps"  # did nothing but say `complete`, which a reward model may like anywhere
    NOT_SCORED = "not_scored"  # has no outcome, which is not a low one
    LOW_OUTCOME = "low_outcome"  # outcome under filter.accept
    NOT_BEST = "not_best"  # another trajectory of the same goal instance is better
    OVER_LIMIT = "over_limit"  # filter.max_per_goal others of the goal are better


def rejection(trajectory: Trajectory, accept: float) -> Rejection | None:
    """Why a trajectory does not count as solved, None when it does.

    A demonstration counts because the world judged it; any other by the reward model's outcome alone.
    """
    episode = trajectory.episode
    scored = trajectory.origin is not Origin.DEMONSTRATION
    reasons = {
        Rejection.CRASHED: episode.end is End.CRASHED,
        Rejection.PRUNED: episode.end is End.PRUNED,
        Rejection.INVALID: episode.end is End.INVALID,
        Rejection.VARIED: trajectory.origin in VARIED,
        Rejection.EVALUATION: trajectory.origin is Origin.EVALUATION,
        Rejection.NO_STEPS: not episode.acts,
        Rejection.NOT_SCORED: scored and episode.outcome is None,
        Rejection.LOW_OUTCOME: scored and (episode.outcome or 0.0) < accept,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def judge(trajectories: Iterable[Trajectory], accept: float, max_per_goal: int) -> Mapping[str, Rejection | None]:
    """Why each trajectory (by id) is left out of the agent rows, None for those that are in.

    Of a goal instance the best solved trajectory is in, of a goal the best ``max_per_goal`` of these. Better
    is a higher outcome, then fewer steps, then the lower id.
    """
    verdicts: dict[str, Rejection | None] = {}
    instances: set[str] = set()
    goals: dict[str, int] = {}
    for trajectory in sorted(trajectories, key=_rank):
        instance = trajectory.episode.instance
        reason = rejection(trajectory, accept)
        if reason is None and instance.name in instances:
            reason = Rejection.NOT_BEST
        elif reason is None:
            instances.add(instance.name)
            goals[instance.goal.id] = goals.get(instance.goal.id, 0) + 1
            reason = Rejection.OVER_LIMIT if goals[instance.goal.id] > max_per_goal else None
        verdicts[trajectory.id] = reason
    return verdicts


def _rank(trajectory: Trajectory) -> tuple[float, int, str]:
    episode = trajectory.episode
    outcome = -1.0 if episode.outcome is None else episode.outcome
    return -outcome, len(episode.acts), trajectory.id
