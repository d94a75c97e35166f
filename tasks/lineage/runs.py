"""A run a round, and in it a run a stage."""

from __future__ import annotations

import configparser
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    LoggedModelInput,
    Metric,
    Param,
    Run,
    RunTag,
)
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import RESOURCE_DOES_NOT_EXIST, ErrorCode
from mlflow.utils.mlflow_tags import (
    MLFLOW_DATASET_CONTEXT,
    MLFLOW_GIT_COMMIT,
    MLFLOW_PARENT_RUN_ID,
    MLFLOW_RUN_NAME,
    MLFLOW_RUN_NOTE,
    MLFLOW_SOURCE_NAME,
)
from mlflow.utils.validation import MAX_METRICS_PER_BATCH, MAX_PARAMS_TAGS_PER_BATCH

from tasks import ancestry
from tasks.errors import without_password
from tasks.files import WORK, log_of, read_json
from tasks.lineage import models
from tasks.lineage.source import DvcSource
from tasks.lineage.store import (
    COMMIT,
    FLOW_RUN_ID,
    ROUND,
    ROUND_COMMIT,
    client,
    curves,
    experiment,
    metrics,
    reporting,
    runs,
    say,
)
from tasks.versions import Artifact, StageRecord, commit_of, show, tag_of

_STAGE, _RECORD = "ratchet.stage", "ratchet.record"
_SECONDS = "stage_seconds"
_FIGURES = ("metrics.json", "monitors.json")
_SMALL = 1 << 20  # bytes of an output that is shown in MLflow too
_FAILED, _FAILURE = "ratchet.failed_stage", "ratchet.failure"


@reporting
def begin_round(number: int, tags: Mapping[str, str], run_id: str | None = None) -> str:
    """Open the run of a round, or the one that an interruption left, and give its id.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    tags = {**tags, ROUND: str(number), MLFLOW_SOURCE_NAME: "ratchet round"}
    if COMMIT in tags:
        tags[MLFLOW_GIT_COMMIT] = tags[COMMIT]
    place = experiment()  # asked for a reopened round too: its checkout may have been moved
    if run_id is None or not _is_there(run_id):
        return str(client().create_run(place, tags=tags, run_name=tag_of(number)).info.run_id)
    _forget_failure(run_id)
    client().update_run(run_id, status="RUNNING")
    _tag(run_id, tags)
    return run_id


@reporting
def log_stage(round_run: str, record: StageRecord, seconds: float, tags: Mapping[str, str]) -> None:
    """Log a finished stage under its round.

    A record that was logged already is left as it is; one whose logging was interrupted is completed.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    run = _stage_run(round_run, record, seconds, tags)
    run_id = str(run.info.run_id)
    if run.info.status == "FINISHED":
        return
    rev = tag_of(int(run.data.tags[ROUND]))
    _log_params(run_id, record)
    if _SECONDS not in run.data.metrics:
        _log_metrics(run_id, [*_stage_metrics(record, run.info.start_time, seconds)])
    _log_data(run_id, record, rev)
    _log_files(run_id, record, client().get_run(round_run).info.start_time / 1000)
    _log_models(client().get_run(run_id), record, rev)
    client().set_terminated(run_id)


@reporting
def end_round(
    round_run: str,
    number: int,
    commit: str,
    decision: Mapping[str, Mapping[str, Any]],
    overhead: Mapping[str, float],
) -> None:
    """Close a round: its commit, what was decided and why; the models in use from now on are ``champion``.

    git and DVC are the record: a model that MLflow has lost keeps no round from ending.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    tags = {ROUND_COMMIT: commit}
    for kind, verdict in decision.items():
        tags |= {
            f"ratchet.decision.{kind}": verdict["reason"],
            f"ratchet.promoted.{kind}": verdict["promoted"],
        }
        made = models.of_kind(kind, _locked(number, f"data/round/{kind}"))
        if not made:
            say(f"{tag_of(number)}: MLflow has no {kind} of this round")
        for version in made:
            models.decide(version, commit, verdict)
        for champion in models.of_kind(kind, _in_use(number, kind, verdict)):
            models.crown(champion)
    _tag(round_run, tags)
    started = client().get_run(round_run).info.start_time
    _log_metrics(round_run, [*metrics({"overhead": overhead}, started)])
    client().set_terminated(round_run)


@reporting
def fail_round(round_run: str, stage: str, message: str) -> None:
    """Close a round as failed, with the stage, the reason and the stage's log.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    note = f"`{stage}` failed: {message}"
    _tag(round_run, {_FAILED: stage, _FAILURE: message, MLFLOW_RUN_NOTE: note})
    _log_file(round_run, log_of(stage), "logs")
    client().set_terminated(round_run, "FAILED")


@reporting
def log_audit(about: Mapping[str, str], figures: Mapping[str, Any], folder: Path) -> str:
    """Log an audit of reward models as a run of its own and give its id: tags, metrics, and what ``folder`` shows.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    tags = {**about, MLFLOW_SOURCE_NAME: "ratchet evaluate reward", MLFLOW_GIT_COMMIT: about[COMMIT]}
    run = client().create_run(experiment(), tags=tags, run_name="audit-reward")
    run_id = str(run.info.run_id)
    _log_metrics(run_id, [*metrics(figures, run.info.start_time)])
    _log_file(run_id, folder / "audit.json", None)
    client().log_artifacts(run_id, str(folder / "plots"), "plots")
    client().set_terminated(run_id)
    return run_id


@reporting
def run_of(tag: str) -> str | None:
    """The id of the run of a round of this workspace; None where MLflow has none.

    A server may have rounds of other workspaces, too: of the same number, but of other commits.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    found = runs({ROUND_COMMIT: commit_of(tag), MLFLOW_RUN_NAME: tag})
    return str(found[0].info.run_id) if found else None


@reporting
def log_page(run_id: str, path: Path) -> None:
    """Show a page among the artifacts of a run.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    _log_file(run_id, path, None)


@reporting
def round_of(flow_run: str) -> int | None:
    """The number of the round that the Prefect flow run with this id worked on, or None.

    Raises:
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    if re.fullmatch(r"[\w-]+", flow_run):
        for run in runs({FLOW_RUN_ID: flow_run}):
            return int(run.data.tags[ROUND])
    return None


def _is_there(run_id: str) -> bool:
    """False when the database was deleted since: then the round goes on in a run of its own."""
    try:
        client().get_run(run_id)
    except MlflowException as error:
        if error.error_code != ErrorCode.Name(RESOURCE_DOES_NOT_EXIST):
            raise
        return False
    return True


def _forget_failure(run_id: str) -> None:
    """A round that goes on has not failed; the stage goes last, for it says that there is something to forget."""
    tags = client().get_run(run_id).data.tags
    if _FAILED in tags:
        for key in tags.keys() & {MLFLOW_RUN_NOTE, _FAILURE}:
            client().delete_tag(run_id, key)
        client().delete_tag(run_id, _FAILED)


def _stage_run(round_run: str, record: StageRecord, seconds: float, tags: Mapping[str, str]) -> Run:
    """The run of this very record under the round, new or found; it carries the round's own tags too."""
    content = json.dumps(asdict(record), sort_keys=True, default=str)
    digest = hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()
    own = {_STAGE: record.name, _RECORD: digest, MLFLOW_PARENT_RUN_ID: round_run}
    if found := runs(own):
        return found[0]
    of_round = client().get_run(round_run).data.tags
    inherited = {key: value for key, value in of_round.items() if not key.startswith("mlflow.")}
    own |= {MLFLOW_SOURCE_NAME: f"ratchet stage {record.name}", MLFLOW_GIT_COMMIT: inherited.get(COMMIT, "")}
    started = int((time.time() - seconds) * 1000)
    return client().create_run(experiment(), started, {**inherited, **tags, **own}, run_name=record.name)


def _log_params(run_id: str, record: StageRecord) -> None:
    params = [Param(key, _plain(value)) for key, value in ancestry.flat(record.params).items()]
    for start in range(0, len(params), MAX_PARAMS_TAGS_PER_BATCH):
        client().log_batch(run_id, params=params[start : start + MAX_PARAMS_TAGS_PER_BATCH])


def _stage_metrics(record: StageRecord, timestamp: int, seconds: float) -> Iterator[Metric]:
    """The seconds come last: with them, all is logged."""
    for out in record.outs:
        if Path(out.path).name in _FIGURES:
            yield from metrics(read_json(Path(out.path)), timestamp)
        if (history := Path(out.path) / "history.json").is_file():
            yield from curves(read_json(history), timestamp)
    yield Metric(_SECONDS, seconds, timestamp, 0)


def _log_metrics(run_id: str, values: list[Metric]) -> None:
    for start in range(0, len(values), MAX_METRICS_PER_BATCH):
        client().log_batch(run_id, metrics=values[start : start + MAX_METRICS_PER_BATCH])


def _log_data(run_id: str, record: StageRecord, rev: str) -> None:
    """Everything read and written: MLflow shows both as datasets, and their context tells them apart."""
    remote = _remote()
    datasets = [_dataset(dep, "input", rev, remote) for dep in record.deps]
    datasets += [_dataset(out, "output", rev, remote) for out in record.outs]
    parents = [LoggedModelInput(version.tags[models.LOGGED_MODEL]) for version in models.of(record.deps)]
    client().log_inputs(run_id, datasets, parents)


def _dataset(artifact: Artifact, context: str, rev: str, remote: str) -> DatasetInput:
    source = DvcSource(artifact.path, artifact.md5, rev, remote)
    profile = json.dumps({"bytes": artifact.size})
    # An md5 (with DVC's .dir for a folder) fits the 36 characters that MLflow has for a digest.
    dataset = Dataset(artifact.path, artifact.md5, DvcSource.TYPE, source.to_json(), profile=profile)
    return DatasetInput(dataset, [InputTag(MLFLOW_DATASET_CONTEXT, context)])


def _log_files(run_id: str, record: StageRecord, since: float) -> None:
    """What is small; log and data docs if they are from after ``since``: DVC may have fetched what was made before."""
    if _is_from(log_of(record.name), since):
        _log_file(run_id, log_of(record.name), "logs")
    for out in record.outs:
        path = Path(out.path)
        if path.is_file() and out.size <= _SMALL:
            _log_file(run_id, path, None)
        elif path.is_dir() and path.name == "plots":
            client().log_artifacts(run_id, str(path), "plots")
    docs = WORK / "data_docs"
    if record.name == "validate" and _is_from(docs / "index.html", since):
        client().log_artifacts(run_id, str(docs), "data_docs")


def _is_from(path: Path, since: float) -> bool:
    return path.exists() and path.stat().st_mtime >= since


def _log_file(run_id: str, path: Path, folder: str | None) -> None:
    if path.is_file():
        client().log_artifact(run_id, str(path), folder)


def _log_models(run: Run, record: StageRecord, rev: str) -> None:
    models.register(run, record, rev)
    if record.name == "found":
        for version in models.of(record.deps + record.outs):
            models.crown(version)


def _in_use(number: int, kind: str, verdict: Mapping[str, Any]) -> tuple[Artifact, ...]:
    """The model that a round left in use: its own, the one it started from, or the one that the round before did."""
    if verdict["promoted"]:
        return _locked(number, f"data/round/{kind}")
    back = verdict.get("rolled_back")  # decisions of earlier versions do not say
    return _locked(number - 1 if back else number, f"data/state/{kind}")


def _locked(number: int, path: str) -> tuple[Artifact, ...]:
    """What a round read or wrote at a path; nothing where git has no such round here."""
    lock = show(tag_of(number), "dvc.lock")
    records = ancestry.parse(lock) if lock else ()
    return tuple({one for record in records for one in record.deps + record.outs if one.path == path})


def _tag(run_id: str, tags: Mapping[str, str]) -> None:
    client().log_batch(run_id, tags=[RunTag(key, str(value)) for key, value in tags.items()])


def _remote() -> str:
    """The URL of the default DVC remote as the config in git has it, without a user or password."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(".dvc/config")
    name = config.get("core", "remote", fallback="")
    url = config.get(f"'remote \"{name}\"'", "url", fallback="")
    return without_password(url)


def _plain(value: object) -> str:
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
