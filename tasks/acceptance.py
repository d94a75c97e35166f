"""Which trajectories count as solved, and which of those the agent learns from."""

from __future__ import annotations

from collections import Counter
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
    NOT_BEST = "not_best"  # another trajectory of the same goal instance is shorter, or surer
    OVER_LIMIT = "over_limit"  # filter.max_per_goal others of the goal are surer


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

    Of a goal instance the shortest solved trajectory is in, since what it does without is a detour; of those as short
    the surest, which is that of the highest outcome. Of a goal the ``max_per_goal`` surest of these.
    """
    tried = sorted(trajectories, key=_sureness)
    verdicts = {trajectory.id: rejection(trajectory, accept) for trajectory in tried}
    solved = [trajectory for trajectory in tried if verdicts[trajectory.id] is None]
    best: dict[str, Trajectory] = {}
    for trajectory in sorted(solved, key=_length):
        best.setdefault(trajectory.episode.instance.name, trajectory)
    goals: Counter[str] = Counter()
    for trajectory in solved:
        instance = trajectory.episode.instance
        if best[instance.name] is not trajectory:
            verdicts[trajectory.id] = Rejection.NOT_BEST
            continue
        goals[instance.goal.id] += 1
        if goals[instance.goal.id] > max_per_goal:
            verdicts[trajectory.id] = Rejection.OVER_LIMIT
    return verdicts


def shortest(trajectories: Iterable[Trajectory], accept: float) -> list[Trajectory]:
    """The solved trajectories that no other one of their goal instance is shorter than: the evidence of what is right.

    On a longer one something was needless, and nobody knows what.
    """
    solved = [trajectory for trajectory in trajectories if rejection(trajectory, accept) is None]
    least: dict[str, int] = {}
    for trajectory in sorted(solved, key=_length):
        least.setdefault(trajectory.episode.instance.name, _length(trajectory))
    return [trajectory for trajectory in solved if _length(trajectory) == least[trajectory.episode.instance.name]]


def _sureness(trajectory: Trajectory) -> tuple[float, str]:
    outcome = trajectory.episode.outcome
    return (1.0 if outcome is None else -outcome), trajectory.id


def _length(trajectory: Trajectory) -> int:
    return len(trajectory.episode.acts)
