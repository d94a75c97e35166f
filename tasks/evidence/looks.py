"""How evaluation looks at two agents: each goal alike at first, then twice as often where they have differed.

Where both solve everything, or nothing, there is nothing to decide by (docs/decisions/0059-where-they-differ.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypedDict

from tasks.evidence.statistics import apportion, sequential_test

HELD_OUT = 500  # instances of a goal that a round may play, and as many others that it may demonstrate
ALIKE = 2  # looks that play as many instances of each goal: an agent's success is that of these
_ELSEWHERE = Fraction(1, 2)  # the weight of a goal at which the agents have not differed yet; 1 where they have


class Verdict(TypedDict):
    """A line of ``episodes.json``: whether each agent reached a held-out goal, as the world judged.

    ``look`` is the one that added it, from 1 (:func:`tasks.evidence.statistics.sequential_test`).
    """

    look: int
    goal: str
    tier: int
    seed: int
    champion: bool
    challenger: bool


def until_settled(
    goals: Sequence[str],
    per_goal: int,
    looks: int,
    alpha: float,
    play: Callable[[int, dict[str, int]], Iterable[Verdict]],
) -> list[Verdict]:
    """The verdicts of as many looks as it takes to settle the test of promotion.

    ``play`` is called with a look's number and how many instances of each goal it adds.
    """
    seen: list[Verdict] = []
    for look in range(1, looks + 1):
        seen += play(look, shares(goals, seen, look, per_goal))
        if sequential_test(pairs_by_look(seen), looks, alpha).settled:
            break
    return seen


def shares(goals: Sequence[str], seen: Sequence[Verdict], look: int, per_goal: int) -> dict[str, int]:
    """How many instances of each goal a look adds, ``per_goal`` in the mean.

    They follow from where the agents have differed, not from who was better there: equal agents win and lose what is
    added like a fair coin, whatever the shares, and a sign test of all is as exact as one of equal shares.
    """
    differed = {verdict["goal"] for verdict in seen if verdict["champion"] != verdict["challenger"]}
    if look <= ALIKE:
        return dict.fromkeys(goals, per_goal)
    return apportion(per_goal * len(goals), {goal: Fraction(1) if goal in differed else _ELSEWHERE for goal in goals})


def most(per_goal: int, looks: int) -> int:
    """As many instances of one goal as so many looks can ever add, or more."""
    return per_goal * (min(looks, ALIKE) + int(max(looks - ALIKE, 0) / _ELSEWHERE))


def alike(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those of the looks that play each goal alike."""
    return [verdict for verdict in verdicts if verdict["look"] <= ALIKE]


def pairs_by_look(verdicts: Sequence[Verdict]) -> list[list[tuple[bool, bool]]]:
    """The (champion, challenger) pairs that each look added, the first look first; one may have added none."""
    looks: list[list[tuple[bool, bool]]] = [[] for _ in range(max((one["look"] for one in verdicts), default=0))]
    for verdict in verdicts:
        looks[verdict["look"] - 1].append((verdict["champion"], verdict["challenger"]))
    return looks
