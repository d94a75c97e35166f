"""What is rehearsed: exercises on random pages, acted out in the real browser, as things to imitate."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from checkout import CHECKOUT
from tiny import build_tiny_base

from environments.pages.exercise import act_out, random_exercise
from environments.pages.studio import Studio
from environments.types import End
from models.network import load_base
from tasks.errors import ParamsError
from tasks.files import REHEARSAL, SEED, write_json
from tasks.params import Params, Rehearse, load_params
from tasks.records import AgentRow, Origin, read_rows, read_trajectories
from tasks.rehearse import FIRST_SEED, run
from tasks.train import agent_samples

WORDS = ("basket", "candle", "garden", "market", "mirror", "pencil", "river", "silver", "stone", "thunder", "window")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a tiny base."""
    monkeypatch.chdir(tmp_path)
    folder = build_tiny_base(tmp_path / "base")
    SEED.mkdir(parents=True)
    (SEED / "base").mkdir()
    write_json(SEED / "base/bases.json", {"agent": {"model": str(folder), "digest": ""}})
    return folder


def params(exercises: int) -> Params:
    loaded = load_params(CHECKOUT / "params.yaml")
    return loaded.model_copy(update={"rehearse": Rehearse(exercises=exercises)})


def knows_words(base: Path) -> None:
    """Put words into the vocabulary, as byte-level ones have them; some that no page is written with."""
    file = base / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    for token in (*(f"Ġ{word}" for word in WORDS), "Ġof", "river", "ĠRiver", "Ġriver2"):
        tokenizer["model"]["vocab"][token] = 10_000 + len(tokenizer["model"]["vocab"])
    file.write_text(json.dumps(tokenizer))


def test_exercises_are_imitated_from_the_first_move_to_complete(base: Path) -> None:
    knows_words(base)
    run(params(5))
    found = list(read_trajectories(REHEARSAL))
    rows = read_rows(REHEARSAL / "agent_rows.parquet", AgentRow)
    assert len(found) == 5
    with closing(Studio()) as studio:
        for trajectory in found:
            episode, number = trajectory.episode, trajectory.episode.instance.seed
            exercise = random_exercise(FIRST_SEED + number, WORDS, to_send=number % 4 > 0)
            steps = act_out(studio, exercise)
            assert steps is not None
            assert (trajectory.origin, episode.end, episode.instruction) == (
                Origin.EXERCISE,
                End.COMPLETED,
                exercise.instruction,
            )
            mine = [row for row in rows if row.trajectory == trajectory.id]
            assert [(row.step, row.action) for row in mine] == [
                (place, str(step.action)) for place, step in enumerate(steps)
            ]
            assert [step.observation for step in episode.steps] + [episode.last] == [one.observation for one in steps]
    assert {row.source for row in rows} == {"exercise"}
    samples = agent_samples(REHEARSAL, load_base(str(base), "float32", 0))
    assert [sample.context.instruction for sample in samples] == [
        next(one.episode.instruction for one in found if one.id == row.trajectory) for row in rows
    ]


def test_nothing_is_rehearsed_where_nothing_is_asked_for(base: Path) -> None:
    run(params(0))
    assert list(read_trajectories(REHEARSAL)) == []
    assert agent_samples(REHEARSAL, load_base(str(base), "float32", 0)) == []


def test_a_vocabulary_without_words_is_named(base: Path) -> None:
    with pytest.raises(ParamsError, match=rf"^base.agent {base}: its vocabulary has no words .* set that to 0$"):
        run(params(2))
    assert not REHEARSAL.exists()
