"""The curriculum and the goal instances it proposes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from declared import only_declared_params
from hypothesis import given
from hypothesis import strategies as st
from small_round import goal, params, rows_of, trajectory, write_curriculum, write_goals, write_round_rows

from tasks import propose
from tasks.acceptance import Bar
from tasks.curriculum import Attempt, Curriculum, Tally, easy_enough
from tasks.curriculum.balance import Setting
from tasks.curriculum.plan import Plan
from tasks.errors import ParamsError, RecordError
from tasks.files import read_json
from tasks.propose import fresh_seeds

INSTANCES = Path("data/round/instances.json")
CURRICULUM = Path("data/state/curriculum.json")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_written_and_read_back(tmp_path: Path) -> None:
    curriculum = Curriculum(3, {"b": Tally(4, 1, 0.7, -0.25), "a": Tally(0, 0)})
    curriculum.write(tmp_path / "curriculum.json")
    assert read_json(tmp_path / "curriculum.json") == {
        "round": 3,
        "goals": {
            "a": {"tried": 0, "solved": 0, "sure": 0, "progress": 0.0},
            "b": {"tried": 4, "solved": 1, "sure": 0.7, "progress": -0.25},
        },
    }
    assert Curriculum.read(tmp_path / "curriculum.json") == curriculum
    rebalanced = curriculum.next([], Setting(2.5, 0.75))
    rebalanced.write(tmp_path / "curriculum.json")
    assert Curriculum.read(tmp_path / "curriculum.json") == rebalanced


@pytest.mark.parametrize("text", ["[]", "{", '{"round": 1}', '{"round": 1, "goals": {"a": {"won": 1}}}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "curriculum.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"curriculum.json: not a curriculum .*`dvc repro found`"):
        Curriculum.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="not a curriculum"):
        Curriculum.read(tmp_path / "curriculum.json")


def test_a_round_counts_and_older_evidence_halves() -> None:
    start = Curriculum.first(["a", "b"])
    assert start == Curriculum(1, {"a": Tally(), "b": Tally()})
    found = [("a", True, 1.0), ("a", False, 0.0), ("b", False, 0.0), ("a", True, 0.5), ("a", True, 0.25)]
    second = start.next(Attempt(*one) for one in found)
    assert second == Curriculum(2, {"a": Tally(4, 3, 1.75), "b": Tally(1, 0, 0)})
    third = second.next([Attempt("a", True, 0.9375), Attempt("new", True, 0.5)])
    # Of a: 7/16 before, 15/16 of the new one; b was not tried.
    assert third == Curriculum(3, {"a": Tally(3, 2.5, 1.8125, 0.5), "b": Tally(0.5, 0, 0), "new": Tally(1, 1, 0.5)})


def _attempts(*sure: float) -> list[Attempt]:
    return [Attempt("a", one > 0, one) for one in sure]


def test_progress_is_the_change_of_a_goals_rate_and_fades() -> None:
    first = Tally().then(_attempts(0, 0))
    assert first == Tally(2, 0, 0, 0.0)  # nothing was known to compare with
    second = first.then(_attempts(0.5, 1))
    assert second == Tally(3, 2, 1.5, 0.75)
    assert second.then([]) == Tally(1.5, 1, 0.75, 0.375)
    assert second.then(_attempts(0, 0)).progress == -0.5


def test_a_goal_of_which_half_is_solved_stays_one() -> None:
    """And its tier, from which the next one opens, stays half solved."""
    tally = Tally()
    for _ in range(60):
        tally = tally.then(_attempts(1, 1, 0, 0))
        assert tally.solved * 2 == tally.tried
        assert tally.rate == Fraction(1, 2)
    goals = {"one": goal("one", 1), "two": goal("two", 2)}
    assert Curriculum(61, {"one": tally}).open_tiers(goals.values(), 1) == {1, 2}


def test_what_changes_gets_more_than_what_stays_out_of_reach() -> None:
    curriculum = Curriculum(3, {"learnt": Tally(4, 2, 2, 0.5), "lost": Tally(4, 2, 2, -0.5), "hopeless": Tally(4, 0)})
    assert curriculum.weight("learnt") == curriculum.weight("lost") == Fraction(3, 2)
    assert curriculum.weight("hopeless") == 0


def test_what_the_agent_is_not_sure_of_gets_most_and_all_get_one() -> None:
    """Where a search solves everything, too: what its agent always does by itself is nothing new."""
    goals = {name: goal(name) for name in ("sure", "unsure", "hopeless", "new")}
    tallies = {"sure": Tally(4, 4, 4), "unsure": Tally(4, 4, 1), "hopeless": Tally(4, 0, 0)}
    curriculum = Curriculum(2, tallies)
    assert [curriculum.weight(name) for name in goals] == [0, Fraction(3, 4), 0, 1]
    assert curriculum.apportion(goals, 18, 1) == {"sure": 1, "unsure": 7, "hopeless": 1, "new": 9}


def test_where_nothing_is_unsure_all_get_the_same() -> None:
    goals = {name: goal(name) for name in ("a", "b")}
    curriculum = Curriculum(2, {"a": Tally(4, 4, 4), "b": Tally(4, 0, 0)})
    assert curriculum.apportion(goals, 8, 1) == {"a": 4, "b": 4}


def test_equal_remainders_go_to_the_goals_that_stand_first() -> None:
    goals = {name: goal(name) for name in ("c", "a", "b")}
    assert Curriculum.first(goals).apportion(goals, 5, 1) == {"c": 2, "a": 2, "b": 1}


def test_without_evidence_the_lowest_tiers_are_open() -> None:
    goals = {"one": goal("one", 1), "two": goal("two", 2), "four": goal("four", 4)}
    assert Curriculum.first(goals).open_tiers(goals.values(), 1) == {1}
    assert Curriculum.first(goals).open_tiers(goals.values(), 2) == {1, 2}
    assert Curriculum.first(goals).open_tiers(goals.values(), 9) == {1, 2, 4}


def test_a_tier_opens_when_the_one_below_is_solved_often_enough() -> None:
    goals = {"one": goal("one", 1), "two": goal("two", 2), "four": goal("four", 4)}
    closed = Curriculum(2, {"one": Tally(4, 1), "two": Tally(4, 0), "four": Tally(4, 0)})
    assert closed.open_tiers(goals.values(), 1) == {1}
    assert closed.apportion(goals, 12, 1) == {"one": 10, "two": 1, "four": 1}
    opened = Curriculum(2, {"one": Tally(4, 2), "two": Tally(4, 1), "four": Tally(4, 0)})
    assert opened.open_tiers(goals.values(), 1) == {1, 2}


TALLIES = st.tuples(*[st.integers(0, 50)] * 3).map(lambda counts: Tally(*sorted(counts, reverse=True)))


@given(st.lists(st.tuples(TALLIES, st.integers(1, 4)), min_size=1, max_size=12), st.integers(1, 9))
def test_counts_add_up_and_no_goal_is_forgotten(known: list[tuple[Tally, int]], per_goal: int) -> None:
    goals = {f"g{place}": goal(f"g{place}", tier) for place, (_, tier) in enumerate(known)}
    curriculum = Curriculum(2, {f"g{place}": tally for place, (tally, _) in enumerate(known)})
    counts = curriculum.apportion(goals, per_goal * len(goals), 2)
    assert list(counts) == list(goals)
    assert sum(counts.values()) == per_goal * len(goals)
    assert min(counts.values()) >= 1
    open_goals = [g for g in goals.values() if g.tier in curriculum.open_tiers(goals.values(), 2)]
    for harder in open_goals:
        for easier in open_goals:
            if curriculum.weight(harder.id) > curriculum.weight(easier.id):
                assert counts[harder.id] >= counts[easier.id]


def test_proposals_are_fresh_instances_in_goal_order(workspace: Path) -> None:
    goals = [goal("b"), goal("a", 2)]
    write_goals(workspace / "data/goals", *goals)
    write_curriculum(CURRICULUM, *goals)
    propose.run(params(propose={"per_goal": 3}))
    proposed = read_json(INSTANCES)
    assert proposed["round"] == 1
    assert [item["goal"] for item in proposed["instances"]] == ["b"] * 3 + ["a"] * 3
    assert [item["seed"] for item in proposed["instances"]] == list(range(10_000, 10_006))


def test_what_is_left_to_balance_goes_round_the_temperatures(workspace: Path) -> None:
    """At first around the parameters', later around what the curriculum says."""
    write_goals(workspace / "data/goals", goal())
    start = write_curriculum(CURRICULUM, goal())
    propose.run(params(explore={"balance": 1}))
    plan = Plan.read()
    assert [one.temperature for one in plan.instances] == [1.6, 2.0, 2.5, 1.6]
    assert plan.accept == 0.85
    start.next([], Setting(1.0, 0.6)).write(CURRICULUM)
    propose.run(params(explore={"balance": 1}))
    plan = Plan.read()
    assert [one.temperature for one in plan.instances] == [0.8, 1.0, 1.25, 0.8]
    assert plan.applied(params()).filter.bar == Bar(0.6, params().filter.min_step, quoted=True)
    propose.run(params())
    assert Plan.read().applied(params()) == params()
    assert read_json(INSTANCES)["instances"][0] == {"goal": "click-ok", "seed": 20_000}


@pytest.mark.parametrize("proposer", ["recombine", "compose"])
def test_its_params_are_all_that_it_reads(workspace: Path, proposer: str) -> None:
    write_goals(workspace / "data/goals", goal())
    write_curriculum(CURRICULUM, goal())
    write_round_rows(CURRICULUM.parent / "corpus/seed", [trajectory(0)], *rows_of(trajectory(0)))
    used = params(propose={"new": 0.5, "proposer": proposer}, explore={"balance": 1})
    with only_declared_params("propose"):
        propose.run(used)


def test_goals_that_are_too_hard_are_not_proposed(workspace: Path) -> None:
    goals = [goal("easy"), goal("hard", 3)]
    write_goals(workspace / "data/goals", *goals)
    write_curriculum(CURRICULUM, *goals)
    propose.run(params(propose={"hardest_tier": 2}))
    assert {item["goal"] for item in read_json(INSTANCES)["instances"]} == {"easy"}
    with pytest.raises(ParamsError, match="hardest_tier = 2: the lowest tier of the goals is 3"):
        easy_enough({"hard": goal("hard", 3)}, 2)


def test_the_same_state_proposes_the_same_bytes_and_the_next_others(workspace: Path) -> None:
    write_goals(workspace / "data/goals", goal())
    start = write_curriculum(CURRICULUM, goal())
    written = []
    for _ in range(2):
        propose.run(params())
        written.append(INSTANCES.read_bytes())
    start.next([]).write(CURRICULUM)
    propose.run(params())
    assert written[0] == written[1] != INSTANCES.read_bytes()


def test_no_two_rounds_share_a_seed() -> None:
    seeds = Counter(seed for number in range(1, 100) for seed in fresh_seeds(number, 40, params()))
    assert max(seeds.values()) == 1
    assert min(seeds) >= 10_000
    assert max(seeds) < params().evaluate.first_seed


def test_held_out_seeds_are_never_reached() -> None:
    with pytest.raises(ParamsError, match=r"round 100: its seeds 1000000..1009999 reach the held-out ones"):
        fresh_seeds(100, 1, params())


def test_a_round_has_no_more_seeds_than_its_own() -> None:
    assert fresh_seeds(1, 10_000, params()) == range(10_000, 20_000)
    with pytest.raises(ParamsError, match=r"propose.per_goal = 4: 10001 instances"):
        fresh_seeds(1, 10_001, params())
