"""Goal files and worlds by import path: what is read, and the one line that says what is wrong."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from environments import oracles
from environments.miniwob import MiniWoB
from environments.registry import load_goals, open_world
from environments.types import Goal, GoalError, WorldError

GOALS = Path(__file__).parents[2] / "data" / "goals"
GOOD = '{id: a, world: "environments.miniwob:MiniWoB", page: click-button, tier: 1, max_steps: 3}'


def _file(folder: Path, *lines: str, name: str = "goals.yaml") -> Path:
    path = folder / name
    path.write_text("".join(f"- {line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_goal_file_is_read(tmp_path: Path) -> None:
    goals = load_goals(_file(tmp_path, GOOD, GOOD.replace("id: a", "id: b")))
    assert list(goals) == ["a", "b"]
    assert goals["a"] == Goal("a", "environments.miniwob:MiniWoB", "click-button", 1, 3)


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    _file(tmp_path, GOOD, name="one.yaml")
    _file(tmp_path, GOOD.replace("id: a", "id: b"), name="two.yaml")
    (tmp_path / ".#two.yaml").symlink_to("who edits it")  # as Emacs does
    assert set(load_goals(tmp_path)) == {"a", "b"}


def test_the_goals_of_this_repository_have_several_tiers_and_each_oracle_is_of_use() -> None:
    goals = load_goals(GOALS).values()
    assert {goal.page for goal in goals} >= oracles.pages()
    assert {goal.tier for goal in goals} == {1, 2, 3, 4}


def _registered() -> set[str]:
    """The pages of the package, read from its source: to import it would load Gymnasium and a browser driver."""
    spec = find_spec("miniwob")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).with_name("registration.py").read_text(encoding="utf-8")
    return set(re.findall(r'id="miniwob/(.+)-v1"', source))


def test_every_page_of_the_package_is_a_goal_or_excluded_with_the_reason() -> None:
    excluded = yaml.safe_load((GOALS / "excluded" / "miniwob.yaml").read_text(encoding="utf-8"))
    pages = [goal.page for goal in load_goals(GOALS).values() if goal.world == "environments.miniwob:MiniWoB"]
    assert len(_registered()) == 128
    assert sorted([*pages, *excluded]) == sorted(_registered())
    assert all(len(reason.split()) > 3 for reason in excluded.values())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("tier: 1", "tier: 5"), "goal a: tier=5: .*less than or equal to 4"),
        (GOOD.replace("tier: 1", "tier: 0"), "goal a: tier=0: .*greater than or equal to 1"),
        (GOOD.replace("tier: 1", "tier: '1'"), "goal a: tier='1': .*valid integer"),
        (GOOD.replace("max_steps: 3", "max_steps: 0"), "goal a: max_steps=0"),
        (GOOD.replace("tier: 1", "teir: 1, tier: 1"), "goal a: teir=1: Extra inputs"),
        (GOOD.replace("page: click-button, ", ""), "goal a: page=.*Field required"),
        (GOOD.replace("id: a, ", ""), "goal without an id: id=.*Field required"),
        (GOOD.replace("id: a", "id: A b"), "goal A b: id='A b'"),
        (GOOD.replace(":MiniWoB", ""), "goal a: world='environments.miniwob'"),
        ("just words", "goal without an id: goal='just words'"),
    ],
)
def test_a_wrong_entry_is_named_in_one_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(GoalError, match=message) as caught:
        load_goals(_file(tmp_path, line))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_an_id_names_one_goal(tmp_path: Path) -> None:
    _file(tmp_path, GOOD, name="one.yaml")
    _file(tmp_path, GOOD, name="two.yaml")
    with pytest.raises(GoalError, match=r"two\.yaml: goal 'a' comes twice"):
        load_goals(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [("a: 1", "with app and goals, or android, got dict"), ("", "got NoneType"), ("- {a", "not YAML: ")],
)
def test_what_is_no_list_of_goals_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(GoalError, match=message):
        load_goals(path)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "goals.yaml").write_bytes(b"a: \xff")
    with pytest.raises(GoalError, match=r"not YAML: .*decode byte 0xff"):
        load_goals(tmp_path / "goals.yaml")


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(GoalError, match="no goal file"):
        load_goals(tmp_path)
    with pytest.raises(GoalError, match=r"none\.yaml: the goal file cannot be read: No such file"):
        load_goals(tmp_path / "none.yaml")


def test_a_world_opens_by_its_import_path() -> None:
    world = open_world("environments.miniwob:MiniWoB")
    assert isinstance(world, MiniWoB)
    world.close()


@pytest.mark.parametrize("path", ["nowhere:World", "environments.miniwob:Nothing", "environments.miniwob", ""])
def test_a_world_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(WorldError, match=r"give it as package\.module:Class"):
        open_world(path)
