"""The pictures of an audit: the judges side by side, false accepts, and how well scores are calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.audit.summary import TABLES


def draw(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write ``judges.png``, ``false_accepts.png`` and ``reliability.png`` into a new folder."""
    folder.mkdir()
    judges = summary["judges"]
    _columns(judges).savefig(folder / "judges.png")
    _false_accepts(judges).savefig(folder / "false_accepts.png")
    _reliability(judges).savefig(folder / "reliability.png")


def _columns(judges: Mapping[str, Any]) -> Figure:
    columns = {f"{table}: {name}": path for table, of in TABLES.items() for name, path in of.items()}
    figure = Figure(figsize=(3 * len(columns), 0.4 * len(judges) + 1.5), layout="constrained")
    for axes, (title, path) in zip(figure.subplots(1, len(columns), sharey=True), columns.items(), strict=True):
        _bars(axes, {name: _at(of, path) for name, of in judges.items()}, title)
    return figure


def _false_accepts(judges: Mapping[str, Any]) -> Figure:
    groups = ("action", "generator", "length", "canary")
    figure = Figure(figsize=(4 * len(groups), 1.2 * len(judges) + 1), layout="constrained")
    grid = figure.subplots(len(judges), len(groups), squeeze=False)
    for row, (name, of) in zip(grid, judges.items(), strict=True):
        for axes, group in zip(row, groups, strict=True):
            _bars(axes, of["false_accepts"][group], f"{name}: by {group}")
    return figure


def _bars(axes: Axes, values: Mapping[str, Mapping[str, Any]], title: str) -> None:
    known = {name: of for name, of in values.items() if of.get("value") is not None}
    middle = [of["value"] for of in known.values()]
    low = [max(0.0, of["value"] - of["low"]) for of in known.values()]
    high = [max(0.0, of["high"] - of["value"]) for of in known.values()]
    axes.barh(list(known), middle, xerr=[low, high])
    axes.set_title(title, fontsize=9)
    axes.tick_params(labelsize=8)


def _reliability(judges: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    for axes, query in zip(figure.subplots(1, 2), ("step", "outcome"), strict=True):
        axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
        for name, of in judges.items():
            points = _at(of, ("live", query)).get("reliability", ())
            axes.plot(
                [point["score"] for point in points], [point["right"] for point in points], marker="o", label=name
            )
        axes.set(title=f"live, {query}", xlabel="score", ylabel="share right")
    axes.legend(fontsize=7)
    return figure


def _at(of: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for key in path:
        of = of.get(key, {})
    return of
