"""The phone as a world: what every world must keep, and what a phone's own state says of each kind of action."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from desk import FILE, Desk
from PIL import Image
from todo_phone import HEIGHT, WIDTH
from ways import DOWN, GOALS, find, on, plan

from environments.android import LOOKS, Android
from environments.android.adb import Phone
from environments.registry import load_goals
from environments.types import (
    COMPLETE,
    Action,
    Busy,
    Element,
    EpisodeOver,
    Goal,
    Kind,
    Observation,
    WorldError,
)

pytestmark = pytest.mark.android
SEED = 7


@pytest.fixture
def world(desk: Desk) -> Iterator[Android]:
    with closing(Android()) as world:
        yield world


def _play(world: Android, goal: Goal, seed: int = SEED) -> Iterator[tuple[Observation, Action]]:
    """Each screen with the action taken on it; `complete` on the last."""
    start = world.reset(goal, seed)
    seen = start.observation
    for step in plan(goal.id, start):
        action = step(seen)
        yield seen, action
        seen = world.step(action)
    yield seen, COMPLETE


def _digests(world: Android, goal: Goal) -> list[str]:
    return [
        hashlib.sha256(seen.screenshot + repr(seen.elements).encode()).hexdigest() for seen, _ in _play(world, goal)
    ]


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("seed", range(2))
def test_the_shortest_way_reaches_the_goal_and_not_before(world: Android, name: str, seed: int) -> None:
    goal = GOALS[name]
    start = world.reset(goal, seed)
    seen = start.observation
    for step in plan(name, start):
        assert not world.verdict()
        seen = world.step(step(seen))
    assert world.verdict()
    assert world.step(COMPLETE) == seen
    assert world.verdict()


def test_a_check_counts_by_what_it_prints_whatever_its_status(world: Android, tmp_path: Path) -> None:
    """As `grep -c` has it: a count of none is a failure. A program that is not there prints nothing that counts."""
    content = yaml.safe_load(FILE.read_text())
    checks = {"none": ("echo 0; false", "0"), "one": ("echo 0; false", "1"), "typo": ("setings get a", "0")}
    content["android"]["goals"] = [
        {"id": name, "tier": 1, "max_steps": 1, "instruction": "-", "success": {"shell": shell, "prints": prints}}
        for name, (shell, prints) in checks.items()
    ]
    file = tmp_path / "checks.yaml"
    file.write_text(yaml.safe_dump(content))
    goals = load_goals(file)
    for name, reached in (("none", True), ("one", False)):
        world.reset(goals[name], SEED)
        assert world.verdict() == reached
    world.reset(goals["typo"], SEED)
    with pytest.raises(WorldError, match=r"`adb .* shell setings .* failed .*: .*setings: not found"):
        world.verdict()


@pytest.mark.parametrize("name", GOALS)
def test_the_same_actions_give_the_same_bytes_on_any_phone(desk: Desk, name: str) -> None:
    with closing(Android()) as first, closing(Android()) as second:
        digests = _digests(first, GOALS[name])
        assert digests == _digests(first, GOALS[name])
        assert digests == _digests(second, GOALS[name])
        used = [[line for line in shell.phone.log if line.startswith("am start")] for shell in desk.shells.values()]
        assert [len(lines) for lines in used] == [2, 1]


@pytest.mark.parametrize("name", GOALS)
def test_screens_and_elements_are_well_formed(world: Android, name: str) -> None:
    for seen, action in _play(world, GOALS[name]):
        assert Image.open(io.BytesIO(seen.screenshot)).size == seen.size == (WIDTH, HEIGHT)
        assert seen.elements
        for element in seen.elements:
            assert seen.shows(element.point)
            assert " " not in element.kind
            assert set(element.states) <= {"focus", "on", "selected", "scrollable", "disabled"}
            assert Action.parse(str(Action.click(element))) == Action.click(element)
        assert Action.parse(str(action)) == action


def test_two_seeds_differ(world: Android) -> None:
    goal = GOALS["todo-add"]
    starts = [world.reset(goal, seed) for seed in range(6)]
    assert len({start.instruction for start in starts}) > 1
    assert len({start.observation.elements for start in starts}) > 1


def test_complete_ends_the_episode_and_changes_nothing(world: Android) -> None:
    start = world.reset(GOALS["todo-tick"], SEED)
    assert not world.ended
    assert world.step(COMPLETE) == start.observation
    assert world.ended
    assert not world.verdict()
    with pytest.raises(EpisodeOver, match="call reset first"):
        world.step(DOWN)


def test_nothing_is_known_before_a_reset(world: Android) -> None:
    assert world.ended
    with pytest.raises(EpisodeOver, match="call reset first"):
        world.step(COMPLETE)
    with pytest.raises(EpisodeOver, match="there is no verdict"):
        world.verdict()


def test_a_world_may_be_closed_twice_and_used_again(world: Android) -> None:
    goal = GOALS["todo-tick"]
    world.close()
    first = world.reset(goal, SEED)
    world.close()
    world.close()
    assert world.ended
    assert world.reset(goal, SEED) == first


# Each kind of action, by what the phone's own state says.


@pytest.fixture
def started(world: Android) -> tuple[Android, Observation]:
    return world, world.reset(GOALS["todo-tick"], SEED).observation


def test_click_taps(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    seen = world.step(Action.click(find(seen, "Eggs")))
    assert desk.phone.items["Eggs"]
    assert find(seen, "Eggs").states == ("on",)


def test_a_point_beside_the_screen_touches_nothing(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    for kind, text in ((Kind.CLICK, ""), (Kind.LONG_PRESS, ""), (Kind.SWIPE, "up")):
        assert world.step(Action(kind, (WIDTH, 110), ("checkbox", "Bread"), text)) == seen
    assert not [line for line in desk.phone.log if line.startswith("input")]


def test_long_press_holds_and_the_late_dialog_is_seen(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    seen = world.step(on(Kind.LONG_PRESS, find(seen, "Milk")))
    assert desk.phone.asked == "Milk"
    assert [element.line for element in seen.elements] == [
        'text "Delete Milk?" 120,180',
        'button "Cancel" 75,227',
        'button "Delete" 165,227',
    ]


def test_swipe_moves_the_finger_the_way_it_says(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    for way in ("right", "left"):
        world.step(on(Kind.SWIPE, find(seen, "Soap"), way))
        assert desk.phone.archived == (["Soap"] if way == "left" else [])
    seen = world.step(on(Kind.SWIPE, find(seen, "Tea"), "up"))  # the list follows the finger, to its end
    assert desk.phone.down == 60
    world.step(on(Kind.SWIPE, find(seen, "Tea"), "down"))
    assert desk.phone.down == 0


def test_a_swipe_stays_on_the_screen(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, _ = started
    world.step(Action(Kind.SWIPE, (5, 390), ("text", ""), "left"))
    world.step(Action(Kind.SWIPE, (5, 390), ("text", ""), "down"))
    assert [line for line in desk.phone.log if line.startswith("input")] == [
        "input swipe 5 390 0 390 300",
        "input swipe 5 390 5 399 300",
    ]


def test_scroll_shows_what_lies_that_way(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    assert "Jam" not in {element.text for element in seen.elements}
    seen = world.step(DOWN)
    assert "Jam" in {element.text for element in seen.elements}
    world.step(Action(Kind.SCROLL, text="up"))
    assert desk.phone.down == 0
    world.step(Action(Kind.SCROLL, text="right"))
    assert desk.phone.across == 144
    world.step(Action(Kind.SCROLL, text="left"))
    assert desk.phone.across == 0
    assert desk.phone.archived == []


def test_type_needs_the_focus_and_enter_sends(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    world.step(Action(Kind.TYPE, text="lost"))
    field = next(item for item in seen.elements if item.kind == "textbox")
    assert field.text == ""
    world.step(Action.click(field))
    seen = world.step(Action(Kind.TYPE, text="two words"))
    assert Element("textbox", "two words", field.box, ("focus",)) in seen.elements
    seen = world.step(Action(Kind.PRESS, text="Enter"))
    assert "two words" in desk.phone.items


def test_buttons_of_the_phone(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    world.step(on(Kind.LONG_PRESS, find(seen, "Milk")))
    assert world.step(Action(Kind.PRESS, text="Back")) == seen
    assert world.step(Action(Kind.PRESS, text="NoSuchKey")) == seen
    home = world.step(Action(Kind.PRESS, text="Home"))
    assert [element.line for element in home.elements] == ['text "Home" 120,15', 'image "Todo" 50,90']
    assert world.step(Action.click(find(home, "Todo"))) == seen
    assert world.step(Action(Kind.PRESS, text="Back")) == home


def test_wait_lets_a_second_pass(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    before = desk.phone.now_ms
    assert world.step(Action(Kind.WAIT)) == seen
    assert desk.phone.now_ms - before >= 1000


def test_a_screen_that_never_rests_is_taken_after_some_looks(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, _ = started
    desk.phone.blinks = True
    before = len(desk.phone.log)
    world.step(DOWN)
    assert sum("uiautomator" in line for line in desk.phone.log[before:]) == LOOKS


def test_a_tree_that_fails_is_asked_for_again(desk: Desk, started: tuple[Android, Observation]) -> None:
    world, seen = started
    desk.shell.dump_failures = 2
    assert world.step(Action(Kind.PRESS, text="NoSuchKey")) == seen
    desk.shell.dump_failures = 3  # the tree of the screen before is not taken for it
    with pytest.raises(WorldError, match="no tree of the screen in 3 tries: ERROR: could not get idle state"):
        world.step(DOWN)
    assert world.ended


# What breaks, and what it costs.


def test_a_killed_server_breaks_the_episode_and_not_the_world(desk: Desk, world: Android) -> None:
    goal = GOALS["todo-tick"]
    first = world.reset(goal, SEED)
    desk.server.kill()
    with pytest.raises(WorldError, match=r"failed \(1\): .*start"):
        world.step(DOWN)
    assert world.ended
    assert not world.verdict()
    with pytest.raises(EpisodeOver):
        world.step(DOWN)
    desk.restart()
    assert world.reset(goal, SEED) == first


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("unauthorized", "unauthorized.*allow this computer on the phone's screen"),
        ("offline", "offline.*adb reconnect offline"),
        (None, "not found.*adb devices -l"),
    ],
)
def test_a_lost_phone_is_named_with_the_next_command(
    desk: Desk, world: Android, monkeypatch: pytest.MonkeyPatch, state: str | None, message: str
) -> None:
    monkeypatch.setenv("ANDROID_SERIAL", desk.serials[0])
    goal = GOALS["todo-tick"]
    world.reset(goal, SEED)
    if state is None:
        del desk.server.states[desk.serials[0]]
    else:
        desk.server.states[desk.serials[0]] = state
    with pytest.raises(WorldError, match=message):
        world.step(DOWN)
    with pytest.raises(WorldError, match=f"no phone can be used \\({desk.serials[0]} is {state or 'not connected'}\\)"):
        world.reset(goal, SEED)
    desk.server.states[desk.serials[0]] = "device"
    world.reset(goal, SEED)


def test_a_phone_that_gives_no_answer_is_given_up(desk: Desk, link: Phone) -> None:
    desk.server.goes_on.clear()
    with pytest.raises(WorldError, match=r"`adb -s .* shell true` gave no answer within 5 s; `adb devices -l`"):
        link.shell("true")


def test_a_command_the_phone_refuses_is_quoted(link: Phone) -> None:
    with pytest.raises(WorldError, match=r"pm clear no.such.app` failed \(1\): Failed"):
        link.command("shell pm clear no.such.app")
    with pytest.raises(WorldError, match=r"no.such/\.App: Error: Activity class .* does not exist"):
        link.start("no.such/.App")
    with pytest.raises(WorldError, match=r"`adb -s \S+ emu avd snapshot load clean` failed"):
        link.command("emu avd snapshot load clean")  # it is no emulator


def test_as_many_worlds_as_phones(desk: Desk) -> None:
    goal = GOALS["todo-tick"]
    worlds = [Android() for _ in range(3)]
    for world in worlds[:2]:
        world.reset(goal, SEED)
    with pytest.raises(Busy, match="in use by this process's other worlds"):
        worlds[2].reset(goal, SEED)
    worlds[0].step(Action.click(find(worlds[0].step(Action(Kind.WAIT)), "Eggs")))
    ticked = {serial: shell.phone.items["Eggs"] for serial, shell in desk.shells.items()}
    assert sorted(ticked.values()) == [False, True]
    worlds[0].close()
    worlds[2].reset(goal, SEED)
    for world in worlds:
        world.close()


def test_a_goal_that_is_not_there_is_named(world: Android) -> None:
    with pytest.raises(WorldError, match=r"goal x: page .*'no-such-goal' is not one of todo-add, todo-tick"):
        world.reset(Goal("x", "", f"{FILE}#no-such-goal", 1, 1), SEED)
