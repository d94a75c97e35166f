"""The two models of a round, as the search sees them: one proposes actions, the other scores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Literal

from environments.types import Action, ActionError, Candidate, Observation
from models.calibration import Calibration, read_calibration
from models.engine import Engine, Source, members
from models.prompts import Context

Together = Literal["mean", "minimum", "cautious"]
ENSEMBLE = "ensemble.json"  # of a checkpoint whose members are numbered folders


class Agent:
    """Proposes actions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def propose(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[list[Candidate]]:
        """Sampled actions for each context, duplicates merged, most frequent first; greedy at temperature 0.

        ``likeliest``: one of the samples is the greedy action. ``seed`` names the draw: the same name gives the same
        samples. Answers that are no action are left out, so a list may be empty.
        """
        answers = self._engine.sample(contexts, samples, temperature, seed, likeliest)
        return [merge(texts, context.observation) for texts, context in zip(answers, contexts, strict=True)]


class RewardModel:
    """Scores actions, and sets the scores right by its calibration."""

    def __init__(self, engine: Engine, calibration: Calibration) -> None:
        self._engine, self._calibration = engine, calibration

    def fresh(self) -> RewardModel:
        """The same without what its engine has read."""
        return RewardModel(self._engine.fresh(), self._calibration)

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """The reward of each candidate action of each context, 0..1; of ``complete``, the outcome reward."""
        scores = self._engine.score(contexts, [[str(action) for action in candidates] for candidates in actions])
        return [
            [self._calibration.of(action).apply(score) for action, score in zip(candidates, row, strict=True)]
            for candidates, row in zip(actions, scores, strict=True)
        ]


class Ensemble:
    """Several reward models, each trained in an order of its own: what one alone likes counts for less.

    Their scores ``together`` are the mean, the minimum, or cautious: the mean less the standard deviation, 0 at the
    least (mean, worst case and uncertainty of Coste et al. 2024, arXiv:2310.02743).
    """

    def __init__(self, judges: Sequence[RewardModel], together: Together) -> None:
        self._judges, self._together = judges, together

    def fresh(self) -> Ensemble:
        """The same without what its engines have read."""
        return Ensemble([judge.fresh() for judge in self._judges], self._together)

    def score(self, contexts: Sequence[Context], actions: Sequence[Sequence[Action]]) -> list[list[float]]:
        """See :meth:`RewardModel.score`."""
        said = [judge.score(contexts, actions) for judge in self._judges]
        return [[self._as_one(scores) for scores in zip(*rows, strict=True)] for rows in zip(*said, strict=True)]

    def _as_one(self, scores: Sequence[float]) -> float:
        match self._together:
            case "mean":
                return fmean(scores)
            case "minimum":
                return min(scores)
            case "cautious":
                return max(0.0, fmean(scores) - pstdev(scores))


def load_reward_model(source: Source, checkpoint: Path) -> RewardModel | Ensemble:
    """A stored reward model with its calibration, or a stored ensemble of them."""
    judges = [RewardModel(source.engine(one), read_calibration(one)) for one in members(checkpoint)]
    if not (checkpoint / ENSEMBLE).exists():
        return judges[0]
    return Ensemble(judges, json.loads((checkpoint / ENSEMBLE).read_text())["together"])


def merge(answers: Mapping[str, int], observation: Observation) -> list[Candidate]:
    """Candidates from answers and how often each was drawn.

    Clicks on the same element are one candidate, named by its most frequent wording; so are clicks near it where no
    element is known, long presses, and swipes in the same direction.

    What begins with no action, and a point beside the screen, is left out.
    """
    counts: dict[Action, int] = {}
    for answer, drawn in answers.items():
        try:
            action = Action.begun(answer)
        except ActionError:
            continue
        if action.point is not None and not observation.shows(action.point):
            continue
        counts[action] = counts.get(action, 0) + drawn
    merged: list[Candidate] = []
    for action, count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
        place = next((n for n, one in enumerate(merged) if _same(action, one.action, observation)), None)
        if place is None:
            merged.append(Candidate(action, count))
        else:
            merged[place] = replace(merged[place], count=merged[place].count + count)
    return sorted(merged, key=lambda item: (-item.count, str(item.action)))


def _same(action: Action, other: Action, observation: Observation) -> bool:
    """Whether two actions do the same here."""
    if action.point is None or other.point is None:
        return action == other
    if (action.kind, action.text) != (other.kind, other.text):
        return False
    on, other_on = (
        [place for place, element in enumerate(observation.elements) if element.contains(point)]
        for point in (action.point, other.point)
    )
    return on == other_on and (bool(on) or observation.near(action.point, other.point))
