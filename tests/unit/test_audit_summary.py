"""Combinations of outcome and step scores, by hand."""

from __future__ import annotations

from dataclasses import replace

from small_round import trajectory

from tasks.acceptance import Bar
from tasks.audit.cases import Labelled, outcome_case
from tasks.audit.summary import Scores, summarise

OUTCOMES = [  # the world's verdict, the final score, the step's score
    (True, 0.9, 0.8),
    (True, 0.86, 0.55),
    (True, 0.84, 0.9),
    (False, 0.95, 0.45),
    (False, 0.7, 0.7),
    (False, 0.2, 0.9),
]


def test_outcomes_are_judged_by_each_combination() -> None:
    found, scores = [], []
    for place, (right, final, step) in enumerate(OUTCOMES):
        path = replace(trajectory(place, seed=place), verdict=right)
        found.append(Labelled(path, (outcome_case(path, "live", "middling"),)))
        scores.append(Scores([final], [step]))
    judges = summarise(found, {"champion": scores}, Bar(0.85, 0.5))["judges"]
    counted = {
        name: [round(of["live"]["outcome"][key]["value"] * 15) for key in ("precision", "recall", "false_accept")]
        for name, of in judges.items()
    }
    assert counted == {  # fifteenths: of what is accepted, of what is right, of what is wrong
        "champion": [9, 15, 10],
        "champion, minimum": [9, 15, 10],
        "champion, gated": [11, 15, 5],
        "champion, accepted": [15, 10, 0],
    }
