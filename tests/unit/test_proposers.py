"""New goals on the screens of solved ones."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hand_built import MAIL, NAME, POST, SUBMIT, click, demonstration, typed
from small_round import OK, goal, params, rows_of, trajectory, write_curriculum, write_goals, write_round_rows
from test_vision_judge import server

from environments.types import End
from tasks import propose
from tasks.curriculum.plan import Proposal
from tasks.curriculum.proposers import Asked, Composed, Recombined, new_goals
from tasks.errors import ChatError
from tasks.files import read_json

TICKED = demonstration(click(MAIL), click(SUBMIT), instruction="Tick Mail and click Submit.")
WRITTEN = demonstration(click(NAME), typed("Ann"), click(SUBMIT), seed=3)
PLAIN = demonstration(click(SUBMIT), goal="plain", instruction="Go on")
EVEN = {"form": Fraction(1, 2), "plain": Fraction(1, 2)}


def test_another_name_of_the_screen_is_asked_for() -> None:
    proposer = Recombined(seed="0")
    assert proposer.propose(TICKED) == Proposal("form", 0, "Tick Post and click Submit.")
    assert proposer.propose(WRITTEN) == Proposal("form", 3, 'Enter "nnA" and submit')
    assert proposer.propose(PLAIN) is None


def test_two_solved_goals_are_asked_for_one_after_the_other() -> None:
    """Both began on the screen of FORM; a world that closed after the first would not take the second."""
    other = demonstration(click(POST), goal="post", instruction="Tick Post.")
    closed = demonstration(click(SUBMIT), goal="end", seed=1, instruction="Submit.", end=End.WORLD)
    elsewhere = demonstration(click(OK), goal="ok", instruction="Click OK.", elements=(OK,))
    proposer = Composed([TICKED, other, elsewhere], seed="0")
    asked = "Tick Mail and click Submit. Then: Tick Post."
    assert proposer.propose(TICKED) == Proposal("form", 0, asked, max_steps=18)  # nine of each
    assert proposer.propose(elsewhere) is None
    assert Composed([TICKED, closed], seed="0").propose(closed) is None
    assert Composed([TICKED], seed="0").propose(TICKED) is None


def test_as_many_as_there_are_each_instance_once() -> None:
    again = demonstration(click(MAIL), click(SUBMIT), instruction="Tick Mail and click Submit.", place=1)
    found = new_goals([TICKED, again, WRITTEN, PLAIN], Recombined("0"), 9, EVEN, "0/1")
    assert sorted((one.goal, one.seed) for one in found) == [("form", 0), ("form", 3)]
    assert len(new_goals([TICKED, WRITTEN], Recombined("0"), 1, EVEN, "0/1")) == 1
    assert new_goals([PLAIN, WRITTEN, again, TICKED], Recombined("0"), 9, EVEN, "0/1") == found  # whatever their order


def test_goals_with_a_higher_weight_are_drawn_sooner_and_others_not_at_all() -> None:
    """Weights 9 and 1: the first of two is drawn first in nine of ten cases."""
    other = demonstration(click(MAIL), click(SUBMIT), goal="other", instruction="Tick Mail and click Submit.")
    weights = {"form": Fraction(9), "other": Fraction(1)}
    first = [new_goals([TICKED, other], Recombined("0"), 1, weights, str(seed))[0].goal for seed in range(400)]
    assert 0.86 < first.count("form") / 400 < 0.94
    assert new_goals([TICKED], Recombined("0"), 1, {"other": Fraction(1)}, "0") == []


def test_a_language_model_is_asked_on_a_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(lambda _: {"message": {"content": " Tick Post.\n"}}) as (url, seen):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        assert Asked("some-model").propose(TICKED) == Proposal("form", 0, "Tick Post.")
    (request,) = seen
    assert request["model"] == "some-model"
    asked = request["messages"][0]["content"]
    assert "Tick Mail and click Submit." in asked
    assert 'checkbox "Post"' in asked


@pytest.mark.parametrize("said", ["", "Tick Mail and click Submit.", "so " * 200])
def test_what_is_no_new_goal_is_not_taken(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    with server(lambda _: {"message": {"content": said}}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        assert Asked("some-model").propose(TICKED) is None


def test_a_server_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(lambda _: {"error": "no such model"}, status=404) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(ChatError, match=r"the model nobody refused \(404\)"):
            Asked("nobody").propose(TICKED)


@pytest.mark.parametrize("said", ["<html>busy</html>", '{"error": "busy"}', '{"choices": []}', '["busy"]'])
def test_what_is_no_chat_completion_is_named(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    with server(lambda _: {}, whole=said) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(ChatError, match=f"no chat completion: {re.escape(said)}"):
            Asked("some-model").propose(TICKED)


def test_a_share_of_the_instances_asks_for_something_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 8 instances, a quarter; what the corpus does not fill goes to the goals' own."""
    monkeypatch.chdir(tmp_path)
    goals = [goal("click-ok"), goal("other")]
    write_goals(tmp_path / "data/goals", *goals)
    write_curriculum(Path("data/state/curriculum.json"), *goals)
    made = trajectory(0)
    write_round_rows(Path("data/state/corpus/seed"), [made], *rows_of(made))

    def proposed(**settings: object) -> list[dict[str, object]]:
        propose.run(params(propose={"per_goal": 4, **settings}))
        found: list[dict[str, object]] = read_json(Path("data/round/instances.json"))["instances"]
        assert len(found) == 8
        return found

    assert all("instruction" not in item for item in proposed(new=0.25))  # its screen has no other button to name
    with server(lambda _: {"message": {"content": "Click OK twice"}}) as (url, _):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        asked = [item for item in proposed(new=0.25, proposer="some-model") if "instruction" in item]
    assert asked == [{"goal": "click-ok", "seed": 10_000, "instruction": "Click OK twice"}]
