"""The goal file of a web application: what becomes a goal, and the one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from environments.goalfile import check, fill, read
from environments.registry import load_goals
from environments.types import Goal, GoalError
from environments.web.file import WebFile, fill_path

GOOD: dict[str, Any] = {
    "app": {"start": "serve --port {port} {data}", "data": "data", "database": "app.db", "viewport": [800, 600]},
    "goals": [
        {
            "id": "rename",
            "tier": 2,
            "max_steps": 5,
            "path": "/item/{item}",
            "instruction": "Rename item {item} to {title}.",
            "values": {"item": [1, 2, 3], "title": ["Ada", "Bob", "Cy"]},
            "success": {"sql": "SELECT title FROM item WHERE id = :item", "equals": "{title}"},
        }
    ],
}


def _file(folder: Path, app: dict[str, Any] | None = None, goal: dict[str, Any] | None = None) -> Path:
    content = {"app": GOOD["app"] | (app or {}), "goals": [GOOD["goals"][0] | (goal or {})]}
    path = folder / "app.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_its_goals_are_ordinary_goals(tmp_path: Path) -> None:
    path = _file(tmp_path)
    assert load_goals(path) == {"rename": Goal("rename", "environments.web.app:WebApp", f"{path}#rename", 2, 5)}
    (tmp_path / "list.yaml").write_text("- {id: a, world: 'w:W', page: p, tier: 1, max_steps: 1}")
    assert list(load_goals(tmp_path)) == ["rename", "a"]


def test_the_seed_chooses_the_values(tmp_path: Path) -> None:
    path = _file(tmp_path)
    goal = check(WebFile, path, read(path)).goals[0]
    chosen = [goal.choose(seed) for seed in range(200)]
    assert chosen == [goal.choose(seed) for seed in range(200)]
    assert {(values["item"], values["title"]) for values in chosen} == {
        (item, title) for item in (1, 2, 3) for title in ("Ada", "Bob", "Cy")
    }


def test_values_fill_texts_and_paths() -> None:
    values = {"title": "a & b/c?", "n": 3}
    assert fill({"say": ["{title} {n}", 7]}, values) == {"say": ["a & b/c? 3", 7]}
    assert fill_path("/find?q={title}&n={n}", values) == "/find?q=a%20%26%20b%2Fc%3F&n=3"


@pytest.mark.parametrize(
    ("app", "goal", "message"),
    [
        ({"viewport": [800]}, {}, r"app\.viewport=\[800\]: List should have at least 2 items"),
        ({"viewport": [800, "600"]}, {}, r"app\.viewport\.1='600': .*valid integer"),
        ({"strat": "x"}, {}, r"app\.strat='x': Extra inputs"),
        ({"start": "serve {prot}"}, {}, r"yaml: start: \{prot\} is not known; there is data, port"),
        ({"reset": "sometimes"}, {}, r"app\.reset='sometimes': Input should be a valid list"),
        ({"reset": [{"sqll": "x"}]}, {}, r"Input should be a mapping with one of the keys sql, rest, command, restore"),
        ({"database": None, "reset": [{"sql": "x"}]}, {}, "a hook with sql needs a database"),
        ({"database": None}, {}, "a hook with sql needs a database"),
        ({"ready": "/grüße"}, {}, r"app\.ready='/grüße': String should match"),
        ({}, {"setup": [{"rest": "/item/ü"}]}, r"goal rename: setup\.0\.rest\.rest='/item/ü': String should match"),
        ({}, {"tier": 5}, "goal rename: tier=5: .*less than or equal to 4"),
        ({}, {"path": "item"}, "goal rename: path='item': String should match"),
        (
            {},
            {"instruction": "Name {name}"},
            r"goal rename: instruction: \{name\} is not known; there is item, title",
        ),
        ({}, {"values": {"item": [], "title": ["x"]}}, r"goal rename: values\.item=\[\]: List should have at least 1"),
        ({}, {"values": {"port": [1]}}, "'port' is no name of a value"),
        ({}, {"success": {"page": "x", "equals": 1}}, r"goal rename: success\.page\.equals=1: Extra inputs"),
        ({}, {"success": {"sql": "x"}}, r"goal rename: success\.sql\.equals=.*Field required"),
        ({}, {"success": {"sql": "x", "equals": "{who}"}}, r"goal rename: setup or success: \{who\} is not known"),
        ({}, {"setup": [{"command": "rm {file}"}]}, r"goal rename: setup or success: \{file\} is not known"),
        ({}, {"success": "always"}, "goal rename: success='always': Input should be a mapping with one of the keys"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    tmp_path: Path, app: dict[str, Any], goal: dict[str, Any], message: str
) -> None:
    path = _file(tmp_path, app, goal)
    with pytest.raises(GoalError, match=message) as caught:
        load_goals(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_without_goals_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(yaml.safe_dump({"app": GOOD["app"], "goals": []}))
    with pytest.raises(GoalError, match=r"goals=\[\]: List should have at least 1 item"):
        load_goals(path)


def test_a_list_of_goals_is_no_application(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("[]")
    with pytest.raises(GoalError, match="valid dictionary"):
        check(WebFile, path, read(path))
