"""Demonstrations in the real world, played otherwise, and what is learnt from these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from checkout import CHECKOUT, goal_rows

from environments.miniwob import MiniWoB
from environments.oracles.turn import ORACLES, Turn
from environments.registry import load_goals, open_world
from environments.types import Action, Goal, Instance, Kind, Start, World
from tasks.acceptance import Bar, Rejection, rejection
from tasks.demonstrate import _of_goal, demonstrate, run
from tasks.errors import ParamsError
from tasks.files import CALIBRATION, DEMONSTRATIONS
from tasks.params import load_params
from tasks.progress import log
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, read_rows, read_trajectories
from tasks.reward_data import Generator, reward_rows
from tasks.reward_data.variation import varied as rows_of
from tasks.variations import variations

GOALS = load_goals(Path(__file__).parents[2] / "data/goals")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with closing(open_world("environments.miniwob:MiniWoB")) as opened:
        yield opened


def solved(world: World, goal: str, seed: int) -> Trajectory:
    episode = demonstrate(world, Instance(GOALS[goal], seed))
    assert world.verdict()
    return Trajectory(f"seed/{goal}/{seed}/0", 0, Origin.DEMONSTRATION, episode)


def varied(world: World, whole: Trajectory) -> dict[Origin, Trajectory]:
    return {one.origin: one for one in variations(world, whole)}


def actions(trajectory: Trajectory) -> list[str]:
    return [str(step.action) for step in trajectory.episode.acts]


def replayed(world: World, trajectory: Trajectory) -> bool | None:
    """What the world says when the same actions are taken once more."""
    world.reset(trajectory.episode.instance.goal, trajectory.episode.instance.seed)
    for step in trajectory.episode.acts:
        world.step(step.action)
    return world.verdict()


class AtOnce(MiniWoB):
    """Of its first instance the goal is reached before anything is done."""

    def _begin(self, goal: Goal, seed: int) -> Start:
        start = super()._begin(goal, seed)
        self._at_once = self._ended = seed == 0
        return start

    def _reached(self) -> bool:
        return self._at_once or super()._reached()


def test_what_is_reached_from_the_start_shows_nothing() -> None:
    with closing(AtOnce()) as world:
        assert not demonstrate(world, Instance(GOALS["click-link"], 0)).acts
        assert world.verdict()
        settings = load_params().demonstrate.model_copy(update={"per_goal": 1, "calibration": 1})
        found = _of_goal(world, GOALS["click-link"], settings)
    assert [of_instance[0].id for of_instance in found] == ["seed/click-link/1/0", "seed/click-link/2/0"]


def test_scores_are_set_right_on_instances_that_nothing_is_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (goal,) = goal_rows("click-link")
    Path("goals.yaml").write_text(yaml.safe_dump([goal]))
    loaded = load_params(CHECKOUT / "params.yaml")
    one_each = loaded.demonstrate.model_copy(update={"per_goal": 1, "calibration": 1})
    run(loaded.model_copy(update={"goals": "goals.yaml", "demonstrate": one_each}))
    seeds = []
    for folder in (DEMONSTRATIONS, DEMONSTRATIONS / CALIBRATION):
        shown = {one.episode.instance.seed for one in read_trajectories(folder)}
        for_agent = read_rows(folder / "agent_rows.parquet", AgentRow)
        for_reward = read_rows(folder / "reward_rows.parquet", RewardRow)
        assert {row.seed for row in for_agent} == {row.seed for row in for_reward} == shown
        seeds.append(shown)
    assert seeds == [{0}, {1}]


def test_without_a_goal_to_demonstrate_no_round_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trac's goals have no oracle."""
    monkeypatch.chdir(Path(__file__).parents[2])
    params = load_params().model_copy(update={"goals": "examples/trac/desktop.yaml"})
    told = "goals = 'examples/trac/desktop.yaml': none of them has both .*hardest_tier = 1, .* write an oracle"
    with pytest.raises(ParamsError, match=told):
        run(params)


def test_an_oracle_that_loses_its_way_has_not_solved_its_seed(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It presses one button, and then it looks for what is not there."""

    def lost(turn: Turn) -> Action | None:
        return Action.click(turn.all("button")[len(turn.taken) * 99])

    monkeypatch.setitem(ORACLES, "click-button-sequence", lost)
    caplog.set_level("WARNING", logger=log.name)
    episode = demonstrate(world, Instance(GOALS["click-button-sequence"], 0))
    assert not world.verdict()
    assert [step.action.kind for step in episode.steps] == [Kind.CLICK]
    assert "click-button-sequence/0: its oracle does not know its way: IndexError" in caplog.text


@pytest.mark.parametrize(
    ("goal", "ways"),
    [
        ("login-user", {"left out", "mistyped"}),
        ("enter-password", {"left out", "mistyped"}),
        ("enter-text", {"left out", "mistyped"}),
        ("click-checkboxes", {"left out", "taken back"}),
    ],
)
def test_a_spoiled_demonstration_fails_in_the_world(world: World, goal: str, ways: set[str]) -> None:
    seen = set()
    for number in range(8):
        whole = solved(world, goal, number)
        short = varied(world, whole).get(Origin.SPOILED)
        if short is None:
            assert len(actions(whole)) == 1  # nothing but its last move
            continue
        assert short.id == f"{whole.id}-spoiled"
        assert replayed(world, short) is False
        assert short.episode.last != whole.episode.last
        assert varied(world, whole)[Origin.SPOILED] == short  # the same again
        assert actions(short)[-1] == actions(whole)[-1]
        seen.add(spoiled_by(actions(short), actions(whole)))
    assert seen == ways


def spoiled_by(taken: list[str], known: list[str]) -> str:
    """What was done otherwise."""
    if len(taken) == len(known):
        ((one, other),) = ((one, other) for one, other in zip(taken, known, strict=True) if one != other)
        assert one.startswith('type "')
        text, whole = one[len('type "') : -1], other[len('type "') : -1]
        assert whole.lower().startswith(text.lower())
        return "mistyped"
    if len(taken) == len(known) + 1:
        assert taken[:-2] == known[:-1]
        assert taken[-2] in known[:-1]
        assert taken[-2].startswith("click checkbox")
        return "taken back"
    assert len(known) - 2 <= len(taken)
    assert all(action in known for action in taken)
    return "left out"


@pytest.mark.parametrize("goal", ["login-user", "enter-password"])
def test_two_moves_may_change_places(world: World, goal: str) -> None:
    whole = solved(world, goal, 2)
    other = varied(world, whole)[Origin.REORDERED]
    assert replayed(world, other) is True
    taken, known = actions(other), actions(whole)
    assert taken != known
    assert sorted(taken) == sorted(known)
    assert taken[:4] == [*known[2:4], *known[:2]]  # a click with what is typed after it
    assert taken[4:] == known[4:]


@pytest.mark.parametrize("goal", ["login-user", "click-option", "click-tab"])
def test_a_slip_that_does_no_harm(world: World, goal: str) -> None:
    whole = solved(world, goal, 2)
    other = varied(world, whole)[Origin.SLIPPED]
    assert replayed(world, other) is True
    assert actions(other)[1:] == actions(whole)
    assert actions(other)[0] not in actions(whole)


def test_where_one_move_is_all_there_is_nothing_can_be_left_out_or_exchanged(world: World) -> None:
    assert not varied(world, solved(world, "click-test-2", 1)).keys() & {Origin.SPOILED, Origin.REORDERED}


def test_what_each_teaches(world: World) -> None:
    whole = solved(world, "login-user", 0)
    found = varied(world, whole)
    assert {rejection(one, Bar(0.0)) for one in found.values()} == {Rejection.VARIED}  # the agent learns from none
    rows = {
        origin: [(item.step, str(item.action), item.label, item.generator) for item in rows_of(one)]
        for origin, one in found.items()
    }
    short, other, slipped = (actions(found[origin]) for origin in (Origin.SPOILED, Origin.REORDERED, Origin.SLIPPED))
    end = len(short)
    assert rows[Origin.SPOILED] == [
        (end - 1, short[-1], False, Generator.SPOILED),
        (end, "complete", False, Generator.SPOILED),
    ]
    assert rows[Origin.REORDERED] == [
        (step, action, True, Generator.EQUIVALENT) for step, action in enumerate([*other, "complete"])
    ]
    assert rows[Origin.SLIPPED] == [
        (step, action, True, Generator.RECOVERED) for step, action in enumerate([*slipped, "complete"]) if step
    ]
    kept = reward_rows([whole, *found.values()], bar=Bar(0.0), max_negatives=3, seed=0)
    by_trajectory = {one.id: {row.generator for row in kept if row.trajectory == one.id} for one in found.values()}
    assert list(by_trajectory.values()) == [{"spoiled"}, {"equivalent"}, {"recovered"}]
