"""The suites run over a round's tables: Great Expectations in memory, its data docs on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationValidationResult
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from tasks.files import remove
from tasks.gates import suites
from tasks.gates.frames import Frames
from tasks.gates.suites import Bounds, Suite, rule

_COLUMN_KEYS = ("column_A", "column_B", "column")


@dataclass(frozen=True, slots=True)
class Check:
    """What one expectation found.

    ``observed`` is the value of a rule about a table or a column; of a rule about rows, how many it saw and
    how many broke it; None when it could not be checked. ``broken`` names those rows, by id or else by place.
    """

    suite: str
    expectation: str
    columns: tuple[str, ...]
    rule: str
    observed: Any
    success: bool
    broken: tuple[str, ...]


def check(frames: Frames, bounds: Bounds, docs: Path) -> list[Check]:
    """Run every suite and build the data docs anew; one check for each expectation, in the suites' order."""
    context = _context(docs)
    checks = [
        *_run(context, "trajectories", suites.trajectories(bounds), frames.trajectories),
        *_run(context, "steps", suites.steps(), frames.steps),
        *_run(context, "agent_rows", suites.agent_rows(bounds), frames.agent_rows),
        *_run(context, "reward_rows", suites.reward_rows(bounds), frames.reward_rows),
    ]
    remove(docs)
    context.build_data_docs()
    return checks


def _context(docs: Path) -> EphemeralDataContext:
    """Make a context that keeps all in memory but the data docs, and reports to nobody."""
    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(docs.absolute()),
        },
    }
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        data_docs_sites={"local": site},
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _run(context: EphemeralDataContext, name: str, suite: Suite, frame: pd.DataFrame) -> Iterator[Check]:
    asset = context.data_sources.add_pandas(name).add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe(name)
    expectations = context.suites.add(gx.ExpectationSuite(name, expectations=suite))
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=expectations))
    result = definition.run(
        batch_parameters={"dataframe": frame},
        result_format={"result_format": "COMPLETE", "unexpected_index_column_names": ["id", "row"]},
    )
    found = {item.rule: item for item in (_check(name, outcome) for outcome in result.results)}
    return (found[rule(expectation)] for expectation in suite)  # GX puts them in another order


def _check(suite: str, outcome: ExpectationValidationResult) -> Check:
    record: Any = outcome.to_json_dict()
    config, result = record["expectation_config"], record["result"]
    kwargs = config["kwargs"]
    return Check(
        suite=suite,
        expectation=config["type"],
        columns=tuple(kwargs.get("column_list") or [kwargs[key] for key in _COLUMN_KEYS if key in kwargs]),
        rule=config["meta"]["rule"],
        observed=_observed(result),
        success=record["success"],
        broken=tuple(str(row["id"] or f"row {row['row']}") for row in result.get("unexpected_index_list") or []),
    )


def _observed(result: dict[str, Any]) -> Any:
    if "element_count" in result:
        return {"rows": result["element_count"], "broken": result["unexpected_count"]}
    return result.get("observed_value")
