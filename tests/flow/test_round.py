"""Whole rounds: what they leave in git, DVC, Prefect and MLflow."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from pathlib import Path

import psutil
import pytest
from workspace import Workspace

from flows import report
from tasks.errors import WorkspaceError
from tasks.files import digest


def test_two_rounds_move_the_state(two_rounds: Workspace) -> None:
    subjects = two_rounds.git("log", "--reverse", "--format=%s").splitlines()
    assert subjects == [
        "A workspace",
        "Found the first state",
        "Round 1: agent promoted",
        "State of round 2: agent promoted in round 1",
        "Round 2: agent promoted",
        "State of round 3: agent promoted in round 2",
    ]
    assert two_rounds.git("tag").split() == ["round-0001", "round-0002"]
    assert two_rounds.git("rev-parse", "HEAD~1") == two_rounds.git("rev-parse", "round-0002^{commit}")
    assert json.loads(two_rounds.text("data/state/curriculum.json")) == {"round": 3}
    assert "promoted: better" in two_rounds.git("log", "-1", "--format=%b")
    assert two_rounds.git("status", "--porcelain") == ""
    assert not (two_rounds.root / ".ratchet/round.json").exists()


def test_a_tag_holds_the_state_its_round_started_from(two_rounds: Workspace) -> None:
    found = two_rounds.git("show", "round-0001:data/state.dvc")
    assert found == two_rounds.git("show", "round-0001~1:data/state.dvc")
    assert found != two_rounds.git("show", "round-0002:data/state.dvc")


def test_a_commit_holds_nothing_but_the_round(two_rounds: Workspace) -> None:
    files = two_rounds.git("show", "--name-only", "--format=", "round-0001^{commit}").split()
    assert files == [
        "data/round/.gitignore",
        "data/round/decision.json",
        "data/round/metrics.json",
        "data/round/plots/success.csv",
        "dvc.lock",
    ]
    assert two_rounds.git("show", "--name-only", "--format=", "HEAD").split() == ["data/state.dvc"]


def test_metrics_of_rounds_compare(two_rounds: Workspace) -> None:
    diff = json.loads(two_rounds.dvc("metrics", "diff", "--json", "round-0001", "round-0002"))
    assert diff["data/round/metrics.json"]["agent.challenger.tier_3.solved"] == {"old": 0, "new": 1, "diff": 1}


def test_the_stages_logs_are_in_prefect(two_rounds: Workspace) -> None:
    with sqlite3.connect(two_rounds.root / ".ratchet/mlflow.db") as db:
        runs = {value for (value,) in db.execute("select value from tags where key = 'prefect.flow_run_id'")}
    assert len(runs) == 2
    messages = [
        line["message"].partition(" ")[2]
        for run in runs
        for line in _ask(two_rounds, "logs/filter", {"logs": _of(run)})
    ]
    for stage in ("base", "found", "explore", "train", "decide"):
        assert f"{stage} ends" in messages
    assert messages.count("explore ends") == 2
    pages = _ask(two_rounds, "artifacts/filter", {"artifacts": _of(next(iter(runs)))})
    assert ["promoted: better" in page["data"] for page in pages] == [True]


def test_mlflow_has_the_rounds_and_their_overhead(two_rounds: Workspace) -> None:
    with sqlite3.connect(two_rounds.root / ".ratchet/mlflow.db") as db:
        statuses = db.execute("select name, status from runs where name like 'round-%'").fetchall()
        metrics = {key for (key,) in db.execute("select distinct key from metrics")}
    assert sorted(statuses) == [("round-0001", "FINISHED"), ("round-0002", "FINISHED")]
    assert {f"overhead.{key}" for key in ("wall_s", "stages_s", "overhead_s", "overhead_percent")} <= metrics


def test_a_round_without_a_prefect_server(used: Workspace) -> None:
    """Edited params are the round's and go with it; a person's other work stays; a crashed stage is tried again."""
    used.write("params.yaml", used.text("params.yaml").replace("paths: 2", "paths: 3"))
    used.write("notes.txt", "staged")
    used.write("new.txt", "staged too")
    used.git("add", "notes.txt", "new.txt")
    used.write("notes.txt", "not staged")
    before = (
        used.git("status", "--porcelain", "--", "notes.txt", "new.txt"),
        used.git("diff", "--cached", "notes.txt"),
    )

    done = Workspace(used.root, {key: value for key, value in used.env.items() if key != "PREFECT_API_URL"}).ratchet(
        "round", TOY_DIE="train"
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "agent: 0.250 -> 0.500, promoted: better"
    assert "round-0003: commit" in done.stdout
    assert "not committed, so the tag will not carry it: new.txt notes.txt" in done.stderr
    assert not [said for said in ("Traceback", "CancelledError", "explore ends") if said in done.stderr]
    assert "train: attempt 2" in done.stderr
    assert ".ratchet/mlflow.db: this checkout was moved or copied" in done.stderr
    assert "paths: 3" in used.git("show", "round-0003:params.yaml")
    assert before == (
        used.git("status", "--porcelain", "--", "notes.txt", "new.txt"),
        used.git("diff", "--cached", "notes.txt"),
    )
    assert used.git("ls-tree", "--name-only", "HEAD", "new.txt") == ""
    assert _working_in(used.root) == []
    assert (used.root / ".ratchet/prefect/prefect.db").exists()


@pytest.mark.slow
def test_what_the_first_models_are_made_from_may_be_changed_later(used: Workspace) -> None:
    """They were made once: a round says that they are not what they would be now, and goes on."""
    used.write("bases/small/weights", "small")
    used.write("params.yaml", used.text("params.yaml").replace("bases/tiny", "bases/small"))
    seed = digest(used.root / "data/seed")
    done = used.ratchet("round")
    assert done.returncode == 0, done.stderr
    assert "\nbase: changed since the seed was made; rounds go on from what they made then\n" in f"\n{done.stderr}"
    assert digest(used.root / "data/seed") == seed


def test_a_refusing_stage_stops_the_round_until_it_is_mended(used: Workspace) -> None:
    refused = used.ratchet("round", TOY_REFUSE="train")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        "ratchet: stage train ended with exit status 2: train: no row is left; its log is .ratchet/logs/train.log; "
        "mend what it names, then `ratchet round` goes on from here"
    )
    assert "attempt 2" not in refused.stderr
    assert "round-0003: stopped in 'train'" in used.ratchet("status").stdout
    assert used.git("tag").split() == ["round-0001", "round-0002"]

    used.git("checkout", "--quiet", "round-0002")
    used.dvc("checkout", "data/state.dvc")
    elsewhere = used.ratchet("round")
    assert elsewhere.returncode == 2
    assert "data/state: starts round 2, and round 3 was stopped here" in elsewhere.stderr

    used.git("checkout", "--quiet", "main")
    used.dvc("checkout", "data/state.dvc")
    done = used.ratchet("improve", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert used.git("tag").split() == ["round-0001", "round-0002", "round-0003"]
    assert done.stdout.splitlines()[-1].startswith("round-0003: agent success 0.500; ")


@pytest.mark.slow
def test_what_is_edited_each_time_a_stage_runs_ends_the_round(used: Workspace) -> None:
    """As by an application that writes into the folder of its goals: the stage would be made again without end."""
    edit = json.dumps({"explore": ["data/goals/click.txt", "click", "click click"]})
    refused = used.ratchet("round", TOY_EDIT=edit)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        "ratchet: for the second time, stage explore ended with exit status 75: data/goals/click.txt: edited while "
        "explore ran; its log is .ratchet/logs/explore.log; `ratchet round` makes it again once this is mended: let "
        "nothing write there while a round runs (docs/your-own-web-app.md)"
    )
    assert used.ratchet("round").returncode == 0


@pytest.mark.slow
def test_what_is_edited_each_time_others_are_made_again_ends_the_round(used: Workspace) -> None:
    refused = used.ratchet("round", TOY_EDIT=json.dumps({"train": ["params.yaml", "seed: ", "seed: 1"]}))
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        "ratchet: params.yaml: edited again while stages (explore) were made again; see `git status`, let nothing "
        "write there while a round runs (docs/your-own-web-app.md), then `ratchet round` goes on from here"
    )
    assert "seed: 110" in used.text("params.yaml")
    assert used.ratchet("round").returncode == 0


def test_why_a_stage_failed_is_said_though_mlflow_broke_meanwhile(used: Workspace) -> None:
    broken = "sh -c 'echo broken > .ratchet/mlflow.db; exit 2'"
    used.write("dvc.yaml", used.text("dvc.yaml").replace("python toy.py train", broken))
    used.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "Break MLflow in a stage")

    refused = used.ratchet("round")

    assert refused.returncode == 2
    untold, said = refused.stderr.splitlines()[-2:]
    assert "MLflow does not know that the round failed: MLflow at sqlite:///" in untold
    assert said.startswith("ratchet: stage train ended with exit status 2")


@pytest.mark.slow
def test_a_round_that_is_undone_is_made_by_the_code_of_today(used: Workspace) -> None:
    """Its state, params and goals are the old ones, and what the old code made of them is in DVC's cache."""
    used.git("config", "user.name", "A")
    used.git("config", "user.email", "a@b")
    used.write(
        "toy.py", used.text("toy.py").replace("read_text())\n\n\ndef train", 'read_text() + "anew")\n\n\ndef train')
    )
    used.git("commit", "-qam", "Explore otherwise")
    used.recipe("To undo a round", ("round-0004 round-0005", "round-0002"), ("round-0004", "round-0002"))
    assert used.git("status", "--porcelain") == ""
    done = used.ratchet("round")
    assert done.returncode == 0, done.stderr
    assert used.git("tag").split() == ["round-0001", "round-0002"]
    assert used.text("data/round/explored/shard").endswith("anew")


@pytest.mark.slow
def test_a_round_is_made_again_though_its_seed_would_be_another_today(workspace: Workspace) -> None:
    """A param that both read was edited between the two: the tag has the seed as it was made."""
    workspace.write(
        "toy.py", workspace.text("toy.py").replace('seed", "rows")', 'seed", Path("params.yaml").read_text())')
    )
    workspace.write(
        "dvc.yaml", workspace.text("dvc.yaml").replace("toy.py found\n", "toy.py found\n    params: [seed]\n")
    )
    workspace.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "A seed that depends on the seed")
    assert workspace.ratchet("round", TOY_REFUSE="explore").returncode == 2
    workspace.write("params.yaml", workspace.text("params.yaml").replace("seed: 0", "seed: 1"))
    done = workspace.ratchet("round")
    assert done.returncode == 0, done.stderr
    same = workspace.ratchet("reproduce", "round-0001")
    assert (same.returncode, same.stdout) == (0, "round-0001: every output is the same\n"), same.stderr
    workspace.git("checkout", "--quiet", "round-0001")
    workspace.dvc("checkout")
    assert "up to date" in workspace.dvc("repro", "decide")
    assert "found:" in workspace.dvc("status")


def test_a_line_a_round_says_what_came_into_use(inside: Workspace) -> None:
    """The agent is the challenger, 2 of 4; the reward model the champion: one of two right steps found, and so on."""
    figures = "agent success 0.500; reward model F1 of steps 0.500, of outcomes 0.667; agent promoted"
    assert report.progress([1, 2]) == [f"round-0001: {figures}", f"round-0002: {figures}"]
    with pytest.raises(WorkspaceError, match="round-0003: names no commit here"):
        report.progress([3])


def test_no_figure_is_given_to_a_model_that_came_back() -> None:
    rates = {"champion": {"rate": 0.25}, "challenger": {"rate": 0.5}}
    kept = {"promoted": False, "reason": "not promoted: worse", **rates}
    assert report.verdicts({"agent": kept, "reward": {**kept, "rolled_back": True}}) == [
        "agent: 0.250 -> 0.250, not promoted: worse",
        "reward: not promoted: worse",
    ]


def _of(run: str) -> dict[str, object]:
    return {"flow_run_id": {"any_": [run]}}


def _ask(workspace: Workspace, path: str, question: dict[str, object]) -> list[dict[str, str]]:
    request = urllib.request.Request(
        f"{workspace.env['PREFECT_API_URL']}/{path}",
        data=json.dumps(question).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return list(json.load(answer))


def _working_in(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found
