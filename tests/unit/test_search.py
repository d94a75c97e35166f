"""The search in a world small enough to know every answer: a corridor of doors."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from PIL import Image

from environments.types import (
    Action,
    Candidate,
    Element,
    End,
    EpisodeOver,
    Goal,
    Instance,
    Kind,
    Observation,
    Start,
)
from models.prompts import Context
from tasks.params import Explore
from tasks.search import Walker, roll_on, search

GOAL = Goal("doors", "test_search:Doors", "doors", 2, 3)
INSTANCE = Instance(GOAL, 5)
DOORS = tuple(Element("door", name, (place * 20, 0, 10, 10)) for place, name in enumerate("ABC"))


def _png(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.new("L", (60, 20), shade).save(stream, "PNG")
    return stream.getvalue()


class Doors:
    """Three rooms of three doors; the screen's shade tells the way taken. Door C of the last room ends it."""

    def __init__(self) -> None:
        self.way, self.over, self.resets = "", False, 0

    def reset(self, goal: Goal, seed: int) -> Start:
        self.way, self.over = "", False
        self.resets += 1
        return Start(f"Go {seed}", self._look())

    def step(self, action: Action) -> Observation:
        if self.over:
            raise EpisodeOver("over")
        if action.kind is Kind.COMPLETE:
            self.over = True
        elif action.target:
            self.way += action.target[1]
            self.over = self.way[1:] == "C"
        return self._look()

    @property
    def ended(self) -> bool:
        return self.over

    def _look(self) -> Observation:
        return Observation(_png(sum(ord(door) << place for place, door in enumerate(self.way)) % 256), DOORS)


class EveryDoor:
    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = ""
    ) -> list[list[Candidate]]:
        return [[Candidate(Action.click(door), 1) for door in DOORS] for _ in contexts]


class Liking:
    """Rewards a way by a table; ways are spelt by the doors taken. `complete` after W is looked up as "W!"."""

    def __init__(self, table: dict[str, float]) -> None:
        self.table = table

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        return [
            [self.table.get(_way(context) + (action.target[1] if action.target else "!"), 0.1) for action in candidates]
            for context, candidates in zip(contexts, actions, strict=True)
        ]


def _way(context: Context) -> str:
    return "".join(action.target[1] for _, action in context.history if action.target)


def _explore(paths: int, rollouts: int = 0) -> Explore:
    return Explore(candidates=3, paths=paths, temperature=1.0, rollouts=rollouts, continue_paths=1)


def _ways(episodes: Sequence[object]) -> list[tuple[str, End]]:
    return [("".join(step.action.target[1] for step in e.steps), e.end) for e in episodes]  # type: ignore[attr-defined]


def test_the_beam_keeps_the_paths_with_the_highest_cumulative_reward() -> None:
    """Greedy would take A (.6) and end at .6 + .1 + .1; the beam of two sees that B leads to .5 + .9 + .9."""
    judge = Liking({"A": 0.6, "B": 0.5, "BA": 0.9, "BAB": 0.9, "BAB!": 0.8})
    greedy = search(Doors(), EveryDoor(), judge, INSTANCE, _explore(1), "s")
    assert _ways(greedy) == [("AAA", End.STEP_LIMIT)]
    beam = search(Doors(), EveryDoor(), judge, INSTANCE, _explore(2), "s")
    assert _ways(beam)[0] == ("BAB", End.STEP_LIMIT)
    assert [episode.outcome for episode in beam] == [0.8, 0.1]


def test_everything_seen_is_recorded_with_its_score() -> None:
    (episode,) = search(Doors(), EveryDoor(), Liking({"A": 0.6, "C": 0.2}), INSTANCE, _explore(1), "s")
    first = episode.steps[0]
    assert [(c.action.target[1], c.score) for c in first.candidates if c.action.target] == [
        ("A", 0.6),
        ("B", 0.1),
        ("C", 0.2),
    ]
    assert first.score == 0.6
    assert episode.instruction == "Go 5"


def test_a_path_that_ends_leaves_its_place_to_no_other() -> None:
    judge = Liking({"A": 0.9, "B": 0.8, "AC": 0.9, "BA": 0.8})
    episodes = search(Doors(), EveryDoor(), judge, INSTANCE, _explore(2), "s")
    assert _ways(episodes) == [("AC", End.WORLD), ("BAA", End.STEP_LIMIT)]


def test_reentry_shows_the_screen_the_path_ended_on() -> None:
    world = Doors()
    walker = Walker(world, INSTANCE)
    steps = search(Doors(), EveryDoor(), Liking({"B": 0.9, "BA": 0.9}), INSTANCE, _explore(1), "s")[0].steps
    there = walker.walk(steps[:1], steps[1].action)
    assert there == steps[2].observation
    resets = world.resets
    walker.walk(steps[:2], steps[2].action)
    assert world.resets == resets, "a walk that goes on from where the world stands needs no reset"
    assert walker.walk(steps[:1], steps[1].action) == there
    assert world.resets == resets + 1


def test_continuations_share_the_steps_they_say_and_start_from_every_step_but_the_last() -> None:
    (failed,) = search(Doors(), EveryDoor(), Liking({}), INSTANCE, _explore(1), "s")
    found = roll_on(Doors(), EveryDoor(), INSTANCE, [(0, failed)], _explore(1, rollouts=2), "s")
    assert [(item.parent, item.shared) for item in found] == [(0, 1), (0, 1), (0, 2), (0, 2)]
    for item in found:
        assert item.episode.steps[: item.shared] == failed.steps[: item.shared]
        assert len(item.episode.steps) > item.shared
        assert item.episode.outcome is None


@pytest.mark.parametrize("paths", [1, 2, 3])
def test_never_more_episodes_than_paths(paths: int) -> None:
    assert len(search(Doors(), EveryDoor(), Liking({}), INSTANCE, _explore(paths), "s")) == paths


class Mute:
    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = ""
    ) -> list[list[Candidate]]:
        return [[] for _ in contexts]


def test_an_agent_with_nothing_to_say_ends_invalid() -> None:
    (episode,) = search(Doors(), Mute(), Liking({}), INSTANCE, _explore(2), "s")
    assert (episode.end, episode.steps, episode.outcome) == (End.INVALID, (), 0.1)
