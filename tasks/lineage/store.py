"""Where MLflow keeps things, and the values it takes."""

from __future__ import annotations

import logging
import math
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache, wraps
from typing import ParamSpec, TypeGuard, TypeVar

# Before mlflow is imported, for it starts reporting then.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

from mlflow import MlflowClient
from mlflow.entities import Metric, Run
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from tasks.errors import WorkspaceError, without_password
from tasks.files import WORK

P = ParamSpec("P")
T = TypeVar("T")

EXPERIMENT = "ratchet"
ROUND = "ratchet.round"
COMMIT = "git.commit"
ROUND_COMMIT = "git.round_commit"
FLOW_RUN_ID = "prefect.flow_run_id"

_DATABASE, _ARTIFACTS = WORK / "mlflow.db", WORK / "mlartifacts"
# Where MLflow's database says where artifacts are, by table.
_PLACES = {
    "experiments": ["artifact_location"],
    "runs": ["artifact_uri"],
    "logged_models": ["artifact_location"],
    "model_versions": ["source", "storage_location"],
}

for name in ("alembic", "mlflow.store.db.utils", "mlflow.store.model_registry.abstract_store"):
    logging.getLogger(name).setLevel(logging.WARNING)


def tracking_uri() -> str:
    """``MLFLOW_TRACKING_URI``, or SQLite under the checkout."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{_DATABASE.absolute()}"


def client() -> MlflowClient:
    """The client for :func:`tracking_uri`."""
    WORK.mkdir(exist_ok=True)
    return _client(tracking_uri())


def reporting(function: Callable[P, T]) -> Callable[P, T]:
    """Say in one line when MLflow cannot be reached or refuses."""

    @wraps(function)
    def reported(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (MlflowException, SQLAlchemyError) as error:
            reason = without_password(" ".join(f"MLflow at {tracking_uri()}: {error}".split()))[:300]
            raise WorkspaceError(
                f"{reason}. Mend that, or set MLFLOW_TRACKING_URI, and run the command again"
            ) from error

    return reported


def experiment() -> str:
    """The id of the experiment, made when it is not there."""
    found = client().get_experiment_by_name(EXPERIMENT)
    place = None if os.environ.get("MLFLOW_TRACKING_URI") else _ARTIFACTS.absolute().as_uri()
    if found is None:
        return client().create_experiment(EXPERIMENT, artifact_location=place)
    if place and found.artifact_location != place and found.artifact_location.endswith(f"/{_ARTIFACTS}"):
        _move_artifacts(found.artifact_location, place)
    return str(found.experiment_id)


def runs(tags: Mapping[str, str]) -> list[Run]:
    """The runs with all these tags, the newest first."""
    wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
    return list(client().search_runs([experiment()], wanted))


def metrics(values: object, timestamp: int, prefix: str = "") -> Iterator[Metric]:
    """Every finite number of nested mappings and lists, names joined by dots."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from metrics(value, timestamp, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(values, list):
        yield from metrics(dict(enumerate(values)), timestamp, prefix)
    elif is_number(values):
        yield Metric(_metric_name(prefix), values, timestamp, 0)


def curves(history: Mapping[str, object], timestamp: int) -> Iterator[Metric]:
    """Every list of numbers as a metric per step."""
    for key, values in history.items():
        for step, value in enumerate(values if isinstance(values, list) else [values]):
            if is_number(value):
                yield Metric(_metric_name(key), value, timestamp, step)


def is_number(value: object) -> TypeGuard[float]:
    """A finite number; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def say(line: str) -> None:
    """Tell whoever runs this: in a round Prefect keeps what is logged from the terminal."""
    print(line, file=sys.stderr, flush=True)


def _move_artifacts(old: str, new: str) -> None:
    """Let what a moved or copied checkout logged be where it now is: MLflow has absolute paths and no call for it."""
    with closing(sqlite3.connect(_DATABASE)) as database, database:
        for table, columns in _PLACES.items():
            for column in columns:
                moved = f"UPDATE {table} SET {column} = replace({column}, ?1, ?2) WHERE instr({column}, ?1) = 1"
                database.execute(moved, (old, new))
    say(f"{_DATABASE}: this checkout was moved or copied; its artifacts were in {old} and are in {new}")


def _metric_name(name: str) -> str:
    return re.sub(r"[^\w\-./ :]", "_", name)


@cache
def _client(uri: str) -> MlflowClient:
    return MlflowClient(uri)
