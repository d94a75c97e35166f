"""Every configuration file of the repository is loaded, and every command its documents name exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer
import yaml

from environments.oracles import pages
from environments.registry import load_goals
from flows.cli import app
from tasks.errors import ParamsError
from tasks.generators import Generator
from tasks.params import load_params
from tasks.stages import STAGES, run

ROOT = Path(__file__).parents[2]
GRAPH = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "infra").glob("*.md"))]
COMMANDS = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_params_are_valid() -> None:
    assert load_params(ROOT / "params.yaml").explore.candidates == 10


@pytest.mark.parametrize("name", GRAPH)
def test_a_stage_runs_its_own_function(name: str) -> None:
    assert GRAPH[name]["cmd"] == f"ratchet stage {name}"
    module, _, function = STAGES[name].partition(":")
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text())
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", GRAPH)
def test_the_params_of_a_stage_exist(name: str) -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    for key in GRAPH[name].get("params", []):
        value = params
        for part in key.split("."):
            assert part in value, key
            value = value[part]


def test_every_param_is_read_by_some_stage() -> None:
    read = {key.partition(".")[0] for stage in GRAPH.values() for key in stage.get("params", [])}
    assert read == set(yaml.safe_load((ROOT / "params.yaml").read_text()))


def test_goal_files_have_oracles_and_three_tiers() -> None:
    goals = load_goals(ROOT / "data/goals/starter.yaml").values()
    assert len(goals) >= 12
    assert {goal.tier for goal in goals} >= {1, 2, 3}
    assert {goal.page for goal in goals} <= pages()


def test_the_lock_names_no_machine() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"file:|https?:|\+cpu|find-links|index-url|@ ", text)


def test_pre_commit_runs_from_the_environment() -> None:
    hooks = [
        hook
        for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
        for hook in repo["hooks"]
    ]
    assert {hook["id"] for hook in hooks} == {"format", "lint", "types", "layers"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert re.search(r"^make test$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert "make test" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_exist(document: Path) -> None:
    text = document.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in re.findall(r"^ {4}(\S.*)$|`([^`\n]+)`", text, re.MULTILINE):
        command = "".join(line).split()
        if command[0] == "make" and len(command) > 1 and re.fullmatch(r"[a-z-]+", command[1]):
            assert command[1] in targets, command
        if command[0] == "ratchet" and len(command) > 1:
            assert command[1] in COMMANDS, command


def test_the_generators_of_reward_rows_are_documented() -> None:
    table = (ROOT / "docs/reward-models.md").read_text()
    assert re.findall(r"^\| `(\w+)` \| (?:right|wrong|both) \|", table, re.MULTILINE) == [*Generator]


def test_documents_link_to_files_that_exist() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text()):
            assert (document.parent / target).exists(), (document.name, target)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sed": 1}, r"sed = 1: extra inputs are not permitted"),
        ({"seed": "one"}, r"seed = 'one': input should be a valid integer"),
        ({"explore": {"candidates": 0}}, r"explore.candidates = 0: input should be greater than or equal to 1"),
        ({"decide": {"alpha": 2.0}}, r"decide.alpha = 2.0: input should be less than 1"),
        ({"demonstrate": {"per_goal": 30}}, r"demonstrate.*max_tries 20 must be at least per_goal 30 \+ calibration 2"),
        (
            {"engine": {"kind": "vllm"}, "tune": {"method": "full"}},
            "the file: value error, engine.kind vllm runs LoRA alone, but tune.method is full",
        ),
        (
            {"engine": {"kind": "vllm", "url": "http://host:1"}, "base": {"agent": "here"}},
            "the server at engine.url has one base, but base.agent is here and base.reward is embedded",
        ),
        ({"filter": {"without": ["earli"]}}, r"filter.without.*'earli': input should be 'executed'.*"),
        ({"numerics": {"isa": "sse"}}, r"numerics.isa = 'sse': input should be 'avx2' or 'native'"),
    ],
)
def test_wrong_params_are_refused_in_one_line(tmp_path: Path, change: dict[str, object], message: str) -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    for key, value in change.items():
        params[key] = {**params[key], **value} if isinstance(value, dict) else value
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(params))
    with pytest.raises(ParamsError, match=message) as caught:
        load_params(path)
    assert "\n" not in str(caught.value)
    assert "run the command again" in str(caught.value)


def test_missing_and_unreadable_params(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="not found"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_text("a: [")
    with pytest.raises(ParamsError, match="not YAML"):
        load_params(tmp_path / "params.yaml")
    (tmp_path / "params.yaml").write_bytes(b"a: \xff")
    with pytest.raises(ParamsError, match="not YAML"):
        load_params(tmp_path / "params.yaml")


def test_an_unknown_stage_is_named() -> None:
    with pytest.raises(ParamsError, match="'explor': not one of demonstrate, base"):
        run("explor")
