"""Which model an evaluation calls champion, and which challenger: what each plays, and what each says."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tiny import contexts, elements, png

from environments.types import COMPLETE, Action, Goal, Instance, Kind, Observation, Start
from models.calibration import Calibration, Scale
from models.engine import Source
from models.network import Network, load_base
from models.packing import imitation
from models.prompts import Context, context_of
from models.roles import Agent, load_reward_model
from models.training import Schedule, train
from models.tuning import Tuning, save_tuned, tunable
from tasks.evaluate import Question, make_judge, make_player
from tasks.files import ROUND, STATE, digest

FOLDERS = {"champion": STATE, "challenger": ROUND}
KEYS = {"champion": Action(Kind.PRESS, text="a"), "challenger": Action(Kind.PRESS, text="b")}
DESK = Observation(png(90), ())
INSTANCES = [Instance(Goal("keys", "test_players:Keys", "keys", 1, 2), seed) for seed in (5, 6)]
WAIT = Action(Kind.WAIT)


class Keys:
    """Any key ends it; that of the challenger is right."""

    def reset(self, goal: Goal, seed: int) -> Start:
        self.ended, self.right = False, False
        return Start(f"Press {seed}", DESK)

    def step(self, action: Action) -> Observation:
        self.ended, self.right = True, action == KEYS["challenger"]
        return DESK

    def verdict(self) -> bool:
        return self.right

    def close(self) -> None:
        pass


@pytest.fixture
def source(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.chdir(tmp_path)
    return Source({"agent": str(base), "reward": str(base)}, "float32", 5)


def put(network: Network, folder: Path) -> None:
    folder.mkdir(parents=True)
    save_tuned(network, folder)


def taught(base: str, key: Action, scratch: Path) -> Network:
    """An agent that presses a key."""
    network = tunable(load_base(base, "float32", 5), Tuning("lora", 4, 8, 0), seed=0)
    samples = [imitation(network, Context(f"Press {one.seed}", (), DESK), str(key)) for one in INSTANCES]
    train(network, samples, Schedule(20, 2, 0.02, 0), scratch, lambda *_: None)
    return network


def test_each_agent_plays_under_its_own_name(source: Source, tmp_path: Path) -> None:
    for name, folder in FOLDERS.items():
        put(taught(source.bases["agent"], KEYS[name], tmp_path / name), folder / "agent")
    play = make_player(3, source)
    for name, folder in FOLDERS.items():
        played = play((name, INSTANCES))
        assert [one.id for one in played] == [f"round-0003/keys/{seed}/{name}" for seed in (5, 6)]
        assert {one.agent for one in played} == {digest(folder / "agent")}
        assert [one.verdict for one in played] == [name == "challenger"] * 2
        alone = Agent(source.engine(folder / "agent"))
        for one in played:
            ((said,),) = alone.propose([context_of(one.episode, 0)], 1, 0.0)
            assert [step.action for step in one.episode.steps] == [said.action] == [KEYS[name]]


def judge(base: str, seed: int) -> Network:
    network = tunable(load_base(base, "float32", 5), Tuning("lora", 4, 8, 0), seed)
    for name, weight in network.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return network


def test_each_reward_model_answers_each_question_under_its_own_name(source: Source) -> None:
    """Those of a context do not stand together, and each is answered by a scale for steps or for outcomes."""
    for number, folder in enumerate(FOLDERS.values(), 1):
        put(judge(source.bases["reward"], number), folder / "reward")
        scales = Scale(1.0, float(number)), Scale(2.0, -float(number))
        Calibration(*scales).write(folder / "reward")
    first, second, third = contexts()
    click, other = (Action.click(element) for element in elements(2))
    asked = [(third, WAIT), (first, click), (third, COMPLETE), (second, other), (first, other), (third, click)]
    questions = [Question(context, action, {"id": place}) for place, (context, action) in enumerate(asked)]
    answered = {one["id"]: one for one in make_judge(source)(questions)}
    assert answered.keys() == set(range(len(asked)))
    said = []
    for name, folder in FOLDERS.items():
        alone = load_reward_model(source, folder / "reward")
        expected = [alone.fresh().score([context], [[action]])[0][0] for context, action in asked]
        assert [answered[place][name] for place in range(len(asked))] == pytest.approx(expected, abs=1e-5)
        said += expected
    assert min(high - low for low, high in pairwise(sorted(said))) > 1e-4, "each is told from every other"
