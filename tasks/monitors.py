"""What is watched from round to round, and the limits that stop a promotion.

Exploration is watched by the reward model's own word, the reward models by the world's, which evaluation alone has.
B-STaR (Zeng et al. 2024) watches the same two: whether exploration still finds, and whether rewards still tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from environments.types import End
from tasks.acceptance import rejection
from tasks.metrics import ACCEPT, MODELS, Judgement
from tasks.params import Limits
from tasks.records import Origin, Trajectory

Figures = Mapping[str, float | None]


def watch(
    explored: Iterable[Trajectory], judgements: Sequence[Judgement], accept: float, history: Sequence[float]
) -> dict[str, Any]:
    """The content of ``monitors.json``: of exploration, and of each reward model on this round's live outcomes.

    Args:
        accept: the outcome reward from which an explored path counts as solved.
        history: ``accepted_wrong`` of the reward model that each earlier round left in use.
    """
    live = [item for item in judgements if item["query"] == "outcome" and item["source"] == "live"]
    labels = [item["label"] for item in live]
    judges: dict[str, Figures] = {model: judging(labels, [item[model] for item in live], history) for model in MODELS}
    return {"explored": exploration(explored, accept), **judges}


def exploration(explored: Iterable[Trajectory], accept: float) -> dict[str, float | None]:
    """``pass_1``, ``pass_k`` and ``diversity`` of the goal instances searched; None without any, or without a success.

    ``pass_1`` is the chance that a path of an instance, drawn at random, counts as solved, and ``pass_k`` the share of
    instances of which any path does (Chen et al. 2021, equation 1, with k = 1 and all). ``diversity`` is the mean
    number of distinct action sequences among the solved paths of an instance that has some.
    """
    tried: dict[str, list[Trajectory]] = {}
    for trajectory in explored:
        if trajectory.origin is Origin.SEARCH and trajectory.episode.end not in (End.PRUNED, End.CRASHED):
            tried.setdefault(trajectory.episode.instance.name, []).append(trajectory)
    solved = {name: [one for one in paths if rejection(one, accept) is None] for name, paths in tried.items()}
    return {
        "pass_1": _mean([len(solved[name]) / len(paths) for name, paths in tried.items()]),
        "pass_k": _mean([float(bool(paths)) for paths in solved.values()]),
        "diversity": _mean([float(len({_actions(one) for one in paths})) for paths in solved.values() if paths]),
    }


def judging(labels: Sequence[bool], scores: Sequence[float], history: Sequence[float]) -> dict[str, float | None]:
    """``separation``, ``accepted_wrong`` and its ``wrong_slope`` a round, if this model follows on the history."""
    wrong = accepted_wrong(labels, scores)
    return {
        "separation": separation(labels, scores),
        "accepted_wrong": wrong,
        "wrong_slope": None if wrong is None else slope([*history, wrong]),
    }


def separation(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Mean score of right paths minus that of wrong ones; None without both."""
    right = [score for label, score in zip(labels, scores, strict=True) if label]
    wrong = [score for label, score in zip(labels, scores, strict=True) if not label]
    return fmean(right) - fmean(wrong) if right and wrong else None


def accepted_wrong(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Of the paths that score :data:`~tasks.metrics.ACCEPT` or more, the share that is wrong; None without any."""
    accepted = [label for label, score in zip(labels, scores, strict=True) if score >= ACCEPT]
    return accepted.count(False) / len(accepted) if accepted else None


def slope(values: Sequence[float]) -> float | None:
    """How much the values rise a place, by least squares; None of fewer than two."""
    if len(values) < 2:
        return None
    middle = (len(values) - 1) / 2
    spread = sum((place - middle) ** 2 for place in range(len(values)))
    return sum((place - middle) * value for place, value in enumerate(values)) / spread


def raised(monitors: Mapping[str, Figures], limits: Limits) -> dict[str, list[str]]:
    """The alarms: what stops the promotion of each model, in words.

    The agent's are of what it was taught with, exploration and the champion reward model; the reward model's its own.
    """
    return {
        "agent": _beyond("exploration", monitors["explored"], limits)
        + _beyond("the champion reward model", monitors["champion"], limits),
        "reward": _beyond("the challenger", monitors["challenger"], limits),
    }


def _beyond(whose: str, figures: Figures, limits: Limits) -> list[str]:
    """The figures beyond their limits; one that is not defined is not."""
    lowest = {"pass_k": limits.pass_k, "diversity": limits.diversity, "separation": limits.separation}
    highest = {"accepted_wrong": limits.accepted_wrong, "wrong_slope": limits.wrong_slope}
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
