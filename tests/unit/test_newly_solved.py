"""What the page shows of a round that promoted its agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from small_round import trajectory

from environments.types import End
from tasks.page.examples import news
from tasks.records import Origin, Trajectory, write_trajectories

PLAYED = [  # goal, seed, champion, challenger
    ("click", 1, True, True),
    ("form", 1, False, False),
    ("form", 2, False, True),
    ("form", 3, False, True),
    ("form", 4, True, False),
    ("mail", 1, False, True),
    ("late", 1, None, True),  # the world broke under the champion
]


def _played(goal: str, seed: int, model: str, verdict: bool | None) -> Trajectory:
    made = trajectory(0, of=goal, seed=seed, origin=Origin.EVALUATION)
    end = End.CRASHED if verdict is None else End.COMPLETED
    return replace(made, id=f"{goal}/{seed}/{model}", episode=replace(made.episode, end=end), verdict=bool(verdict))


def test_it_counts_what_was_won_and_shows_the_first_of_each_goal(tmp_path: Path) -> None:
    write_trajectories(
        tmp_path,
        (
            _played(goal, seed, model, verdict)
            for goal, seed, *verdicts in PLAYED
            for model, verdict in zip(("champion", "challenger"), verdicts, strict=True)
        ),
    )
    found = news("round-0001", tmp_path, {"click", "form"})
    assert found.goals == {"form": 2, "mail": 1}
    shown = [(one.trajectory, one.first) for one in found.examples]
    assert shown == [("mail/1/challenger", True), ("form/2/challenger", False)]
