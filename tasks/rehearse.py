"""Stage rehearse: exercises on random pages, by which the embedded base was taught, for the agent to go over again.

What an agent learns of a few goals displaces what it could do before: a warm start on goals of one click costs it
forms of two fields. Some of what taught it, mixed in, keeps that: rehearsal (Robins 1995;
docs/decisions/0031-forms-are-rehearsed.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count, islice
from pathlib import Path

from environments.pages.exercise import act_out, random_exercise
from environments.pages.studio import Studio
from environments.pages.words import lexicon
from environments.types import End, Episode, Goal, Instance
from tasks.acceptance import Bar
from tasks.base import location
from tasks.errors import ParamsError
from tasks.files import REHEARSAL, write_whole
from tasks.filter import agent_rows
from tasks.params import Params
from tasks.records import AgentRow, Origin, Trajectory, write_rows, write_trajectories

FIRST_SEED = 4_000_000_000  # of pages that neither taught the base nor test it
_FORMS = 4  # of so many exercises all but one are forms
_GOAL = Goal("exercise", "environments.pages.studio:Studio", "", tier=1, max_steps=20)


def run(params: Params) -> None:
    """Act exercises out in the browser. Writes ``data/seed/rehearsal``: trajectories and agent rows.

    Raises:
        ParamsError: the agent's base knows no words to write pages with.
    """
    done = list(exercises(params.rehearse.exercises))

    def store(folder: Path) -> None:
        folder.mkdir()
        write_trajectories(folder, done)
        write_rows(folder / "agent_rows.parquet", AgentRow, agent_rows(done, Bar(0.0)))

    write_whole(REHEARSAL, store)


def exercises(wanted: int) -> Iterator[Trajectory]:
    """So many exercises, done rightly. Raises ParamsError as :func:`run` does, where any are wanted."""
    return islice(_done(_words()), wanted) if wanted else iter(())


def _done(words: Sequence[str]) -> Iterator[Trajectory]:
    """Exercises done rightly, without end."""
    with closing(Studio()) as studio:
        for number in count():
            exercise = random_exercise(FIRST_SEED + number, words, to_send=number % _FORMS > 0)
            if steps := act_out(studio, exercise):
                *taken, last = steps  # the last says `complete`
                instance = Instance(_GOAL, number)
                episode = Episode(instance, exercise.instruction, tuple(taken), last.observation, End.COMPLETED)
                yield Trajectory(f"seed/{instance.goal.id}/{number}/0", 0, Origin.EXERCISE, episode)


def _words() -> list[str]:
    from transformers import AutoTokenizer

    base = location("agent")
    if found := lexicon(AutoTokenizer.from_pretrained(base, trust_remote_code=False)):
        return found
    raise ParamsError(
        f"base.agent {base}: its vocabulary has no words of small letters, with which the pages of rehearse.exercises "
        "are written; set that to 0"
    )
