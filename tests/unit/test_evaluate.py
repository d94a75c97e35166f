"""How evaluation looks at the agents: scripted ones, in the worker processes of a real stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hand_built import NAME, click, screen
from small_round import goal, params

from environments.types import Action, Element, End, Episode, Goal, Instance, Kind, Step
from models.prompts import context_at
from tasks.evaluate import Question, ask, chunks, live, of_looks, play
from tasks.evidence.looks import alike
from tasks.records import Origin, Trajectory
from tasks.workers import crew

GOALS = [goal("one"), goal("two", tier=2), goal("three", tier=3)]
LOOKS = params(evaluate={"per_goal": 2, "looks": 2})


def scripted(solver: str) -> Callable[[tuple[str, Sequence[Instance]]], list[Trajectory]]:
    """Plays so that the model named, and no other, solves everything."""

    def play_one(unit: tuple[str, Sequence[Instance]]) -> list[Trajectory]:
        name, instances = unit
        return [
            Trajectory(
                f"round-0001/{instance.name}/{name}",
                1,
                Origin.EVALUATION,
                Episode(instance, "Do it", (Step(screen(0), click(NAME)),), screen(1), End.COMPLETED),
                verdict=name == solver,
            )
            for instance in instances
        ]

    return play_one


def test_one_look_is_enough_where_the_challenger_wins_everything(tmp_path: Path) -> None:
    """6 wins of 6: 1/64, and the first of two looks may use 1/40."""
    with crew(scripted, ("challenger",), 2) as players:
        episodes, verdicts = play(players, GOALS, 500, LOOKS, tmp_path)
    assert len(episodes) == 12
    assert [(line["look"], line["goal"], line["seed"]) for line in verdicts] == [
        (1, goal.id, seed) for goal in GOALS for seed in (500, 501)
    ]
    assert all(line["challenger"] and not line["champion"] for line in verdicts)


def test_where_nothing_is_settled_more_instances_are_played(tmp_path: Path) -> None:
    with crew(scripted, ("nobody",), 2) as players:
        episodes, verdicts = play(players, GOALS[:1], 500, LOOKS, tmp_path)
    assert [(line["look"], line["seed"]) for line in verdicts] == [(1, 500), (1, 501), (2, 502), (2, 503)]
    assert len({episode.id for episode in episodes}) == 8


def better_at(goal: str) -> Callable[[tuple[str, Sequence[Instance]]], list[Trajectory]]:
    """The challenger solves one goal, the champion none."""

    def play_one(unit: tuple[str, Sequence[Instance]]) -> list[Trajectory]:
        return [
            replace(path, verdict=bool(path.verdict) and path.episode.instance.goal.id == goal)
            for path in scripted("challenger")(unit)
        ]

    return play_one


def test_the_third_look_goes_to_the_goal_at_which_the_agents_differ(tmp_path: Path) -> None:
    """Of 6 instances a look, by weights of 1/2, 1 and 1/2: 1.5, 3 and 1.5. No seed is played twice."""
    looks = params(evaluate={"per_goal": 2, "looks": 8})
    with crew(better_at, ("two",), 2) as players:
        episodes, verdicts = play(players, GOALS, 500, looks, tmp_path)
    played = [[(one["goal"], one["seed"]) for one in verdicts if one["look"] == look] for look in (1, 2, 3)]
    assert played == [
        [(name, seed) for name in ("one", "two", "three") for seed in (500, 501)],
        [(name, seed) for name in ("one", "two", "three") for seed in (502, 503)],
        [*[("one", seed) for seed in (504, 505)], *[("two", seed) for seed in (504, 505, 506)], ("three", 504)],
    ]
    assert len({(one["goal"], one["seed"]) for one in verdicts}) == len(verdicts)
    asked = of_looks(episodes, alike(verdicts))
    assert {one.episode.instance.seed for one in asked} == {500, 501, 502, 503}


def test_a_challenger_behind_is_not_looked_at_for_ever(tmp_path: Path) -> None:
    looks = params(evaluate={"per_goal": 2, "looks": 4})
    with crew(scripted, ("champion",), 2) as players:
        _, verdicts = play(players, GOALS[:1], 500, looks, tmp_path)
    assert {line["look"] for line in verdicts} == {1, 2, 3}


def unlucky(breaks: int) -> Callable[[tuple[str, Sequence[Instance]]], list[Trajectory]]:
    """The challenger solves everything, but the world breaks under the champion at one seed."""

    def play_one(unit: tuple[str, Sequence[Instance]]) -> list[Trajectory]:
        return [
            replace(path, episode=replace(path.episode, end=End.CRASHED))
            if path.episode.instance.seed == breaks and unit[0] == "champion"
            else path
            for path in scripted("challenger")(unit)
        ]

    return play_one


def test_an_instance_on_which_the_world_broke_counts_for_neither(tmp_path: Path) -> None:
    with crew(unlucky, (500,), 2) as players:
        episodes, verdicts = play(players, GOALS, 500, params(evaluate={"looks": 1}), tmp_path)
    assert [(line["goal"], line["seed"]) for line in verdicts] == [(goal.id, 501) for goal in GOALS]
    assert len(episodes) == 12
    asked = ask([replace(one, episode=replace(one.episode, end=End.CRASHED)) for one in episodes], [], LOOKS)
    assert asked == []


def test_steps_are_asked_about_as_far_as_the_oracle_knows_its_way() -> None:
    """The third screen does not show what `ls` listed, and the terminal's script raises there."""
    told = _asked(click(PROMPT), Action(Kind.TYPE, text="ls\n"), click(PROMPT), verdict=False)
    assert told == [("outcome", False), ("step", True), ("step", True)]


@pytest.mark.parametrize(("verdict", "of_the_second"), [(False, [("step", False)]), (True, [])])
def test_what_the_oracle_would_not_have_done_is_wrong_where_it_failed_and_else_not_asked_about(
    verdict: bool, of_the_second: list[tuple[str, bool]]
) -> None:
    told = _asked(click(PROMPT), Action(Kind.TYPE, text="dir\n"), click(PROMPT), verdict=verdict)
    assert told == [("outcome", verdict), ("step", True), *of_the_second]


PROMPT = Element("text", "$", (10, 10, 100, 10))


def _asked(*deeds: Action, verdict: bool) -> list[tuple[str, bool]]:
    """The queries and labels about an episode of the page with a terminal."""
    steps = tuple(Step(screen(place, (PROMPT,)), deed) for place, deed in enumerate(deeds))
    instance = Instance(Goal("terminal", "environments.miniwob:MiniWoB", "terminal", 4, 9), 500)
    episode = Episode(instance, "Delete a file ending with the extension .png", steps, screen(3), End.COMPLETED)
    found = live(Trajectory("r/terminal/challenger", 1, Origin.EVALUATION, episode, verdict=verdict))
    return [(str(question.about["query"]), bool(question.about["label"])) for question in found]


def test_what_is_asked_of_one_screen_is_asked_at_once() -> None:
    """Contexts that come up again join their portion; a portion is full from 32 questions on."""
    contexts = [context_at(f"Do {number}", (), screen(number)) for number in range(3)]
    questions = [Question(contexts[place % 3], click(NAME), {"id": str(place)}) for place in range(60)]
    portions = chunks(questions)
    assert [len(portion) for portion in portions] == [40, 20]
    assert [len({question.context for question in portion}) for portion in portions] == [2, 1]
    assert sorted(int(question.about["id"]) for portion in portions for question in portion) == list(range(60))
    assert chunks([]) == []
