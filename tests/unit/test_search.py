"""The search in a world small enough to know every answer: a corridor of doors."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

import pytest
from PIL import Image
from small_round import params

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
    Step,
    World,
    WorldError,
)
from models.prompts import Context
from tasks.explore import explore
from tasks.params import Explore
from tasks.records import Origin
from tasks.search import Proposer, Scorer, Search, find, roll_on
from tasks.search.walker import Diverged, Walker

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

    def close(self) -> None:
        self.over = True

    def _look(self) -> Observation:
        return Observation(_png(sum(ord(door) << place for place, door in enumerate(self.way)) % 256), DOORS)


class StuckDoors(Doors):
    """Door A leads nowhere, and nothing shows that it was tried."""

    def step(self, action: Action) -> Observation:
        return self._look() if action.target == ("door", "A") else super().step(action)


class EveryDoor:
    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
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


def _search(
    paths: int,
    agent: Proposer,
    judge: Scorer,
    world: World | None = None,
    method: Literal["beam", "best_of_n"] = "beam",
    rollouts: int = 0,
    budget: int | None = None,
    prior: float = 0.0,
    seconds: float | None = None,
) -> Search:
    settings = Explore(
        method=method,
        candidates=3,
        paths=paths,
        prior=prior,
        temperature=1.0,
        balance=None,
        rollouts=rollouts,
        continue_paths=1,
        budget_steps=budget,
        budget_seconds=seconds,
    )
    return Search(world or Doors(), agent, judge, INSTANCE, settings, "s")


def _ways(episodes: Sequence[object]) -> list[tuple[str, End]]:
    return [("".join(step.action.target[1] for step in e.steps), e.end) for e in episodes]  # type: ignore[attr-defined]


def test_the_beam_keeps_the_paths_with_the_highest_cumulative_reward() -> None:
    """Greedy would take A (.6) and end at .6 + .1 + .1; the beam of two sees that B leads to .5 + .9 + .9."""
    judge = Liking({"A": 0.6, "B": 0.5, "BA": 0.9, "BAB": 0.9, "BAB!": 0.8})
    assert _ways(find(_search(1, EveryDoor(), judge))) == [("AAA", End.STEP_LIMIT)]
    beam = find(_search(2, EveryDoor(), judge))
    assert _ways(beam) == [("BAB", End.STEP_LIMIT), ("BAA", End.STEP_LIMIT), ("AA", End.PRUNED)]
    assert [episode.outcome for episode in beam] == [0.8, 0.1, None]


class Leaning(EveryDoor):
    """Samples C twice as often as A and B together."""

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[Candidate(Action.click(door), 4 if door is DOORS[2] else 1) for door in DOORS] for _ in contexts]


def test_the_agents_share_tips_a_beam_between_rewards_that_are_near() -> None:
    """A has .6 and a sixth of the samples, C .1 and two thirds: C is worth more from a prior of 1 on."""
    judge = Liking({"A": 0.6})
    assert _ways(find(_search(1, Leaning(), judge, prior=0.9)))[0][0][0] == "A"
    (episode,) = find(_search(1, Leaning(), judge, prior=1.1))
    assert _ways([episode])[0][0][0] == "C"
    assert episode.steps[0].score == 0.1, "the record has the reward as it was given"


class Surest(EveryDoor):
    """Would take door C, but never happens to draw it."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float, bool]] = []

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        self.asked.append((samples, temperature, likeliest))
        drawn = Candidate(Action.click(DOORS[0]), samples - likeliest)
        return [[drawn, Candidate(Action.click(DOORS[2]), 1)] if likeliest else [drawn] for _ in contexts]


def test_a_beam_considers_what_the_agent_would_do_beside_what_it_samples() -> None:
    agent = Surest()
    (episode, *_) = find(_search(1, agent, Liking({"C": 0.9})))
    first = episode.steps[0]
    assert [(one.action, one.count) for one in first.candidates] == [(Action.click(DOORS[0]), 2), (first.action, 1)]
    assert first.action == Action.click(DOORS[2])
    assert set(agent.asked) == {(3, 1.0, True)}


def test_everything_seen_is_recorded_with_its_score() -> None:
    (episode,) = find(_search(1, EveryDoor(), Liking({"A": 0.6, "C": 0.2})))
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
    assert _ways(find(_search(2, EveryDoor(), judge))) == [("AC", End.WORLD), ("BAA", End.STEP_LIMIT)]


@pytest.mark.parametrize("paths", [1, 2, 3])
def test_never_more_ends_than_paths(paths: int) -> None:
    episodes = find(_search(paths, EveryDoor(), Liking({})))
    assert len([episode for episode in episodes if episode.end is not End.PRUNED]) == paths


class Drawing:
    """Answers as drawn: of n samples, all but one go on through A, and one through B; at the end one is no action."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        self.asked += [samples] * len(contexts)
        a, b = (Action.click(door) for door in DOORS[:2])
        if len(contexts[0].history) == 2:
            return [[Candidate(a, samples - 1)] if samples > 1 else [] for _ in contexts]
        return [[Candidate(a, samples - 1), Candidate(b, 1)] if samples > 1 else [Candidate(b)] for _ in contexts]


def test_best_of_n_draws_n_paths_and_walks_those_that_agree_once() -> None:
    agent = Drawing()
    search = _search(4, agent, Liking({"AAA!": 0.7}), method="best_of_n")
    episodes = find(search)
    ends = sorted(_ways(episodes))
    assert ends == [("AA", End.INVALID), ("AAA", End.STEP_LIMIT), ("AB", End.INVALID), ("BB", End.INVALID)]
    assert {way: e.outcome for (way, _), e in zip(_ways(episodes), episodes, strict=True)}["AAA"] == 0.7
    assert all(step.score is None for e in episodes for step in e.steps), "not scored is not zero"
    assert sorted(agent.asked) == [1, 1, 1, 2, 3, 4]
    assert search.walker.taken == 6, "A, B, AA, AB, BB and AAA"


class FirstDoor(EveryDoor):
    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[Candidate(Action.click(DOORS[0]), samples)] for _ in contexts]


def test_a_whole_path_with_a_slip_is_gone_on_from_however_its_end_is_liked() -> None:
    judge = Liking({"A": 0.9, "AA": 0.2, "AAA": 0.9, "AAA!": 0.95})
    asked = params(explore={"method": "best_of_n", "rollouts": 1}, filter={"accept": 0.85, "min_step": 0.5})
    found = explore(INSTANCE, FirstDoor(), judge, asked, 1, ("agent", "reward"))
    assert [one.origin for one in found] == [Origin.SEARCH, Origin.CONTINUATION, Origin.CONTINUATION]
    assert [step.score for step in found[0].episode.steps] == [0.9, 0.2, 0.9]


@pytest.mark.parametrize("method", ["beam", "best_of_n"])
@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_a_budget_of_steps_is_kept_and_the_paths_it_stops_are_recorded(
    method: Literal["beam", "best_of_n"], budget: int
) -> None:
    agent: Proposer = EveryDoor() if method == "beam" else Drawing()
    search = _search(3, agent, Liking({}), method=method, budget=budget)
    episodes = find(search)
    assert search.walker.taken == budget
    assert End.BUDGET in [episode.end for episode in episodes]
    assert sum(len(episode.steps) for episode in episodes) >= budget


class Slow(Doors):
    """Every door takes a second, by its own clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def step(self, action: Action) -> Observation:
        self.now += 1
        return super().step(action)


@pytest.mark.parametrize("method", ["beam", "best_of_n"])
@pytest.mark.parametrize(
    ("seconds", "way"), [(1.5, ("AA", End.BUDGET)), (2.0, ("AA", End.BUDGET)), (2.5, ("AAA", End.STEP_LIMIT))]
)
def test_no_action_is_begun_after_the_budget_of_seconds(
    monkeypatch: pytest.MonkeyPatch, method: Literal["beam", "best_of_n"], seconds: float, way: tuple[str, End]
) -> None:
    world = Slow()
    monkeypatch.setattr("tasks.search.walker.time", world)
    assert _ways(find(_search(1, Pairs(), Liking({}), world, method, seconds=seconds))) == [way]


def test_a_path_that_lost_in_the_step_that_spends_the_budget_was_dropped_for_better_ones() -> None:
    """Of A and B, A's two extensions are worth more, and take the third and fourth step."""
    found = find(_search(2, EveryDoor(), Liking({"A": 0.9, "B": 0.5, "AA": 0.9, "AB": 0.9}), budget=4))
    assert _ways(found) == [("AA", End.BUDGET), ("AB", End.BUDGET), ("B", End.PRUNED)]


def test_reentry_shows_the_screen_the_path_ended_on() -> None:
    world = Doors()
    walker = Walker(world, INSTANCE)
    (found,) = find(_search(1, EveryDoor(), Liking({"B": 0.9, "BA": 0.9})))
    steps = found.steps
    there = walker.walk(steps[:1], steps[1].observation, steps[1].action)
    assert there == steps[2].observation
    resets = world.resets
    walker.walk(steps[:2], there, steps[2].action)
    assert world.resets == resets, "a walk that goes on from where the world stands needs no reset"
    assert walker.walk(steps[:1], steps[1].observation, steps[1].action) == there
    assert (world.resets, walker.taken, walker.replayed) == (resets + 1, 3, 2)


class Restless(Doors):
    """Its rooms look different after each reset: by their elements, or by their pixels alone."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def _look(self) -> Observation:
        seen = super()._look()
        if not self.way or self.resets < 2:
            return seen
        return Observation(_png(255), DOORS) if self.what == "pixels" else Observation(seen.screenshot, DOORS[:2])


@pytest.mark.parametrize("what", ["pixels", "elements"])
def test_a_replay_that_shows_another_screen_is_refused_and_ends_its_path_alone(what: str) -> None:
    judge = Liking({"A": 0.9, "B": 0.8, "AA": 0.9, "BA": 0.8})
    search = _search(2, EveryDoor(), judge, world=Restless(what))
    episodes = find(search)
    assert End.CRASHED in [episode.end for episode in episodes]
    walker = Walker(Restless(what), INSTANCE)
    steps = next(episode.steps for episode in episodes if episode.steps)
    walker.walk((), walker.start.observation, steps[0].action)
    walker.walk((), walker.start.observation, steps[0].action)
    walker = Walker(Restless(what), INSTANCE)
    seen = walker.walk((), walker.start.observation, steps[0].action)
    step = Step(walker.start.observation, steps[0].action)
    walker.walk((step,), seen, steps[0].action)
    with pytest.raises(Diverged, match=f"^doors/5: after 1 actions the {what} differ from the first time$"):
        walker.walk((step,), seen, steps[0].action)


class Fragile(Doors):
    """Breaks under door B: ``times`` times in all."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def step(self, action: Action) -> Observation:
        if self.times and action.target and action.target[1] == "B":
            self.times -= 1
            raise WorldError("the browser is gone")
        return super().step(action)


def test_a_world_that_breaks_once_costs_no_path() -> None:
    judge = Liking({"B": 0.9, "A": 0.8, "BA": 0.9, "BAA": 0.9})
    whole = find(_search(2, EveryDoor(), judge))
    assert find(_search(2, EveryDoor(), judge, world=Fragile(1))) == whole


def test_an_action_that_always_breaks_the_world_ends_its_path_alone() -> None:
    judge = Liking({"B": 0.9, "A": 0.8, "AA": 0.9, "AAA": 0.9})
    episodes = find(_search(2, EveryDoor(), judge, world=Fragile(100)))
    assert _ways(episodes) == [("", End.CRASHED), ("AAA", End.STEP_LIMIT)]


def test_continuations_share_the_steps_they_say_and_start_from_every_step_but_the_last() -> None:
    search = _search(1, EveryDoor(), Liking({}), rollouts=2)
    (failed,) = find(search)
    found = roll_on(_search(1, Pairs(), Liking({}), rollouts=2), [(0, failed)])
    assert [(item.parent, item.shared) for item in found] == [(0, 1), (0, 1), (0, 2), (0, 2)]
    for item in found:
        assert item.episode.steps[: item.shared] == failed.steps[: item.shared]
        assert len(item.episode.steps) > item.shared
        assert item.episode.outcome is None


def test_without_rollouts_nothing_is_continued() -> None:
    (failed,) = find(_search(1, EveryDoor(), Liking({})))
    assert roll_on(_search(1, EveryDoor(), Liking({}), rollouts=0), [(0, failed)]) == []


class Pairs:
    """Every sample goes through door A."""

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[Candidate(Action.click(DOORS[0]), samples)] for _ in contexts]


class Mute:
    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[] for _ in contexts]


def test_an_agent_with_nothing_to_say_ends_invalid() -> None:
    (episode,) = find(_search(2, Mute(), Liking({})))
    assert (episode.end, episode.steps, episode.outcome) == (End.INVALID, (), 0.1)


class Always(EveryDoor):
    """Has the same candidates everywhere."""

    def __init__(self, *actions: Action) -> None:
        self.actions = actions

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        return [[Candidate(action, 1) for action in self.actions] for _ in contexts]


def test_what_changed_nothing_is_not_tried_again_on_the_same_screen() -> None:
    """The best liked door is stuck: tried once in each room, and then what is liked next, if there is anything."""
    judge = Liking({"A": 0.9, "AA": 0.9, "AB": 0.5, "ABA": 0.9})
    found = find(_search(1, EveryDoor(), judge, StuckDoors()))
    assert _ways(found) == [("ABA", End.STEP_LIMIT)]
    again = found[0].steps[1]  # what was not tried again was sampled all the same
    assert [(one.action.target, one.score) for one in again.candidates] == [
        (("door", "A"), 0.9), (("door", "B"), 0.5), (("door", "C"), 0.1)
    ]  # fmt: skip
    assert again.share(again.action) == pytest.approx(1 / 3)
    stuck = Always(Action.click(DOORS[0]))
    assert _ways(find(_search(1, stuck, judge, StuckDoors()))) == [("AAA", End.STEP_LIMIT)]


def test_to_wait_may_be_right_more_than_once() -> None:
    wait = Action(Kind.WAIT)
    (episode,) = find(_search(1, Always(wait, Action.click(DOORS[1])), Liking({"!": 0.9})))
    assert [step.action for step in episode.steps] == [wait] * 3
