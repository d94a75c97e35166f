"""What the page shows of a round that promoted its agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from small_round import trajectory

from tasks.page.examples import news
from tasks.records import Origin, write_trajectories

PLAYED = [  # goal, seed, champion, challenger
    ("click", 1, True, True),
    ("form", 1, False, False),
    ("form", 2, False, True),
    ("form", 3, False, True),
    ("form", 4, True, False),
    ("mail", 1, False, True),
]


def test_it_counts_what_was_won_and_shows_the_first_of_each_goal(tmp_path: Path) -> None:
    write_trajectories(
        tmp_path,
        (
            replace(
                trajectory(0, of=goal, seed=seed, origin=Origin.EVALUATION), id=f"{goal}/{seed}/{model}", verdict=right
            )
            for goal, seed, *verdicts in PLAYED
            for model, right in zip(("champion", "challenger"), verdicts, strict=True)
        ),
    )
    found = news("round-0001", tmp_path, {"click", "form"})
    assert found.goals == {"form": 2, "mail": 1}
    shown = [(one.trajectory, one.first) for one in found.examples]
    assert shown == [("mail/1/challenger", True), ("form/2/challenger", False)]
