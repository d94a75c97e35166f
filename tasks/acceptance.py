"""Which trajectories count as solved, and which of those the agent learns from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from environments.types import Action, Candidate, End, Episode, Instance, Kind, Step, idle
from tasks.quoted import missing
from tasks.records import VARIED, Origin, Trajectory


@dataclass(frozen=True, slots=True)
class Bar:
    """What a path must reach to count as solved: this outcome reward, and this reward in its steps, 0..1.

    ``quoted``: and it must have typed or seen what its instruction quotes.
    """

    outcome: float
    step: float = 0.0
    quoted: bool = False

    def slipped(self, episode: Episode, since: int = 0) -> bool:
        """Whether a step, from number ``since`` on, is a slip."""
        return any(self.slip(step) for step in episode.acts[since:])

    def slip(self, step: Step) -> bool:
        """Whether a step does not reach it, and something else was liked more there, or nothing else was judged.

        What is liked little and still the most may be all that there is to do. A step that was not scored is no slip.
        """
        low = step.score is not None and step.score < self.step
        judged = any(candidate.score is not None for candidate in step.candidates)
        return low and (not judged or any((one.score or 0.0) > (step.score or 0.0) for one in _others(step)))


def hasty(episode: Episode) -> bool:
    """Whether the last step was not the best there: something else was liked more, and is perhaps left to do.

    By more than the agent's own samples speak for the step: it must be of more worth to a beam, too, which with
    ``explore.prior`` 1 adds to each reward the candidate's share of the samples. What was done there already and
    changed nothing is not left to do.
    """
    if not episode.steps or (score := episode.steps[-1].score) is None:
        return False
    last = episode.steps[-1]
    done = idle(episode.steps[:-1], last.observation)
    liked = [one for one in _others(last) if (one.score or 0.0) > score and one.action not in done]
    worth = score + last.share(last.action)
    return any((one.score or 0.0) + last.share(one.action) > worth for one in liked)


def sureness(episode: Episode) -> float:
    """How likely the agent alone takes a step of a path: the geometric mean of the shares its steps had of the samples.

    The product, how likely it takes the whole path, would put short paths before right ones, and call an agent that
    masters thirty steps unsure (docs/decisions/0064-long-paths-and-small-losses.md).
    """
    shares = [step.share(step.action) for step in episode.steps]
    return math.prod(shares) ** (1 / len(shares)) if shares else 0.0


def _others(step: Step) -> list[Candidate]:
    """What else was considered. The same done to another element of that kind and text is nothing else."""
    return [one for one in step.candidates if _meant(one.action) != _meant(step.action)]


def _meant(action: Action) -> tuple[Kind, tuple[str, str] | None, str]:
    return action.kind, action.target, action.text


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
    UNQUOTED = "unquoted"  # what its instruction quotes was neither typed nor on any screen
    LOW_STEP = "low_step"  # a step under filter.min_step, where something else was liked more
    HASTY = "hasty"  # something else was liked more where it took its last step
    NOT_BEST = "not_best"  # another trajectory of the same goal instance is of more worth
    OVER_LIMIT = "over_limit"  # filter.max_per_goal others of the goal have a higher outcome


def rejection(trajectory: Trajectory, bar: Bar) -> Rejection | None:
    """Why a trajectory does not count as solved, None when it does.

    A demonstration counts because the world judged it; any other by the reward model alone, its outcome and its steps.
    Those that a continuation shares with the failed path may be slips: it is there to make up for them.
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
        Rejection.LOW_OUTCOME: scored and (episode.outcome or 0.0) < bar.outcome,
        Rejection.UNQUOTED: scored and bar.quoted and bool(missing(episode)),
        Rejection.LOW_STEP: scored and bar.slipped(episode, trajectory.shared),
        Rejection.HASTY: scored and hasty(episode),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def rejections(trajectories: Iterable[Trajectory], bar: Bar) -> dict[str, Rejection | None]:
    """Why each trajectory (by id) does not count as solved, None when it does.

    What is wrong with the steps of one is wrong with all of its instance that did the same: a continuation may repeat
    what the search has rejected, and is never compared with what else might be done.
    """
    tried = list(trajectories)
    reasons = {one.id: rejection(one, bar) for one in tried}
    steps = (Rejection.LOW_STEP, Rejection.HASTY)
    known = {_deed(one): reasons[one.id] for one in tried if reasons[one.id] in steps}
    return {one.id: reasons[one.id] or known.get(_deed(one)) for one in tried}


def judge(trajectories: Iterable[Trajectory], bar: Bar, max_per_goal: int) -> Mapping[str, Rejection | None]:
    """Why each trajectory (by id) is left out of the agent rows, None for those that are in.

    Of a goal instance the best solved trajectory is in (:func:`best`), of a goal the ``max_per_goal`` of these that
    the reward model is surest of: what the agent is sure of is no news to it.
    """
    tried = list(trajectories)
    verdicts = rejections(tried, bar)
    chosen = _best(tried, verdicts)
    solved = {name for name, reason in verdicts.items() if reason is None}
    verdicts |= dict.fromkeys(solved - {one.id for one in chosen}, Rejection.NOT_BEST)
    goals = Counter[str]()
    for trajectory in sorted(chosen, key=lambda one: -(one.episode.outcome or 0.0)):
        goal = trajectory.episode.instance.goal.id
        goals[goal] += 1
        if goals[goal] > max_per_goal:
            verdicts[trajectory.id] = Rejection.OVER_LIMIT
    return verdicts


def best(trajectories: Iterable[Trajectory], bar: Bar) -> list[Trajectory]:
    """Of each goal instance the solved trajectory of most worth, the shorter of two alike: what is right there.

    Worth is its outcome reward, and how sure the agent is of it (docs/decisions/0063-the-ways-an-agent-has.md).
    """
    tried = list(trajectories)
    return _best(tried, rejections(tried, bar))


def _best(tried: Iterable[Trajectory], verdicts: Mapping[str, Rejection | None]) -> list[Trajectory]:
    found = dict[str, Trajectory]()
    for trajectory in sorted((one for one in tried if verdicts[one.id] is None), key=_order):
        found.setdefault(trajectory.episode.instance.name, trajectory)
    return list(found.values())


def _deed(trajectory: Trajectory) -> tuple[Instance, tuple[Action, ...]]:
    return trajectory.episode.instance, tuple(step.action for step in trajectory.episode.acts)


def _order(trajectory: Trajectory) -> tuple[float, int, str]:
    """The best first: that of most worth, then the shorter."""
    outcome = trajectory.episode.outcome
    worth = -1.0 if outcome is None else outcome + sureness(trajectory.episode)
    return -worth, len(trajectory.episode.acts), trajectory.id
