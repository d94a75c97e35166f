"""The figures of an evaluation: intervals, paired tests, classification and calibration.

Pure functions of numbers. A figure that is not defined (a rate of nothing) is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist, fmean, variance

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = Sequence[bool] | NDArray[np.bool_]
Scores = Sequence[float] | Floats

_EARLY = 2  # looks after which nobody is given up


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Challenger against champion on the same cases.

    ``wins`` are cases that only the challenger got right, ``losses`` those that only the champion did.
    ``p_value`` is the chance of so many wins or more if both were equally good.
    """

    wins: int
    losses: int
    ties: int
    p_value: float


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """A paired test after ``look`` of ``looks`` planned looks at growing evidence; ``so_far`` counts all pairs seen.

    The challenger is better when the p-value is at most ``level``, which is what this look may use of alpha.
    """

    so_far: PairedTest
    look: int
    looks: int
    level: float

    @property
    def better(self) -> bool:
        """Whether the challenger is shown to be better."""
        return self.so_far.p_value <= self.level

    @property
    def settled(self) -> bool:
        """Whether no further look is worth taking: better, the last, or late and behind by more than one case.

        The first looks have few cases at which the models differ, and say little
        (docs/decisions/0062-what-an-agent-is-not-sure-of.md).
        """
        behind = self.look > _EARLY and self.so_far.losses - self.so_far.wins > 1
        return self.better or behind or self.look == self.looks


@dataclass(frozen=True, slots=True)
class Classification:
    """How well scores tell positives from negatives at a threshold; None where a ratio is of nothing."""

    precision: float | None
    recall: float | None
    f1: float | None
    accuracy: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin of a reliability diagram: scores in [low, high), 1 belonging to the last."""

    low: float
    high: float
    n: int
    mean_score: float | None
    positive_share: float | None


def wilson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float] | None:
    """Score interval of a rate (Wilson 1927; Brown, Cai and DasGupta 2001, section 3.1.1); None for n = 0.

    Raises:
        ValueError: when successes are not within 0..n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}: must be within 0..n")
    if n == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, shrink = successes / n, 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / shrink
    # At the ends the bound is exactly 0 or 1; rounding would leave it a hair off.
    return (0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half)


def mean_interval(*groups: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean, or of the mean of several groups' means, by the normal approximation.

    None where a group has fewer than two values.
    """
    if min(map(len, groups)) < 2:
        return None
    mean = fmean(map(fmean, groups))
    error = math.sqrt(sum(variance(group) / len(group) for group in groups)) / len(groups)
    half = NormalDist().inv_cdf(0.975) * error
    return mean - half, mean + half


def apportion(total: int, weights: Mapping[str, Fraction]) -> dict[str, int]:
    """``total`` whole shares that follow the weights, by largest remainder (Hamilton); ties in the order given."""
    exact = {name: total * weight / sum(weights.values()) for name, weight in weights.items()}
    shares = {name: math.floor(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda name: shares[name] - exact[name])[: total - sum(shares.values())]:
        shares[name] += 1
    return shares


def paired_test(champion: Sequence[bool], challenger: Sequence[bool]) -> PairedTest:
    """Exact one-sided sign test on the discordant pairs (McNemar 1947, exact form).

    The p-value is P(X >= wins), X binomial(wins + losses, 1/2), summed in whole numbers; 1 without a
    discordant pair.

    Raises:
        ValueError: when the two differ in length.
    """
    pairs = list(zip(champion, challenger, strict=True))
    wins = sum(new and not old for old, new in pairs)
    losses = sum(old and not new for old, new in pairs)
    discordant = wins + losses
    tail = sum(math.comb(discordant, k) for k in range(wins, discordant + 1))
    return PairedTest(wins, losses, len(pairs) - discordant, tail / 2**discordant)


def sequential_test(pairs: Sequence[Sequence[tuple[bool, bool]]], looks: int, alpha: float) -> SequentialTest:
    """Exact one-sided sign test in several looks, up to the first that settles it.

    By look k at most the share k/looks of alpha is spent (Lan and DeMets 1983; Kim and DeMets 1987, rho = 1), exactly,
    given how many pairs are discordant: so with equal models the challenger is called better with a chance of at most
    alpha, whenever and for whatever reason the looking stops. One look is :func:`paired_test` at alpha.

    Args:
        pairs: for each look taken, the (champion, challenger) pairs that it added.
        looks: how many are planned, at least those taken.

    Raises:
        ValueError: when more looks were taken than planned.
    """
    if len(pairs) > looks:
        raise ValueError(f"{len(pairs)} looks of {looks} planned: plan as many")
    seen: list[tuple[bool, bool]] = []
    bounds = _Bounds()
    test = SequentialTest(paired_test([], []), 0, looks, 0.0)
    for look, added in enumerate(pairs, 1):
        seen += added
        so_far = paired_test([old for old, _ in seen], [new for _, new in seen])
        level = alpha if looks == 1 else bounds.level(so_far.wins + so_far.losses, Fraction(alpha) * look / looks)
        test = SequentialTest(so_far, look, looks, level)
        if test.settled:
            break
    return test


class _Bounds:
    """The levels of the looks, one after the other, from all ways in which equal models can win and lose.

    ``_ways[w]`` is the number of sequences of wins and losses with w wins that no look has called better.
    """

    def __init__(self) -> None:
        self._ways, self._discordant, self._spent = [1], 0, Fraction(0)

    def level(self, discordant: int, may_spend: Fraction) -> float:
        """The p-value up to which this look may call the challenger better; ``may_spend`` of alpha in all so far."""
        self._grow(discordant)
        needed, crossing = len(self._ways), 0
        while needed and self._spent + Fraction(crossing + self._ways[needed - 1], 2**discordant) <= may_spend:
            needed -= 1
            crossing += self._ways[needed]
        self._spent += Fraction(crossing, 2**discordant)
        self._ways = self._ways[:needed] + [0] * (len(self._ways) - needed)
        tail = sum(math.comb(discordant, wins) for wins in range(needed, discordant + 1))
        return float(tail / 2**discordant)

    def _grow(self, discordant: int) -> None:
        """Let the sequences go on to so many discordant pairs."""
        for _ in range(discordant - self._discordant):
            self._ways = [lost + won for lost, won in zip([*self._ways, 0], [0, *self._ways], strict=True)]
        self._discordant = discordant


def classification(labels: Labels, scores: Scores, threshold: float = 0.5) -> Classification:
    """Precision, recall, F1 and accuracy, a score from ``threshold`` on counting as positive."""
    truth, said = _arrays(labels, scores, threshold)
    hits, misses = int((truth & said).sum()), int((truth & ~said).sum())
    false_alarms = int((~truth & said).sum())
    return Classification(
        precision=_ratio(hits, hits + false_alarms),
        recall=_ratio(hits, hits + misses),
        f1=_ratio(2 * hits, 2 * hits + misses + false_alarms),
        accuracy=_ratio(int((truth == said).sum()), len(truth)),
        n=len(truth),
    )


def false_accept_rate(labels: Labels, scores: Scores, threshold: float = 0.5) -> float | None:
    """Share of the negatives that score ``threshold`` or more; None without negatives."""
    truth, said = _arrays(labels, scores, threshold)
    return _ratio(int((~truth & said).sum()), int((~truth).sum()))


def balanced_accuracy(labels: Sequence[bool], right: Sequence[bool]) -> float | None:
    """Mean of the shares judged right among true and among false cases (Brodersen et al. 2010).

    None when one of the two is missing.
    """
    of_true = [hit for label, hit in zip(labels, right, strict=True) if label]
    of_false = [hit for label, hit in zip(labels, right, strict=True) if not label]
    if not of_true or not of_false:
        return None
    return (sum(of_true) / len(of_true) + sum(of_false) / len(of_false)) / 2


def auc(labels: Labels, scores: Scores) -> float | None:
    """Chance that a positive outscores a negative, ties half (Mann and Whitney 1947); None without both."""
    truth, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=float)
    positives, negatives = values[truth], np.sort(values[~truth])
    if not len(positives) or not len(negatives):
        return None
    below = np.searchsorted(negatives, positives, side="left")
    up_to = np.searchsorted(negatives, positives, side="right")
    return int((below + up_to).sum()) / (2 * len(positives) * len(negatives))


def reliability(labels: Labels, scores: Scores, bins: int = 10) -> list[Bin]:
    """The bins of a reliability diagram, equally wide over 0..1 (Guo et al. 2017, section 2)."""
    truth, values = np.asarray(labels, dtype=bool), np.asarray(scores, dtype=float)
    places = np.minimum((values * bins).astype(int), bins - 1)
    return [_bin(index, bins, truth[places == index], values[places == index]) for index in range(bins)]


def calibration_error(labels: Labels, scores: Scores, bins: int = 10) -> float | None:
    """Expected calibration error (Guo et al. 2017, equation 3): mean |positive share - score| over rows."""
    filled = [(b.n, b.mean_score, b.positive_share) for b in reliability(labels, scores, bins)]
    gaps = [n * abs(share - score) for n, score, share in filled if score is not None and share is not None]
    return math.fsum(gaps) / len(labels) if len(labels) else None


def bootstrap_interval(
    values: Floats,
    statistic: Callable[[Floats], float | None],
    seed: int,
    draws: int = 1000,
) -> tuple[float, float] | None:
    """95 % percentile interval of a statistic of the rows of ``values`` (Efron 1979), from seeded resamples.

    Resamples where the statistic is None are left out; None when it is so in all, or there are no rows.
    """
    if not len(values):
        return None
    random = np.random.default_rng(seed)
    drawn = (statistic(values[random.integers(len(values), size=len(values))]) for _ in range(draws))
    defined = [value for value in drawn if value is not None]
    if not defined:
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def f1_interval(labels: Labels, scores: Scores, seed: int, threshold: float = 0.5) -> tuple[float, float] | None:
    """95% bootstrap interval of :func:`classification`'s F1, resampling judgements."""
    truth, said = _arrays(labels, scores, threshold)
    rows = np.column_stack([truth & said, truth, said]).astype(float)
    return bootstrap_interval(rows, _f1, seed)


def _f1(rows: Floats) -> float | None:
    hits, positives, accepted = rows.sum(axis=0).tolist()
    return _ratio(2 * hits, positives + accepted)


def _arrays(labels: Labels, scores: Scores, threshold: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    if len(labels) != len(scores):
        raise ValueError(f"{len(labels)} labels for {len(scores)} scores: must be as many")
    return np.asarray(labels, dtype=bool), np.asarray(scores, dtype=float) >= threshold


def _bin(index: int, bins: int, truth: NDArray[np.bool_], values: Floats) -> Bin:
    score = float(values.mean()) if len(values) else None
    return Bin(index / bins, (index + 1) / bins, len(values), score, _ratio(int(truth.sum()), len(truth)))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
