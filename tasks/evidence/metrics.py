"""What the evaluation found, as ``metrics.json`` and plot files: champion and challenger side by side."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

from tasks.evidence.looks import Verdict, alike
from tasks.evidence.statistics import (
    auc,
    calibration_error,
    classification,
    f1_interval,
    false_accept_rate,
    reliability,
    wilson,
)
from tasks.files import write_whole

Model = Literal["champion", "challenger"]
MODELS: tuple[Model, Model] = ("champion", "challenger")
ACCEPT = 0.5  # the score from which a judgement counts as positive: p(+) >= p(-)
BOOTSTRAP_SEED = 0

Item = TypeVar("Item")
Key = TypeVar("Key", str, int)


class Judgement(TypedDict):
    """A line of ``judgements.json``: a labelled step or outcome, and each reward model's score of it, 0..1.

    ``source`` is ``pairs`` (held-out pairs) or ``live`` (this round's agent); ``kind`` the action's. A line of
    ``attacks.json`` is one too, of ``attack``: lines with the same id are of the same step, one of them right. So is
    one of ``canaries.json``, of ``canary``: the end of a scripted agent that reaches nothing
    (:mod:`tasks.evidence.canaries`).
    """

    id: str
    query: Literal["step", "outcome"]
    source: Literal["pairs", "live", "attack", "canary"]
    kind: str
    label: bool
    champion: float
    challenger: float


def summarise(
    episodes: Sequence[Verdict],
    judgements: Sequence[Judgement],
    attacks: Sequence[Judgement],
    canaries: Sequence[Judgement],
) -> dict[str, Any]:
    """The content of ``metrics.json``: nested dictionaries of numbers, None where a figure is not defined.

    Success is that of the first looks, which play each goal alike (:data:`tasks.evidence.looks.ALIKE`).
    A step is ``beaten`` when a wrong action is scored as high as the right one; ``canaries`` are those accepted.
    """
    return {
        "agent": {model: _agent(alike(episodes), model) for model in MODELS},
        "reward": {
            model: {
                **_reward(judgements, model),
                "beaten": success([pair[place] for pair in beaten(attacks)]),
                "canaries": success([accepted(canary, model) for canary in canaries]),
            }
            for place, model in enumerate(MODELS)
        },
    }


def beaten(attacks: Sequence[Judgement]) -> list[tuple[bool, bool]]:
    """Of each attacked step, whether (champion, challenger) score a wrong action as high as the right one."""
    steps = _group(attacks, lambda judgement: judgement["id"])
    return [(_beats(step, "champion"), _beats(step, "challenger")) for step in steps.values()]


def _beats(step: Sequence[Judgement], model: Model) -> bool:
    right = max((one[model] for one in step if one["label"]), default=0.0)
    return any(one[model] >= right for one in step if not one["label"])


def success(outcomes: Sequence[bool]) -> dict[str, Any]:
    """How many are true, as a rate with its 95% Wilson interval."""
    low, high = wilson(sum(outcomes), len(outcomes)) or (None, None)
    rate = sum(outcomes) / len(outcomes) if outcomes else None
    return {"solved": sum(outcomes), "n": len(outcomes), "rate": rate, "low": low, "high": high}


def correct(judgement: Judgement, model: Model) -> bool:
    """Whether the model's side of :data:`ACCEPT` is the label's."""
    return accepted(judgement, model) == judgement["label"]


def accepted(judgement: Judgement, model: Model) -> bool:
    """Whether the model scores it :data:`ACCEPT` or more."""
    return judgement[model] >= ACCEPT


def write_plots(folder: Path, episodes: Sequence[Verdict], judgements: Sequence[Judgement]) -> None:
    """Write ``success_by_goal.csv``, ``reliability.csv`` and ``action_kinds.csv`` into a new folder."""

    def write(aside: Path) -> None:
        aside.mkdir()
        _write_csv(aside / "success_by_goal.csv", _success_rows(episodes))
        _write_csv(aside / "reliability.csv", _reliability_rows(judgements))
        _write_csv(aside / "action_kinds.csv", _kind_rows(judgements))

    write_whole(folder, write)


def _agent(episodes: Sequence[Verdict], model: Model) -> dict[str, Any]:
    tiers = _group(episodes, lambda episode: episode["tier"])
    return {
        "overall": success([episode[model] for episode in episodes]),
        **{f"tier_{tier}": success([e[model] for e in group]) for tier, group in tiers.items()},
    }


def _reward(judgements: Sequence[Judgement], model: Model) -> dict[str, Any]:
    queries = _group(judgements, lambda judgement: judgement["query"])
    return {query: _query(group, model) for query, group in queries.items()}


def _query(judgements: Sequence[Judgement], model: Model) -> dict[str, Any]:
    sources = _group(judgements, lambda judgement: judgement["source"])
    kinds = _group(judgements, lambda judgement: judgement["kind"])
    return {
        **{source: _figures(*_columns(group, model)) for source, group in sources.items()},
        "false_accepts": {kind: _false_accepts(*_columns(group, model)) for kind, group in kinds.items()},
    }


def _figures(labels: list[bool], scores: list[float]) -> dict[str, Any]:
    low, high = f1_interval(labels, scores, BOOTSTRAP_SEED, ACCEPT) or (None, None)
    return {
        **asdict(classification(labels, scores, ACCEPT)),
        "f1_low": low,
        "f1_high": high,
        "auc": auc(labels, scores),
        "ece": calibration_error(labels, scores),
    }


def _false_accepts(labels: list[bool], scores: list[float]) -> dict[str, Any]:
    return {"rate": false_accept_rate(labels, scores, ACCEPT), "n": len(labels) - sum(labels)}


def _columns(judgements: Iterable[Judgement], model: Model) -> tuple[list[bool], list[float]]:
    pairs = [(judgement["label"], judgement[model]) for judgement in judgements]
    return [label for label, _ in pairs], [score for _, score in pairs]


def _success_rows(episodes: Sequence[Verdict]) -> list[dict[str, Any]]:
    goals = _group(episodes, lambda episode: episode["goal"])
    return [
        {"goal": goal, "tier": group[0]["tier"], "model": model, **success([e[model] for e in group])}
        for goal, group in goals.items()
        for model in MODELS
    ]


def _reliability_rows(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    queries = _group(judgements, lambda judgement: judgement["query"])
    return [
        {"query": query, "model": model, **asdict(item)}
        for query, group in queries.items()
        for model in MODELS
        for item in reliability(*_columns(group, model))
        if item.n
    ]


def _kind_rows(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    kinds = _group(judgements, lambda judgement: judgement["kind"])
    return [
        {
            "kind": kind,
            "model": model,
            **asdict(classification(*_columns(group, model), ACCEPT)),
            "false_accepts": false_accept_rate(*_columns(group, model), ACCEPT),
        }
        for kind, group in kinds.items()
        for model in MODELS
    ]


def _group(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))


def _write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0] if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
