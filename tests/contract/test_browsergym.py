"""BrowserGym as a world, against what a world must keep and against our own world of the same pages."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from environments import oracles
from environments.browsergym import BrowserGym
from environments.miniwob import MiniWoB
from environments.types import COMPLETE, Action, Element, EpisodeOver, Goal, Kind, Observation, Start, World, WorldError

pytestmark = pytest.mark.browsergym

PAGES = ("click-button", "click-option", "enter-text")
SEED = 7
FIRST = Goal("click-button", "", "browsergym/miniwob.click-button", 1, 3)


def _goal(world: type[World], page: str) -> Goal:
    prefix = "browsergym/miniwob." if world is BrowserGym else ""
    return Goal(page, "", prefix + page, 1, 5)


def _page_seed(seed: int) -> int:
    """The seed that BrowserGym gives to a MiniWoB++ page when it is given this one."""
    return int(np.random.RandomState(seed).randint(0, 1_000_000))


@pytest.fixture(scope="module")
def world() -> Iterator[BrowserGym]:
    world = BrowserGym()
    yield world
    world.close()


@pytest.fixture(scope="module")
def ours() -> Iterator[MiniWoB]:
    world = MiniWoB()
    yield world
    world.close()


def _play(world: World, page: str, seed: int) -> tuple[Start, list[Action], list[Observation]]:
    """An oracle's episode: how it began, what was done, what was seen after it."""
    goal = _goal(type(world), page)
    start = world.reset(goal, seed)
    taken, seen = list[Action](), [start.observation]
    while not world.ended and len(taken) < goal.max_steps:
        taken.append(oracles.next_action(page, start.instruction, seen[-1], taken))
        seen.append(world.step(taken[-1]))
    return start, taken, seen


@pytest.mark.parametrize("page", PAGES)
def test_an_oracle_solves_the_page_through_both_worlds(world: BrowserGym, ours: MiniWoB, page: str) -> None:
    for seed in (SEED, SEED + 1):
        start, taken, _ = _play(world, page, seed)
        assert world.ended
        assert world.verdict()
        same, like, _ = _play(ours, page, _page_seed(seed))
        assert ours.verdict()
        assert start.instruction == same.instruction
        assert [(each.kind, each.target, each.text) for each in taken] == [
            (each.kind, each.target, each.text) for each in like
        ]


@pytest.mark.parametrize("page", PAGES)
def test_the_same_actions_show_the_same_elements(world: BrowserGym, page: str) -> None:
    _, _, first = _play(world, page, SEED)
    _, _, again = _play(world, page, SEED)
    assert [seen.elements for seen in first] == [seen.elements for seen in again]


@pytest.mark.parametrize("page", PAGES)
def test_screens_and_elements_are_well_formed(world: BrowserGym, page: str) -> None:
    for seen in _play(world, page, SEED)[2]:
        assert Image.open(io.BytesIO(seen.screenshot)).format == "PNG"
        for element in seen.elements:
            assert seen.shows(element.point)
            assert " " not in element.kind
            assert set(element.states) <= {"focus", "on"}
            assert Action.parse(str(Action.click(element))) == Action.click(element)


def test_two_seeds_differ(world: BrowserGym) -> None:
    assert world.reset(FIRST, 1).observation.elements != world.reset(FIRST, 2).observation.elements


def test_typed_text_arrives_as_it_is(world: BrowserGym) -> None:
    text = r"""a "b" 'c' \n \\ # é"""
    start = world.reset(_goal(BrowserGym, "enter-text"), SEED)
    field = _only(start.observation, "textbox")
    world.step(Action.click(field))
    assert _only(world.step(Action(Kind.TYPE, text=text)), "textbox").text == text
    assert _only(world.step(Action(Kind.TYPE, text="")), "textbox").text == text
    assert _only(world.step(Action(Kind.PRESS, text="Backspace")), "textbox").text == text[:-1].strip()
    assert _only(world.step(Action(Kind.PRESS, text="NoSuchKey")), "textbox").text == text[:-1].strip()


def test_a_scroll_moves_what_lies_under_the_mouse(world: BrowserGym) -> None:
    first = world.reset(_goal(BrowserGym, "social-media"), SEED).observation
    down = world.step(Action(Kind.SCROLL, text="down"))
    assert down.elements != first.elements
    assert world.step(Action(Kind.SCROLL, text="up")).elements == first.elements


def test_part_of_a_reward_is_no_success(world: BrowserGym) -> None:
    """BrowserGym itself pays 1 for this: one box of three ticked."""
    start = world.reset(_goal(BrowserGym, "click-checkboxes"), 1)
    wanted = oracles.next_action("click-checkboxes", start.instruction, start.observation, [])
    world.step(wanted)
    world.step(Action.click(next(e for e in start.observation.elements if e.kind == "button")))
    assert world.ended
    assert not world.verdict()


def test_complete_ends_the_episode_and_changes_nothing(world: BrowserGym) -> None:
    start = world.reset(FIRST, SEED)
    assert not world.ended
    assert world.step(COMPLETE) == start.observation
    assert world.ended
    assert not world.verdict()
    with pytest.raises(EpisodeOver, match="call reset first"):
        world.step(Action(Kind.WAIT))


def test_nothing_is_known_before_a_reset() -> None:
    fresh = BrowserGym()
    assert fresh.ended
    with pytest.raises(EpisodeOver, match="call reset first"):
        fresh.step(COMPLETE)
    with pytest.raises(EpisodeOver, match="there is no verdict"):
        fresh.verdict()
    fresh.close()


def test_an_environment_that_is_not_there_is_named(world: BrowserGym) -> None:
    with pytest.raises(WorldError, match=r"goal x: page 'browsergym/miniwob.no-such-page': .*doesn't exist"):
        world.reset(Goal("x", "", "browsergym/miniwob.no-such-page", 1, 1), SEED)


def test_a_python_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATCHET_BROWSERGYM_PYTHON", "/no/such/python")
    with pytest.raises(WorldError, match="/no/such/python: no Python with BrowserGym; run `make browsergym`"):
        BrowserGym().reset(FIRST, SEED)


def test_a_killed_process_breaks_the_episode_and_not_the_world(world: BrowserGym) -> None:
    elements = world.reset(FIRST, SEED).observation.elements
    family = _below(os.getpid(), "browsergym/worker.py")
    os.kill(family[0].pid, signal.SIGKILL)
    with pytest.raises(WorldError, match=r"BrowserGym \(process \d+\) died"):
        world.step(Action(Kind.WAIT))
    assert world.ended
    assert not world.verdict()
    assert psutil.wait_procs(family, timeout=30)[1] == []
    assert world.reset(FIRST, SEED).observation.elements == elements


def test_a_killed_browser_breaks_the_episode_and_not_the_world(world: BrowserGym) -> None:
    elements = world.reset(FIRST, SEED).observation.elements
    for process in _below(os.getpid(), "browsergym/worker.py"):
        with suppress(psutil.NoSuchProcess):  # it ended with its parent
            if "--headless" in process.cmdline():
                process.kill()
    with pytest.raises(WorldError, match="BrowserGym failed"):
        world.step(Action(Kind.WAIT))
    assert world.reset(FIRST, SEED).observation.elements == elements


HOLD = """
import sys
from environments.browsergym import BrowserGym
from environments.types import Goal
world = BrowserGym()
world.reset(Goal("click-button", "", "browsergym/miniwob.click-button", 1, 3), 7)
print("ready", flush=True)
sys.stdin.read()
"""


def test_everything_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"TMPDIR": str(tmp_path)},  # it cannot remove its files
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        family = _below(parent.pid, "browsergym/worker.py")
        parent.kill()
    assert len(family) > 3
    assert psutil.wait_procs(family, timeout=30)[1] == []


def _only(seen: Observation, kind: str) -> Element:
    (element,) = (element for element in seen.elements if element.kind == kind)
    return element


def _below(pid: int, script: str) -> list[psutil.Process]:
    """The process that runs a script, of those that ``pid`` started, and all below it."""
    for child in psutil.Process(pid).children():
        if any(word.endswith(script) for word in child.cmdline()):
            return [child, *child.children(recursive=True)]
    raise AssertionError(f"process {pid} runs no {script}")
