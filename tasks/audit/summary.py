"""What an audit found: figures of every judge by part and query, combinations of outcome scores, calibration; a table.

An outcome may be judged by the final query alone, by the least of a path's step scores, or by both: ``gated`` is the
final score where no step scores under 0.5, else 0. ``accepted`` is 1 where both reach the bar of a round, else 0: of
the other candidates, which a round asks as well whether a step was a slip, an audit knows no scores. The least of no
steps is 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.calibration import AS_IT_IS, Scale, fitted
from tasks.acceptance import Bar
from tasks.audit.cases import Labelled
from tasks.audit.figures import Judged, false_accepts, figures, length_bin
from tasks.evidence.metrics import ACCEPT
from tasks.evidence.statistics import reliability

CALIBRATED = "champion"
TABLES = {
    "live steps": {
        "F1": ("live", "step", "f1"),
        "AUC": ("live", "step", "auc"),
        "top-1": ("live", "step", "top1"),
        "lift": ("live", "step", "lift"),
    },
    "live outcomes": {
        "F1": ("live", "outcome", "f1"),
        "precision": ("live", "outcome", "precision"),
        "AUC": ("live", "outcome", "auc"),
        "best-of-8": ("live", "outcome", "lift"),
        "canaries accepted": ("canary", "outcome", "false_accept"),
    },
    "pairs, F1": {
        "held-out steps": ("held-out", "step", "f1"),
        "held-out outcomes": ("held-out", "outcome", "f1"),
        "unseen steps": ("unseen", "step", "f1"),
        "unseen outcomes": ("unseen", "outcome", "f1"),
    },
}


@dataclass(frozen=True, slots=True)
class Scores:
    """A judge's scores of a trajectory: of its cases, and of the steps taken. None where it cannot say."""

    cases: Sequence[float | None]
    path: Sequence[float | None]


def summarise(found: Sequence[Labelled], scores: Mapping[str, Sequence[Scores]], bar: Bar) -> dict[str, Any]:
    """All figures: ``judges`` by row, part and query; ``calibration`` of the champion, on one half of the instances."""
    judges: dict[str, Any] = {}
    calibration: dict[str, Any] = {}
    for name, of in scores.items():
        judged = _judged(found, of)
        judges[name] = _figures(judged)
        for combination, again in _combined(found, of, bar).items():
            judges[f"{name}, {combination}"] = _figures(again)
        if name == CALIBRATED:
            calibration = _calibrated(judged)
    return {"judges": judges, "calibration": calibration}


def table(summary: Mapping[str, Any]) -> list[str]:
    """For people: a row a judge, and how calibration changes the champion."""
    lines = ["In brackets: 95 % intervals over goal instances. Live cases and canaries are judged by the world."]
    for title, columns in TABLES.items():
        rows = [[title, *columns]]
        for name, of in summary["judges"].items():
            cells = [_cell(of, path) for path in columns.values()]
            rows += [[name, *cells]] if any(cell != "-" for cell in cells) else []
        lines += ["", *_aligned(rows)]
    rows = [["champion's calibration error", "live steps", "live outcomes"]]
    for name, of in summary["calibration"].items():
        rows.append([name, *(_cell(of, (query, "ece")) for query in ("step", "outcome"))])
    return [*lines, "", *_aligned(rows)]


def _judged(found: Sequence[Labelled], scores: Sequence[Scores]) -> list[Judged]:
    return [
        Judged(case, math.nan if score is None else score)
        for item, of in zip(found, scores, strict=True)
        for case, score in zip(item.cases, of.cases, strict=True)
    ]


def _combined(found: Sequence[Labelled], scores: Sequence[Scores], bar: Bar) -> dict[str, list[Judged]]:
    """The live and canary outcomes by the other combinations, for a judge that scored the steps too."""
    made: dict[str, list[Judged]] = {"minimum": [], "gated": [], "accepted": []}
    if not any(of.path for of in scores):
        return {}
    for item, of in zip(found, scores, strict=True):
        least = min((score for score in of.path if score is not None), default=1.0)
        for case, final in zip(item.cases, of.cases, strict=True):
            if case.query == "outcome" and case.part in ("live", "canary") and final is not None:
                made["minimum"].append(Judged(case, least))
                made["gated"].append(Judged(case, final if least >= ACCEPT else 0.0))
                made["accepted"].append(Judged(case, float(final >= bar.outcome and least >= bar.step)))
    return made


def _figures(judged: Sequence[Judged]) -> dict[str, Any]:
    groups: dict[tuple[str, str], list[Judged]] = {}
    for item in judged:
        groups.setdefault((item.case.part, item.case.query), []).append(item)
    found: dict[str, Any] = {}
    for (part, query), group in sorted(groups.items()):
        found.setdefault(part, {})[query] = figures(group) | {"reliability": list(_reliability(group))}
    return found | {"false_accepts": _false_accepts(judged)}


def _false_accepts(judged: Sequence[Judged]) -> dict[str, Any]:
    live = [item for item in judged if item.case.part == "live"]
    pairs = [item for item in judged if item.case.part in ("held-out", "unseen")]
    return {
        "action": false_accepts(live, lambda case: case.kind),
        "generator": false_accepts(pairs, lambda case: case.source),
        "length": false_accepts(live, length_bin),
        "canary": false_accepts([item for item in judged if item.case.part == "canary"], lambda case: case.source),
    }


def _reliability(judged: Sequence[Judged]) -> Iterator[dict[str, float | None]]:
    said = [item for item in judged if not math.isnan(item.score)]
    for one in reliability([item.case.label for item in said], [item.score for item in said]):
        if one.n:
            yield {"score": one.mean_score, "right": one.positive_share, "n": one.n}


def _calibrated(judged: Sequence[Judged]) -> dict[str, Any]:
    """Live figures on one half of the instances: as they are, and with scales fitted on the other half.

    The scales are a temperature (Guo et al. 2017, section 4.2) and Platt's (Platt 1999).
    """
    found: dict[str, Any] = {"as it is": {}, "temperature": {}, "Platt": {}}
    for query in ("step", "outcome"):
        live = [item for item in judged if item.case.part == "live" and item.case.query == query]
        fit, report = halves(live)
        if len({item.case.label for item in fit}) < 2:
            continue
        scales = {"as it is": AS_IT_IS, "temperature": scale_of(fit, False), "Platt": scale_of(fit, True)}
        for name, scale in scales.items():
            set_right = [replace(item, score=scale.apply(item.score)) for item in report]
            found[name][query] = figures(set_right) | {"slope": scale.slope, "offset": scale.offset}
    return found


def halves(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Cases of every other goal instance, and the rest: each goal's instances are spread over both."""
    first = set(sorted({item.case.instance for item in judged})[::2])
    return [item for item in judged if item.case.instance in first], [
        item for item in judged if item.case.instance not in first
    ]


def scale_of(judged: Sequence[Judged], shifted: bool) -> Scale:
    """The likeliest slope, 1/temperature, and offset, if ``shifted``, with the prior of training."""
    scores, labels = [item.score for item in judged], [item.case.label for item in judged]
    return fitted(scores, labels, [1.0] * len(judged), shifted)


def _cell(of: Mapping[str, Any], path: Sequence[str]) -> str:
    for key in path:
        of = of.get(key, {})
    if of.get("value") is None:
        return "-"
    return f"{of['value']:.2f} [{of['low']:.2f} {of['high']:.2f}]"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
