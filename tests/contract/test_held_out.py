"""What reward models are asked of held-out instances, in the real world: its own verdict is the truth."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from checkout import CHECKOUT

from environments.registry import load_goals, open_world
from environments.types import COMPLETE
from tasks.evaluate import canary, held_out
from tasks.evidence.looks import HELD_OUT
from tasks.params import load_params
from tasks.records import Origin

FIRST = 1_000_000_000


def test_canaries_are_failures_that_each_differ(tmp_path: Path) -> None:
    goals = load_goals(CHECKOUT / "data/goals")
    chosen = [goals["click-button"], goals["enter-text"]]
    demonstrations, farming = held_out(chosen, FIRST, load_params(CHECKOUT / "params.yaml"), tmp_path)
    solved = {one.episode.instance.goal.id: one for one in demonstrations if one.origin is Origin.DEMONSTRATION}
    assert solved.keys() == {"click-button", "enter-text"}
    assert {one.episode.instance.seed for one in (*demonstrations, *farming)} == {FIRST + HELD_OUT}
    names = [one.id.rpartition("/")[2] for one in farming if one.episode.instance.goal.id == "enter-text"]
    assert {"at_once", "flatters", "truncates"} <= set(names)
    assert len(names) == len(set(names))
    assert len({one.episode for one in farming}) == len(farming)
    for one in farming:
        episode = one.episode
        with closing(open_world(episode.instance.goal.world)) as world:
            world.reset(episode.instance.goal, episode.instance.seed)
            for step in episode.acts:
                world.step(step.action)
            assert not world.verdict()
        question = canary(one)
        assert (question.action, question.context.observation) == (COMPLETE, episode.last)
        assert question.about["source"] == "canary"
        assert question.about["label"] is False
