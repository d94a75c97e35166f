"""The example application end to end: real Trac, its goals reached on the screen and judged by its own database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from overlap import WordOverlap

from benchmarks.wander import RandomAgent
from environments.registry import load_goals, open_world
from environments.replay import differences
from environments.types import Action, End, Goal, Instance, Kind, Observation, World
from environments.web.app import WebApp
from tasks.explore import explore
from tasks.params import load_params

pytestmark = pytest.mark.apps
EXAMPLES = Path("examples/trac")
GOALS = load_goals(EXAMPLES)
SEEDS = range(3)
TICKETS = "SELECT count(*) FROM ticket"


class Hand:
    """Finds what it is told on the screen, scrolling down to it, and acts."""

    def __init__(self, world: World, goal: Goal, seed: int) -> None:
        self.world, self.goal, self.taken = world, goal, 0
        start = world.reset(goal, seed)
        self.instruction, self.seen = start.instruction, start.observation

    def act(self, action: Action) -> None:
        assert self.taken < self.goal.max_steps, f"more than {self.goal.max_steps} steps"
        self.taken += 1
        self.seen = self.world.step(action)

    def click(self, kind: str, text: str, after: str = "") -> None:
        """Click an element of that kind and text, the first that stands after a text on the screen."""
        for _ in range(self.goal.max_steps):
            elements = self.seen.elements
            places = [place for place, element in enumerate(elements) if element.text == after] if after else [0]
            found = [each for each in elements[places[0] if places else len(elements) :] if each.kind == kind]
            if match := next((each for each in found if each.text == text), None):
                self.act(Action.click(match))
                return
            self.act(Action(Kind.SCROLL, text="down"))
        raise AssertionError(f"no {kind} {text!r} on the screen: {[element.line for element in self.seen.elements]}")

    def type(self, text: str) -> None:
        self.act(Action(Kind.TYPE, text=text))

    @property
    def quoted(self) -> str:
        return re.findall(r'"([^"]*)"', self.instruction)[0]

    @property
    def last_word(self) -> str:
        return self.instruction.rstrip(".").rpartition(" ")[2]


def _open_ticket(hand: Hand) -> None:
    hand.click("link", hand.quoted)


def _new_ticket(hand: Hand) -> None:
    hand.click("textbox", "", after="Summary:")
    hand.type(hand.quoted)
    hand.click("button", "Create ticket")


def _comment(hand: Hand) -> None:
    hand.click("textarea", "")
    hand.type(hand.quoted)
    hand.click("button", "Submit changes")


def _close_ticket(hand: Hand) -> None:
    hand.click("link", "Modify")
    hand.click("radio", "resolve")
    if hand.last_word != "fixed":
        hand.click("select", "fixed")
        hand.click("option", hand.last_word)
    hand.click("button", "Submit changes")


def _set_priority(hand: Hand) -> None:
    hand.click("link", hand.quoted)
    hand.click("link", "Modify")
    chosen = next(each.text for each in hand.seen.elements if each.text in ("trivial", "minor"))
    hand.click("select", chosen, after="Priority:")
    hand.click("option", hand.last_word)
    hand.click("button", "Submit changes")


def _search(hand: Hand) -> None:
    hand.click("textbox", "")
    hand.type(hand.quoted + "\n")


WAYS = {
    "trac-open-ticket": _open_ticket,
    "trac-new-ticket": _new_ticket,
    "trac-comment": _comment,
    "trac-close-ticket": _close_ticket,
    "trac-set-priority": _set_priority,
    "trac-phone-new-ticket": _new_ticket,
    "trac-phone-search": _search,
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = open_world("environments.web.app:WebApp")
    yield world
    world.close()


@pytest.mark.parametrize("name", GOALS)
def test_each_goal_is_reached_by_hand_and_by_doing_nothing_not(world: World, name: str) -> None:
    for seed in SEEDS:
        hand = Hand(world, GOALS[name], seed)
        assert not world.verdict()
        WAYS[name](hand)
        assert world.verdict(), f"seed {seed}: {hand.instruction}"


@pytest.mark.parametrize("name", ["trac-comment", "trac-phone-new-ticket"])
def test_random_episodes_replay_to_the_byte(name: str) -> None:
    assert differences(GOALS[name]) == []


def test_an_episode_that_made_a_ticket_leaves_nothing_for_the_next(world: World) -> None:
    goal = GOALS["trac-new-ticket"]
    first = world.reset(goal, 0)
    before = _tickets(world)
    _new_ticket(Hand(world, goal, 0))
    assert _tickets(world) == before + 1
    assert world.reset(goal, 0) == first
    assert _tickets(world) == before
    report = Hand(world, GOALS["trac-open-ticket"], 0)
    assert "(8 matches)" in [element.text for element in report.seen.elements]


def test_it_is_explored_like_any_world() -> None:
    instance = Instance(GOALS["trac-open-ticket"], 10_007)
    found = explore(instance, RandomAgent(), WordOverlap(), load_params(), 1, ("agent", "reward"))
    assert len(found) >= load_params().explore.paths
    for trajectory in found:
        assert trajectory.episode.end is not End.CRASHED
        assert all(_is_shown(step.action, step.observation) for step in trajectory.episode.steps)


def _is_shown(action: Action, seen: Observation) -> bool:
    return action.point is None or seen.shows(action.point)


def _tickets(world: World) -> int:
    """How many tickets Trac's own database has."""
    assert isinstance(world, WebApp)
    assert world._running is not None
    with sqlite3.connect(world._running.server.data / "db/trac.db") as database:
        return int(database.execute(TICKETS).fetchone()[0])
