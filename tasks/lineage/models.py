"""The registry: every agent and reward model, what it came from, and which of them is in use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mlflow.entities import LoggedModel, LoggedModelOutput, Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.utils.mlflow_tags import MLFLOW_MODEL_VERSIONS, MLFLOW_RUN_NOTE

from tasks import ancestry
from tasks.errors import RatchetError
from tasks.lineage.store import COMMIT, FLOW_RUN_ID, ROUND, ROUND_COMMIT, client, reporting
from tasks.versions import Artifact, StageRecord

KINDS = {f"data/{place}/{kind}": kind for place in ("seed", "round") for kind in ("agent", "reward")}
MD5 = "dvc.md5"
LOGGED_MODEL = "ratchet.logged_model"  # MLflow's SQL registry forgets the model_id of a version
_CHAMPION, _CHALLENGER = "champion", "challenger"
_DESCRIPTION_LIMIT = 5000  # of MLflow's database column


def register(run: Run, record: StageRecord, rev: str) -> None:
    """Register the models among a stage's outputs, with alias ``challenger``.

    A version is its content: an md5 that is registered already keeps its version.
    """
    for out in record.outs:
        if out.path in KINDS:
            _register(run, record, out, rev)


def of(artifacts: tuple[Artifact, ...]) -> list[ModelVersion]:
    """The registered versions with the content of these artifacts."""
    found = [version for artifact in artifacts for version in by_md5(artifact.md5)]
    return list({(version.name, version.version): version for version in found}.values())


def of_kind(kind: str, artifacts: tuple[Artifact, ...]) -> list[ModelVersion]:
    """The registered agents, or reward models, with the content of these artifacts."""
    return [version for version in of(artifacts) if version.name == f"ratchet-{kind}"]


def by_md5(md5: str) -> list[ModelVersion]:
    """The registered versions with this content."""
    return list(client().search_model_versions(f"tags.`{MD5}` = '{md5}'"))


def decide(version: ModelVersion, commit: str, verdict: Mapping[str, Any]) -> None:
    """Note what a round decided about its model; ``challenger`` there is no longer."""
    # Content that an earlier round made too keeps the commit of that round.
    tags = {"ratchet.decision": verdict["reason"], ROUND_COMMIT: version.tags.get(ROUND_COMMIT, commit)}
    for key, value in tags.items():
        client().set_model_version_tag(version.name, version.version, key, value)
    _settle(version.name)


def crown(version: ModelVersion) -> None:
    """Alias ``champion`` goes to this version; ``challenger`` there is no longer."""
    client().set_registered_model_alias(version.name, _CHAMPION, version.version)
    _settle(version.name)


def _settle(name: str) -> None:
    if _CHALLENGER in client().get_registered_model(name).aliases:
        client().delete_registered_model_alias(name, _CHALLENGER)


def label(version: ModelVersion) -> str:
    """The name people give it, such as ``ratchet-agent/3``."""
    return f"{version.name}/{version.version}"


@reporting
def resolve(x: str) -> str:
    """The md5 of a model version, such as ``ratchet-agent/3`` or ``agent@champion``.

    Raises:
        RatchetError: when there is no such model, version or alias; it names those that there are.
        WorkspaceError: MLflow cannot be reached or refuses.
    """
    form = re.fullmatch(r"(?:ratchet-)?([\w-]+)([/@])([\w-]+)", x)
    if form is None:
        raise RatchetError(f"{x!r}: not a model version. The form is ratchet-agent/3 or agent@champion")
    name, mark, which = form.groups()
    versions = client().search_model_versions(f"name = 'ratchet-{name}'")
    md5s = {str(version.version): version.tags.get(MD5, "") for version in versions}
    if mark == "@" and md5s:
        aliases = client().get_registered_model(f"ratchet-{name}").aliases
        md5s = {alias: md5s[str(number)] for alias, number in aliases.items()}
    if not md5s.get(which):
        known = ", ".join(f"{name}{mark}{key}" for key in sorted(md5s))
        known = known or f"no {name}; ratchet round makes one"
        raise RatchetError(f"{x}: no such model version in MLflow; it has {known}")
    return md5s[which]


def _register(run: Run, record: StageRecord, out: Artifact, rev: str) -> None:
    name = f"ratchet-{KINDS[out.path]}"
    known = of_kind(KINDS[out.path], (out,))
    version = known[0] if known else _create(run, record, out, rev, name)
    # What a tracking server does by itself: MLflow's pages link the logged model to its version by this tag.
    link = json.dumps([{"name": name, "version": str(version.version)}])
    client().set_logged_model_tags(version.tags[LOGGED_MODEL], {MLFLOW_MODEL_VERSIONS: link})
    client().set_registered_model_alias(name, _CHALLENGER, version.version)


def _create(run: Run, record: StageRecord, out: Artifact, rev: str, name: str) -> ModelVersion:
    tags = _tags(run, record, out)
    page = _page(run, record, out, rev, name)
    model = _logged_model(run, name, tags, page)
    if not client().search_registered_models(f"name = '{name}'"):
        client().create_registered_model(name)
    return client().create_model_version(
        name,
        # Not models:/ID: the SQL registry looks that up in the process-wide tracking store, maybe another.
        source=model.artifact_location,
        run_id=run.info.run_id,
        tags=tags | {LOGGED_MODEL: model.model_id},
        description=page,
        model_id=model.model_id,
    )


def _logged_model(run: Run, name: str, tags: dict[str, str], page: str) -> LoggedModel:
    """The logged model of this run; the one that an interrupted call left is taken up."""
    place = [run.info.experiment_id]
    mine = f"source_run_id = '{run.info.run_id}' and tags.`{MD5}` = '{tags[MD5]}'"
    if left := client().search_logged_models(place, mine):
        model = left[0]
    else:
        about = {**tags, MLFLOW_RUN_NOTE: page}
        model = client().create_logged_model(place[0], name, run.info.run_id, about, run.data.params, name)
    client().finalize_logged_model(model.model_id, "READY")
    if run.outputs is None or model.model_id not in [out.model_id for out in run.outputs.model_outputs]:
        client().log_outputs(run.info.run_id, [LoggedModelOutput(model.model_id, step=0)])
    return model


def _tags(run: Run, record: StageRecord, out: Artifact) -> dict[str, str]:
    parents = of(record.deps)
    models = {version.tags[MD5] for version in parents}
    tags = {
        "dvc.path": out.path,
        MD5: out.md5,
        "ratchet.parents": ", ".join(map(label, parents)),
        "ratchet.datasets": json.dumps({dep.path: dep.md5 for dep in record.deps if dep.md5 not in models}),
    }
    return tags | {key: run.data.tags[key] for key in (COMMIT, FLOW_RUN_ID, ROUND) if key in run.data.tags}


def _page(run: Run, record: StageRecord, out: Artifact, rev: str, name: str) -> str:
    """What a model's page says, in markdown: how to get it, and the ancestry picture as far as it fits."""
    graph = ancestry.load(rev, run.data.tags.get(COMMIT, "unknown"))
    picture = ancestry.text(ancestry.grow(name, graph.find(out.md5)))
    head = (
        f"Made by `{record.name}` of `{rev}`. Files: `git checkout {rev} && dvc pull {out.path}`\n\n"
        f"All of its ancestry: `ratchet lineage {out.md5[:8]}`\n"
    )
    lines = picture.splitlines()
    while len("\n".join([head, *lines])) > _DESCRIPTION_LIMIT - 20:
        lines = [*lines[:-2], "..."]
    return "\n".join([head, "```", *lines, "```"])
