"""The audit's labels against what is known of real pages, and the whole command with tiny models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch
import yaml
from checkout import CHECKOUT, goal_rows
from mlflow import MlflowClient
from tiny import build_tiny_base

from benchmarks.wander import RandomAgent
from environments.miniwob import MiniWoB
from environments.registry import load_goals
from environments.types import COMPLETE, Action, Candidate, Instance, Kind
from flows import report
from flows.journal import JOURNAL, Journal
from models.network import load_base
from models.prompts import context_of
from models.tuning import Tuning, save_tuned, tunable
from tasks import versions
from tasks.audit import benchmark
from tasks.audit.cases import LABELLED
from tasks.audit.judges import Verifier
from tasks.audit.material import Players, gather, with_pairs
from tasks.demonstrate import demonstrate
from tasks.errors import BusyError
from tasks.evidence.canaries import canaries
from tasks.evidence.ground import Ground
from tasks.params import load_params
from tasks.reward_data import Generator

GOALS = load_goals(Path("data/goals"))
SEED = 1_000_500_000


@pytest.fixture
def world() -> Iterator[MiniWoB]:
    with closing(MiniWoB()) as world:
        yield world


def test_right_is_what_brings_the_goal_nearer(world: MiniWoB) -> None:
    """enter-text: a field, a button. Submitting the empty field ends the episode; typing without focus is lost."""
    ground = Ground(world, Instance(GOALS["enter-text"], SEED))
    screen = ground.start.observation
    (field,) = [element for element in screen.elements if element.kind in ("textbox", "input")]
    (button,) = [element for element in screen.elements if element.kind == "button"]
    word = ground.start.instruction.split('"')[1]
    typing = Action(Kind.TYPE, text=word)
    options = [Action.click(field), Action.click(button), typing, Action(Kind.WAIT), COMPLETE]
    found = ground.right((), screen, [Candidate(action) for action in options])
    assert [(right, in_reach) for _, right, in_reach in found] == [
        (True, True),
        (False, False),
        (False, True),
        (False, True),
        (False, False),
    ]
    assert ground.distance((), screen) == 3
    steps, screen, _ = ground.take((), screen, Action.click(field))
    found = ground.right(steps, screen, [Candidate(Action.click(field)), Candidate(typing)])
    assert [right for _, right, _ in found] == [False, True]


def test_the_step_limit_counts(world: MiniWoB) -> None:
    """Five steps are allowed and three needed: after three idle ones the goal is out of reach."""
    ground = Ground(world, Instance(GOALS["enter-text"], SEED))
    steps, screen = (), ground.start.observation
    far = [ground.distance(steps, screen)]
    for _ in range(3):
        steps, screen, _ = ground.take(steps, screen, Action(Kind.WAIT))
        far.append(ground.distance(steps, screen))
    assert far == [3, 3, 3, None]


def test_boxes_may_be_ticked_in_any_order(world: MiniWoB) -> None:
    episodes = (demonstrate(world, Instance(GOALS["click-checkboxes"], SEED + n)) for n in range(9))
    episode = next(episode for episode in episodes if len(episode.acts) > 2)
    instance, wanted = episode.instance, [step.action for step in episode.acts[:-1]]
    ground = Ground(world, instance)
    screen = ground.start.observation
    boxes = [Action.click(element) for element in screen.elements if element.kind == "checkbox"]
    found = ground.right((), screen, [Candidate(action) for action in boxes])
    assert [option.action for option, right, _ in found if right] == [box for box in boxes if box in wanted]


def test_canaries_reach_nothing(world: MiniWoB) -> None:
    instance = Instance(GOALS["login-user"], SEED)
    demonstration = demonstrate(world, instance)
    assert world.verdict()
    found = {name: (episode, verdict) for name, episode, verdict in canaries(Ground(world, instance), demonstration)}
    assert set(found) == {"at_once", "flatters", "repeats", "truncates", "looks_done"}
    assert not any(verdict for _, verdict in found.values())
    assert found["at_once"][0].acts == ()
    assert len(found["repeats"][0].acts) == GOALS["login-user"].max_steps - 1
    assert len({step.observation for step in found["repeats"][0].acts[1:]}) == 1
    assert found["truncates"][0].last == demonstration.acts[-1].observation
    assert found["looks_done"][0].end is demonstration.end
    assert len(found["looks_done"][0].acts) == len(demonstration.acts)


def test_material_of_an_instance(tmp_path: Path) -> None:
    instance = Instance(GOALS["click-option"], SEED)
    players = Players(RandomAgent(), RandomAgent())
    found = with_pairs(gather("held-out", instance, players, load_params().explore, "s"), [], 6, 0)
    cases = [case for item in found for case in item.cases]
    drawn = {
        source: sum(c.count for c in cases if c.source == source and c.query == "outcome")
        for source in ("weak", "middling")
    }
    assert drawn == {"weak": 8, "middling": 8}
    assert all(case.label for case in cases if case.source == "strong")
    assert not any(case.label for case in cases if case.part == "canary")
    assert {case.source for case in cases if case.part == "held-out"} <= set(Generator)
    steps = [case for case in cases if case.part == "live" and case.query == "step"]
    assert {case.label for case in steps} == {True, False}

    LABELLED.write(tmp_path / "kept", found)
    assert list(LABELLED.read(tmp_path / "kept")) == found

    outcomes = [
        (item, case) for item in found for case in item.cases if case.query == "outcome" and case.part != "held-out"
    ]
    contexts = [context_of(item.trajectory.episode, case.step, case.instruction) for item, case in outcomes]
    said = Verifier(instance).score(contexts, [[COMPLETE]] * len(contexts))
    assert said == [[float(case.label)] for _, case in outcomes]


def test_of_an_unseen_goal_there_are_pairs_alone() -> None:
    """A live outcome of an oracle alone would say nothing of failures."""
    instance = Instance(GOALS["click-option"], SEED)
    players = Players(RandomAgent(), RandomAgent())
    found = with_pairs(gather("unseen", instance, players, load_params().explore, "s"), ["click-option"], 6, 0)
    cases = [case for item in found for case in item.cases]
    assert {case.part for case in cases} == {"unseen"}
    assert {case.label for case in cases if case.query == "outcome"} == {True, False}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with tiny models: the champions, and seed models and a round's reward model that differ from them."""
    root = tmp_path_factory.mktemp("audit") / "workspace"
    base = build_tiny_base(root.parent / "base")
    for role in ("agent", "reward"):
        for place, seed in (("seed", 1), ("state", 2), ("round", 3)):
            network = tunable(load_base(str(base), "float32", 5), Tuning("lora", 4, 8, 1), seed)
            for name, weight in network.model.named_parameters():
                if "lora_B" in name:
                    torch.nn.init.normal_(weight, std=0.1)
            (root / "data" / place / role).mkdir(parents=True)
            save_tuned(network, root / "data" / place / role)
    (root / "data/seed/base").mkdir()
    bases = {role: {"model": str(base), "digest": ""} for role in ("agent", "reward")}
    (root / "data/seed/base/bases.json").write_text(json.dumps(bases))
    params = yaml.safe_load((CHECKOUT / "params.yaml").read_text())
    params["goals"] = "data/goals/starter.yaml"
    params["explore"] |= {"candidates": 2}
    (root / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    pipeline = yaml.safe_load((CHECKOUT / "dvc.yaml").read_text())
    del pipeline["stages"]["train_reward"]  # its output is put under DVC by hand
    (root / "dvc.yaml").write_text(yaml.safe_dump(pipeline))
    (root / "data/goals").mkdir()
    for file, ids in (("starter", ("click-button", "enter-text")), ("more", ("choose-list",))):
        (root / f"data/goals/{file}.yaml").write_text(yaml.safe_dump(goal_rows(*ids)))
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    dvc = [sys.executable, "-m", "dvc"]
    tracked = ["params.yaml", "dvc.yaml", "data/goals", "data/round"]
    for command in (
        [*git, "init", "-q"],
        [*dvc, "init", "-q"],
        [*dvc, "add", "-q", "data/round/reward"],
        [*git, "add", *tracked],
        [*git, "commit", "-qm", "A workspace"],
        [*git, "tag", "round-0001"],
    ):
        subprocess.run(command, cwd=root, check=True)
    shutil.rmtree(root / "data/round/reward")  # a later round has made its own
    return root


def _evaluate(root: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flows.cli", "evaluate", "reward", *flags]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command(workspace: Path) -> None:
    done = _evaluate(workspace, "--per-goal", "1", "--round", "1")
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    for judge in (
        "chance",
        "likelihood",
        "seed",
        "round 1",
        "round 1, gated",
        "champion",
        "champion, minimum",
        "champion, gated",
        "champion, accepted",
        "verifier",
    ):
        assert judge in rows

    audit = json.loads((workspace / ".ratchet/audit/audit.json").read_text())
    verifier = audit["judges"]["verifier"]
    assert verifier["live"]["outcome"]["auc"]["value"] in (1.0, None)
    assert verifier["canary"]["outcome"]["false_accept"]["value"] == 0.0
    assert verifier["held-out"]["step"]["n"] == 0
    assert audit["judges"]["champion"]["unseen"]["step"]["n"] > 0
    models = ("seed", "round 1", "champion")
    assert len({json.dumps(audit["judges"][name]["held-out"]) for name in models}) == len(models)
    at_once = audit["judges"]["chance"]["false_accepts"]["canary"]["at_once"]
    assert at_once["n"] == 2

    client = MlflowClient(f"sqlite:///{workspace}/.ratchet/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("ratchet").experiment_id])
    assert run.info.status == "FINISHED"
    logged = run.data.metrics["champion.unseen.step.f1"]
    assert logged == audit["judges"]["champion"]["unseen"]["step"]["f1"]["value"]
    assert {file.path for file in client.list_artifacts(run.info.run_id)} == {"audit.json", "plots"}
    assert len(client.list_artifacts(run.info.run_id, "plots")) == 3
    assert not list((workspace / ".ratchet/work").glob("audit-*"))


def test_a_round_that_was_not_made_is_refused_before_anything_is_asked(workspace: Path) -> None:
    refused = _evaluate(workspace, "--round", "7")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith("ratchet: data/round/reward of round-0007: ")
    assert "`dvc fetch --all-tags`" in refused.stderr
    assert not (workspace / ".ratchet/work").exists() or not list((workspace / ".ratchet/work").glob("audit-*"))


def test_seeds_that_train_are_refused(workspace: Path) -> None:
    refused = _evaluate(workspace, "--first-seed", "7")
    assert refused.returncode == 2
    assert refused.stderr == "ratchet: --first-seed 7: seeds below evaluate.first_seed = 1000000000 train\n"


def test_it_and_a_round_keep_each_other_out(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that promotes meanwhile would change the champions under it."""
    monkeypatch.chdir(workspace)
    with versions.round_lock("round-0002"):
        refused = _evaluate(workspace)
    assert refused.returncode == 2
    assert refused.stderr.startswith("ratchet: round-0002 (process ")

    Journal(2, "", founding=False, at="train").save()
    said: list[str] = []

    def meanwhile() -> None:
        said.extend(report.status())
        versions.refuse_if_busy()

    monkeypatch.setattr(benchmark, "load_params", meanwhile)
    with pytest.raises(BusyError, match=r"^ratchet evaluate reward \(process \d+ on ") as busy:
        benchmark.run(1, None, "")
    assert said == [f"round-0002: stopped in 'train'; {busy.value}"]
    JOURNAL.unlink()
