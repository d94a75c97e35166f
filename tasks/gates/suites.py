"""The rules of a round's data as Great Expectations suites. Slow to load: ``validate`` alone imports it.

Every expectation carries its rule in words (``meta["rule"]``), unique within its suite: errors and
``validation.json`` quote it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import great_expectations.expectations as gxe
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.row_conditions import Column, ComparisonCondition

from tasks.gates.frames import DERIVED_COLUMNS, dtypes
from tasks.params import Params
from tasks.records import AgentRow, Origin, RewardRow

Suite = list[Expectation]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the rules are relative to: the goals there are, the round, and the bounds in ``params.yaml``."""

    goals: Collection[str]
    round: int
    params: Params


def trajectories(bounds: Bounds) -> Suite:
    """Rules of the trajectories that rows were made from."""
    trained = [Origin.DEMONSTRATION.value, Origin.SEARCH.value, Origin.CONTINUATION.value]
    return [
        *_identity(),
        *_source(bounds),
        _in_set("origin", trained, "an evaluation episode is never trained on"),
        _filled("parent", "a continuation names what it continues", Column("origin") == "continuation"),
        _filled("instruction", "the instruction is there"),
        _between("outcome", "an outcome reward is 0..1", low=0, high=1),
    ]


def steps() -> Suite:
    """Rules of the steps of the trajectories."""
    return [
        _not_empty(),
        _between("score", "a step reward is 0..1", low=0, high=1),
        _between("lowest", "the lowest candidate score is 0..1", low=0, high=1),
        _between("highest", "the highest candidate score is 0..1", low=0, high=1),
        *_on_screen(),
    ]


def agent_rows(bounds: Bounds) -> Suite:
    """Rules of what the agent is trained on."""
    return [
        *_schema(AgentRow),
        *_identity(),
        *_row(bounds),
        _filled("source", "what made the row is named"),
        _once(["trajectory", "step", "action"]),
    ]


def reward_rows(bounds: Bounds) -> Suite:
    """Rules of what the reward model is trained on."""
    validation = bounds.params.validation
    return [
        *_schema(RewardRow),
        *_identity(),
        *_row(bounds),
        _filled("generator", "what made the row is named"),
        _filled("instruction", "the instruction is there"),
        _once(["trajectory", "step", "action", "instruction"]),
        gxe.ExpectColumnMeanToBeBetween(
            column="label",
            min_value=validation.min_positive,
            max_value=validation.max_positive,
            meta=_rule("the share of positive rows is within validate.min_positive and validate.max_positive"),
        ),
    ]


def rule(expectation: Expectation) -> str:
    """The rule of an expectation, in words."""
    return str((expectation.meta or {})["rule"])


def _schema(kind: type[AgentRow] | type[RewardRow]) -> Suite:
    columns = dtypes(kind)
    return [
        *(_of_type(name, dtype) for name, dtype in columns.items()),
        gxe.ExpectTableColumnsToMatchOrderedList(
            column_list=[*columns, *DERIVED_COLUMNS], meta=_rule("the columns are those of the record")
        ),
    ]


def _of_type(column: str, dtype: str) -> Expectation:
    words = f"{column} is {dtype} in every row"
    return gxe.ExpectColumnValuesToBeOfType(column=column, type_=dtype, meta=_rule(words))


def _identity() -> Suite:
    return [
        _not_empty(),
        _filled("id", "a row has an id"),
        gxe.ExpectColumnValuesToBeUnique(column="id", meta=_rule("an id names one row")),
    ]


def _source(bounds: Bounds) -> Suite:
    made = Column("origin") != Origin.DEMONSTRATION.value
    last = bounds.params.evaluate.first_seed - 1
    return [
        _filled("goal", "the goal is named"),
        _in_set("goal", bounds.goals, "the goal is in the goal files"),
        _in_set("round", [bounds.round], "the round is this one"),
        _between("seed", "a held-out goal instance is never trained on", low=0, high=last),
        _filled("agent", "the agent that acted is named", made),
        _filled("reward", "the reward model that scored is named", made),
    ]


def _row(bounds: Bounds) -> Suite:
    return [
        _filled("known_trajectory", "its trajectory is among those of the rows"),
        *_source(bounds),
        _filled("kind", "the action can be read"),
        _between("step", "a step is 0 or more", low=0),
        _below("step", "steps", "the step is one of its trajectory or the screen after it", or_equal=True),
        *_on_screen(),
    ]


def _on_screen() -> Suite:
    return [
        _filled("width", "the screenshot is there and is a picture"),
        _below("x", "width", "a point is within the width of its screenshot"),
        _below("y", "height", "a point is within the height of its screenshot"),
    ]


def _not_empty() -> Expectation:
    return gxe.ExpectTableRowCountToBeBetween(min_value=1, meta=_rule("there is a row"))


def _filled(column: str, words: str, where: ComparisonCondition | None = None) -> Expectation:
    return gxe.ExpectColumnValuesToNotBeNull(column=column, row_condition=where, meta=_rule(words))


def _in_set(column: str, values: Collection[Any], words: str) -> Expectation:
    return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(values), meta=_rule(words))


def _between(column: str, words: str, low: float, high: float | None = None) -> Expectation:
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high, meta=_rule(words))


def _below(column: str, bound: str, words: str, or_equal: bool = False) -> Expectation:
    return gxe.ExpectColumnPairValuesAToBeGreaterThanB(
        column_A=bound,
        column_B=column,
        or_equal=or_equal,
        ignore_row_if="either_value_is_missing",
        meta=_rule(words),
    )


def _once(columns: list[str]) -> Expectation:
    words = f"no two rows have the same {', '.join(columns)}"
    return gxe.ExpectCompoundColumnsToBeUnique(column_list=columns, ignore_row_if="never", meta=_rule(words))


def _rule(words: str) -> dict[str, str]:
    return {"rule": words}
