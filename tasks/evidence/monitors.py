"""What is watched from round to round, and the limits that stop a promotion.

The world judges all of it (:mod:`tasks.evaluate`): nothing here is learnt from.
B-STaR (Zeng et al. 2024) watches the same two: whether exploration still finds, and whether rewards still tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from tasks.acceptance import Bar, rejections
from tasks.evidence.metrics import ACCEPT, MODELS, Judgement
from tasks.evidence.statistics import mean_interval, wilson
from tasks.params import Limits
from tasks.records import Origin, Trajectory

Figures = Mapping[str, float | None]
_RECENT = 4  # rounds of a slope: over all there ever were, no jump would be steep


def watch(
    explored: Iterable[Trajectory],
    verdicts: Mapping[str, bool],
    judgements: Sequence[Judgement],
    bar: Bar,
    history: Sequence[float],
) -> dict[str, Any]:
    """The content of ``monitors.json``: of exploration, and of each reward model on this round's live outcomes.

    ``distance`` is how far the challenger's scores are from the champion's, on average over all judgements.

    Args:
        verdicts: the world's on explored paths, by the trajectory's id.
        bar: what an explored path must reach to count as solved.
        history: ``accepted_wrong`` of the reward model that each earlier round left in use.
    """
    live = [item for item in judgements if item["query"] == "outcome" and item["source"] == "live"]
    labels = [item["label"] for item in live]
    champion, challenger = (judging(labels, [item[model] for item in live], history) for model in MODELS)
    challenger["distance"] = _mean([abs(item["challenger"] - item["champion"]) for item in judgements])
    return {"explored": exploration(explored, verdicts, bar), "champion": champion, "challenger": challenger}


def exploration(explored: Iterable[Trajectory], verdicts: Mapping[str, bool], bar: Bar) -> dict[str, float | None]:
    """What the search reached by the world's verdict, and what of all paths the reward model accepted.

    ``pass_1`` is the chance that a path of an instance's search, drawn at random, reaches the goal, and ``pass_k`` the
    share of instances of which any does (Chen et al. 2021, equation 1, with k = 1 and all). ``diversity`` is the mean
    number of distinct action sequences among the right ones of an instance that has some. ``accepted`` is the share
    of paths, continuations too, that count as solved, ``accepted_wrong`` the share of these that are not. None where
    undefined.
    """
    paths = list(explored)
    reasons, judged = rejections(paths, bar), [one for one in paths if one.id in verdicts]
    tried: dict[str, list[Trajectory]] = {}
    for trajectory in (one for one in judged if one.origin is Origin.SEARCH):
        tried.setdefault(trajectory.episode.instance.name, []).append(trajectory)
    right = {name: [one for one in paths if verdicts[one.id]] for name, paths in tried.items()}
    accepted = [verdicts[one.id] for one in judged if reasons[one.id] is None]
    return {
        "pass_1": _mean([len(right[name]) / len(paths) for name, paths in tried.items()]),
        **_pass_k([bool(paths) for paths in right.values()]),
        "diversity": _mean([float(len({_actions(one) for one in paths})) for paths in right.values() if paths]),
        "accepted": len(accepted) / len(judged) if judged else None,
        **_wrong_among(accepted),
    }


def _pass_k(reached: Sequence[bool]) -> dict[str, float | None]:
    """The share of instances that were reached, and the high end of its 95 % interval; None without any."""
    interval = wilson(sum(reached), len(reached))
    return {
        "pass_k": sum(reached) / len(reached) if reached else None,
        "pass_k_high": interval[1] if interval else None,
    }


def judging(labels: Sequence[bool], scores: Sequence[float], history: Sequence[float]) -> dict[str, float | None]:
    """``separation``, ``accepted_wrong`` and its ``wrong_slope`` a round over the last rounds and this model.

    ``separation_high`` and ``accepted_wrong_low`` are ends of their 95 % intervals, ``wrong_slope_low`` is the slope to
    the latter: what the limits are held against, so that an alarm is more than chance.
    """
    found = _wrong_among([label for label, score in zip(labels, scores, strict=True) if score >= ACCEPT])
    wrong, low = found["accepted_wrong"], found["accepted_wrong_low"]
    apart, doubt = separation(labels, scores), separation_doubt(labels, scores)
    before = history[1 - _RECENT :]
    return {
        "separation": apart,
        "separation_high": None if apart is None or doubt is None else apart + doubt,
        **found,
        "wrong_slope": None if wrong is None else slope([*before, wrong]),
        "wrong_slope_low": None if low is None else slope([*before, low]),
    }


def separation(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Mean score of right paths minus that of wrong ones; None without both."""
    right, wrong = _parted(labels, scores)
    return fmean(right) - fmean(wrong) if right and wrong else None


def separation_doubt(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Half the 95 % interval of :func:`separation`, by Welch's standard error; None without two of both."""
    ends = mean_interval(*_parted(labels, scores))  # of half the sum: as wide as half that of a difference
    return None if ends is None else ends[1] - ends[0]


def _parted(labels: Sequence[bool], scores: Sequence[float]) -> tuple[list[float], list[float]]:
    pairs = list(zip(labels, scores, strict=True))
    return [score for label, score in pairs if label], [score for label, score in pairs if not label]


def _wrong_among(accepted: Sequence[bool]) -> dict[str, float | None]:
    """The share of accepted paths that is wrong, and the low end of its 95 % interval; None without any."""
    interval = wilson(accepted.count(False), len(accepted))
    return {
        "accepted_wrong": accepted.count(False) / len(accepted) if accepted else None,
        "accepted_wrong_low": interval[0] if interval else None,
    }


def slope(values: Sequence[float]) -> float | None:
    """How much the values rise a place, by least squares; None of fewer than two."""
    if len(values) < 2:
        return None
    middle = (len(values) - 1) / 2
    spread = sum((place - middle) ** 2 for place in range(len(values)))
    return sum((place - middle) * value for place, value in enumerate(values)) / spread


def in_doubt(monitors: Mapping[str, Figures], limits: Limits) -> dict[str, list[str]]:
    """The alarms about the models in use, in words.

    Of exploration, what the agent found is about the agent, and what was accepted wrongly about the reward model.
    """
    found = dict(monitors["explored"])
    accepted = {"accepted_wrong_low": found.pop("accepted_wrong_low", None)}
    return {
        "agent": _beyond("exploration", found, limits),
        "reward": _beyond("exploration", accepted, limits)
        + _beyond("the champion reward model", monitors["champion"], limits),
    }


def raised(monitors: Mapping[str, Figures], limits: Limits) -> dict[str, list[str]]:
    """The alarms: what stops the promotion of each model, in words.

    The agent's are its own, and of what it was taught with, exploration and the champion reward model; the reward
    model's its own.
    """
    doubts = in_doubt(monitors, limits)
    return {
        "agent": doubts["agent"] + doubts["reward"] + _beyond("the challenger agent", monitors["agent"], limits),
        "reward": _beyond("the challenger", monitors["challenger"], limits),
    }


def _beyond(whose: str, figures: Figures, limits: Limits) -> list[str]:
    """The figures beyond their limits; one that is not defined is not."""
    lowest = {"pass_k_high": limits.pass_k, "diversity": limits.diversity, "separation_high": limits.separation}
    highest = {
        "accepted_wrong_low": limits.accepted_wrong,
        "wrong_slope_low": limits.wrong_slope,
        "distance": limits.distance,
        "kl": limits.kl,
    }
    found = []
    for name, value in figures.items():
        low, high = lowest.get(name), highest.get(name)
        if value is not None and low is not None and value < low:
            found.append(f"alarm: {name} of {whose} is {value:.3f}, below {low}")
        if value is not None and high is not None and value > high:
            found.append(f"alarm: {name} of {whose} is {value:.3f}, above {high}")
    return found


def _actions(trajectory: Trajectory) -> tuple[str, ...]:
    return tuple(str(step.action) for step in trajectory.episode.acts)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
