"""What past rounds showed of each goal, and from it how many instances each gets.

``curriculum.json`` is part of the state:
``{"round": 3, "goals": {"click-button": {"tried": 5, "solved": 4, "sure": 3.5, "progress": 0.25}}}``, and where
exploration is rebalanced from round to round, ``"setting": {"temperature": 2.5, "accept": 0.8}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

from environments.types import Goal
from tasks.curriculum.balance import Setting
from tasks.errors import ParamsError, RecordError
from tasks.evidence.statistics import apportion
from tasks.files import read_json, write_json

OPENS_FROM = Fraction(1, 2)  # share of a tier's instances solved from which the next tier opens


class Attempt(NamedTuple):
    """A goal instance tried: whether some path counts as solved, and how sure the agent was of the best of them.

    That is :func:`tasks.acceptance.sureness`; 0 where no path counts as solved.
    """

    goal: str
    solved: bool
    sure: float


@dataclass(frozen=True, slots=True)
class Tally:
    """Goal instances tried and solved; evidence of earlier rounds counts half with each round that passes.

    Halves of halves are exact in binary: nothing is rounded, and a goal of which half is solved stays one.
    ``sure`` is of how many the agent alone finds the way, as its own samples say (:class:`Attempt`); ``progress`` how
    much higher that rate was in the last round with attempts than it was known to be before.
    """

    tried: float = 0
    solved: float = 0
    sure: float = 0
    progress: float = 0.0

    @property
    def rate(self) -> Fraction:
        """How often the agent alone finds the way; 1/2 where nothing was tried."""
        return Fraction(self.sure) / Fraction(self.tried) if self.tried else Fraction(1, 2)

    def then(self, attempts: Sequence[Attempt]) -> Tally:
        """The tally after another round."""
        now = Tally(len(attempts), sum(one.solved for one in attempts), math.fsum(one.sure for one in attempts))
        progress = float(now.rate - self.rate) if now.tried and self.tried else self.progress / 2
        return Tally(self.tried / 2 + now.tried, self.solved / 2 + now.solved, self.sure / 2 + now.sure, progress)


@dataclass(frozen=True, slots=True)
class Curriculum:
    """``round`` is the number of the round that this state starts; ``goals`` the evidence by goal id.

    ``setting`` is how it is to explore, where the parameters leave that to what was found
    (:mod:`tasks.curriculum.balance`).
    """

    round: int
    goals: Mapping[str, Tally]
    setting: Setting | None = None

    @classmethod
    def first(cls, goals: Iterable[str]) -> Self:
        """The curriculum of a found state: round 1, nothing tried."""
        return cls(1, {goal: Tally() for goal in goals})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read ``curriculum.json``. Raises RecordError when it is missing or not a curriculum."""
        try:
            record = read_json(path)
            goals = {goal: Tally(**tally) for goal, tally in record["goals"].items()}
            return cls(record["round"], goals, Setting(**record["setting"]) if "setting" in record else None)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(
                f"{path}: not a curriculum ({error}); fetch it with `ratchet pull` or run `dvc repro found`"
            ) from error

    def write(self, path: Path) -> None:
        """Write ``curriculum.json``."""
        goals = {goal: asdict(tally) for goal, tally in self.goals.items()}
        setting = {"setting": asdict(self.setting)} if self.setting else {}
        write_json(path, {"round": self.round, "goals": goals, **setting})

    def next(self, attempts: Iterable[Attempt], setting: Setting | None = None) -> Curriculum:
        """The curriculum after a round.

        What was known before counts half, so that the rates follow the agent of today and not its average over all
        rounds.
        """
        of: dict[str, list[Attempt]] = {goal: [] for goal in self.goals}
        for attempt in attempts:
            of.setdefault(attempt.goal, []).append(attempt)
        goals = {goal: self.goals.get(goal, Tally()).then(found) for goal, found in of.items()}
        return Curriculum(self.round + 1, goals, setting)

    def apportion(self, goals: Mapping[str, Goal], total: int, opening: int) -> dict[str, int]:
        """How many of ``total`` instances each goal gets: one each, the rest to open tiers by :meth:`weight`.

        The same evidence always gives the same counts. ``total`` is at least the number of goals; ``opening`` is that
        of :meth:`open_tiers`.
        """
        tiers = self.open_tiers(goals.values(), opening)
        weights = {goal.id: self.weight(goal.id) for goal in goals.values() if goal.tier in tiers}
        extra = apportion(total - len(goals), weights if any(weights.values()) else dict.fromkeys(weights, Fraction(1)))
        return {goal: 1 + extra.get(goal, 0) for goal in goals}

    def weight(self, goal: str) -> Fraction:
        """How unsure the agent is of the goal, and how much that has changed of late, up or down.

        4 p (1 - p) of the agent's own rate p is 1 where it finds the way half of the time and nothing where it always
        does, or never (learnability: Tzannetos et al. 2023, Rutherford et al. 2024); absolute learning progress
        (Portelas et al. 2019) keeps what is being learnt, or forgotten, ahead of what stays as it is.
        """
        tally = self.goals.get(goal, Tally())
        return 4 * tally.rate * (1 - tally.rate) + abs(Fraction(tally.progress))

    def open_tiers(self, goals: Iterable[Goal], opening: int) -> set[int]:
        """The tiers whose goals get more than one instance.

        The ``opening`` lowest are always open; another one when the tier below it is solved from
        :data:`OPENS_FROM` on.
        """
        tallies: dict[int, Tally] = {}
        for goal in goals:
            pooled, own = tallies.get(goal.tier, Tally()), self.goals.get(goal.id, Tally())
            tallies[goal.tier] = Tally(pooled.tried + own.tried, pooled.solved + own.solved)
        tiers = sorted(tallies)
        ready = {tier for tier, tally in tallies.items() if tally.tried and tally.solved >= OPENS_FROM * tally.tried}
        return {*tiers[:opening], *(tier for below, tier in pairwise(tiers) if below in ready)}


def easy_enough(goals: Mapping[str, Goal], hardest: int | None) -> dict[str, Goal]:
    """The goals of tier ``hardest`` and below, all of them if it is None.

    Raises:
        ParamsError: when there are none.
    """
    kept = {name: goal for name, goal in goals.items() if hardest is None or goal.tier <= hardest}
    if not kept:
        lowest = min(goal.tier for goal in goals.values())
        raise ParamsError(
            f"hardest_tier = {hardest}: the lowest tier of the goals is {lowest}; raise it in params.yaml"
        )
    return kept
