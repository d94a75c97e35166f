"""The curves over rounds: how good the models in use were, from the first champions on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.evidence.metrics import Model
from tasks.rounds import Figures, Kind, PastRound, Query

Read = Callable[[PastRound, Model | None], Figures]


@dataclass(frozen=True, slots=True)
class Point:
    """A figure within 0..1 and its 95% interval; all None where it is not defined."""

    label: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure before the first round (``start``) and after each."""

    title: str
    points: tuple[Point, ...]


def curves(rounds: Sequence[PastRound]) -> list[Curve]:
    """Agent success over all goals and by tier, and F1 of the reward model on steps and on outcomes."""
    tiers = sorted({name for made in rounds for name in made.metrics["agent"]["champion"] if name != "overall"})
    agent = [_curve(rounds, "agent", _words(group), _success(group)) for group in ("overall", *tiers)]
    queries: tuple[Query, Query] = ("step", "outcome")
    return agent + [_curve(rounds, "reward", f"Reward model: F1 of {query}s", _f1(query)) for query in queries]


def _curve(rounds: Sequence[PastRound], kind: Kind, title: str, read: Read) -> Curve:
    first = _point("start", read(rounds[0], "champion"))
    return Curve(title, (first, *(_point(str(made.number), read(made, made.in_use(kind))) for made in rounds)))


def _point(label: str, figures: Figures) -> Point:
    value: Any = figures.get("rate", figures.get("f1"))
    low, high = (figures.get(name, figures.get(f"f1_{name}")) for name in ("low", "high"))
    return Point(label, value, low, high)


def _success(group: str) -> Read:
    return lambda made, model: made.success(model, group)


def _f1(query: Query) -> Read:
    return lambda made, model: made.judging(model, query)


def _words(group: str) -> str:
    return "Agent: all goals" if group == "overall" else f"Agent: {group.replace('_', ' ')}"
