"""The figures against hand-computed values, scipy as a second opinion, and properties that always hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.evidence.statistics import (
    Bin,
    auc,
    balanced_accuracy,
    bootstrap_interval,
    calibration_error,
    classification,
    f1_interval,
    false_accept_rate,
    paired_test,
    reliability,
    sequential_test,
    wilson,
)

T, F = True, False
SCORES = st.floats(0, 1)
JUDGED = st.lists(st.tuples(st.booleans(), SCORES), min_size=1, max_size=40)


def test_wilson_by_hand() -> None:
    # 8 of 10 with z = 1.959964: centre (.8 + .192073) / 1.384146, half .343120 / 1.384146.
    low, high = wilson(8, 10) or (0, 0)
    assert low == pytest.approx(0.490162, abs=1e-6)
    assert high == pytest.approx(0.943318, abs=1e-6)


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (1, 3), (41, 50), (999, 1000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_agrees_with_scipy(successes: int, n: int, confidence: float) -> None:
    reference = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert wilson(successes, n, confidence) == pytest.approx((reference.low, reference.high), abs=1e-12)


def test_wilson_of_nothing_is_undefined() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2)])
def test_wilson_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=rf"{successes} successes of {n}: must be within"):
        wilson(successes, n)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_encloses_the_rate_and_mirrors(counts: tuple[int, int]) -> None:
    successes, n = counts
    low, high = wilson(successes, n) or (1, 0)
    assert 0 <= low <= successes / n <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_paired_test_by_hand() -> None:
    champion = [T, T, F, F, F, F, F, T]
    challenger = [T, F, T, T, T, T, F, T]
    result = paired_test(champion, challenger)
    assert (result.wins, result.losses, result.ties) == (4, 1, 3)
    assert result.p_value == 6 / 32  # (C(5,4) + C(5,5)) / 2^5


def test_paired_test_without_a_difference_shows_nothing() -> None:
    assert paired_test([T, F], [T, F]).p_value == 1
    assert paired_test([], []).p_value == 1


@given(st.integers(0, 400), st.integers(0, 400))
def test_paired_test_agrees_with_scipy(wins: int, losses: int) -> None:
    result = paired_test([F] * wins + [T] * losses, [T] * wins + [F] * losses)
    expected = stats.binomtest(wins, wins + losses, alternative="greater").pvalue if wins + losses else 1
    assert result.p_value == pytest.approx(expected, rel=1e-9)


def test_paired_test_refuses_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired_test([T, F], [T])


def _looks(*counts: tuple[int, int, int]) -> list[list[tuple[bool, bool]]]:
    """Looks of so many wins, losses and ties."""
    return [[(F, T)] * wins + [(T, F)] * losses + [(T, T)] * ties for wins, losses, ties in counts]


def test_sequential_test_by_hand() -> None:
    """Two looks at alpha 1/4, 3 discordant pairs each.

    The first may spend 1/8: 3 wins of 3 (1/8) are needed. By the second 1/4 may be spent, so 1/8 more, 8 of the 64
    ways of 6 pairs. Ways that did not begin with 3 wins: to 5 wins 3, to 4 wins 12. So 5 wins are needed, and the
    p-value of 5 of 6 is 7/64.
    """
    first = sequential_test(_looks((2, 1, 4)), 2, 0.25)
    assert (first.level, first.better, first.settled) == (1 / 8, False, False)
    assert sequential_test(_looks((3, 0, 4)), 2, 0.25).better
    second = sequential_test(_looks((2, 1, 4), (3, 0, 0)), 2, 0.25)
    assert (second.level, second.so_far.p_value, second.better) == (7 / 64, 7 / 64, True)
    assert not sequential_test(_looks((2, 1, 4), (2, 1, 0)), 2, 0.25).better


def test_sequential_test_stops_at_the_look_that_settles_it() -> None:
    ahead = sequential_test(_looks((3, 0, 4), (0, 3, 0)), 2, 0.25)
    assert (ahead.look, ahead.better) == (1, True)
    early = sequential_test(_looks((1, 3, 4), (9, 0, 0)), 2, 0.25)  # the first two looks give nobody up
    assert (early.look, early.better) == (2, True)
    behind = sequential_test(_looks((1, 1, 4), (0, 1, 4), (0, 1, 4), (9, 0, 0)), 4, 0.25)
    assert (behind.look, behind.better, behind.settled) == (3, False, True)
    by_one = sequential_test(_looks((1, 1, 4), (0, 1, 4), (0, 0, 4), (9, 0, 0)), 4, 0.25)
    assert (by_one.look, by_one.better) == (4, True)
    nothing = sequential_test([], 3, 0.05)
    assert (nothing.look, nothing.better) == (0, False)
    with pytest.raises(ValueError, match="3 looks of 2 planned"):
        sequential_test(_looks((1, 0, 0)) * 3, 2, 0.05)


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0.01, 0.05, 0.25]))
def test_one_look_is_the_paired_test(wins: int, losses: int, alpha: float) -> None:
    (pairs,) = _looks((wins, losses, 3))
    test = sequential_test([pairs], 1, alpha)
    assert test.so_far == paired_test([old for old, _ in pairs], [new for _, new in pairs])
    assert test.better is (test.so_far.p_value <= alpha)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.sampled_from([0.05, 0.2, 0.5]))
def test_equal_models_are_told_apart_with_a_chance_of_at_most_alpha_by_any_look(added: list[int], alpha: float) -> None:
    """Over every sequence of wins and losses, each as likely: by look k at most k/looks of alpha, exactly counted."""
    crossed = [0] * len(added)
    total = sum(added)
    for outcome in itertools.product([True, False], repeat=total):
        looks, start = [], 0
        for count in added:
            looks.append([(not won, won) for won in outcome[start : start + count]])
            start += count
        test = sequential_test(looks, len(added), alpha)
        if test.better:
            crossed[test.look - 1] += 1
    for look, count in enumerate(itertools.accumulate(crossed), 1):
        assert count / 2**total <= alpha * look / len(added)


def test_classification_by_hand() -> None:
    labels = [T, T, T, F, F, F]
    scores = [0.9, 0.5, 0.2, 0.7, 0.1, 0.49]  # 2 hits, 1 miss, 1 false alarm
    result = classification(labels, scores)
    assert result.precision == pytest.approx(2 / 3)
    assert result.recall == pytest.approx(2 / 3)
    assert result.f1 == pytest.approx(2 / 3)
    assert result.accuracy == pytest.approx(4 / 6)
    assert result.n == 6
    assert false_accept_rate(labels, scores) == pytest.approx(1 / 3)
    assert classification(labels, scores, threshold=0.8).recall == pytest.approx(1 / 3)


def test_what_is_not_defined_is_none_and_not_zero() -> None:
    nothing = classification([], [])
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.accuracy) == (None, None, None, None)
    negatives = classification([F, F], [0.1, 0.2])
    assert (negatives.precision, negatives.recall, negatives.f1) == (None, None, None)
    assert negatives.accuracy == 1
    assert classification([T], [0.1]).f1 == 0
    assert auc([T, T], [0.1, 0.9]) is None
    assert calibration_error([], []) is None
    assert false_accept_rate([T], [0.9]) is None
    assert f1_interval([], [], seed=0) is None
    assert f1_interval([F, F], [0.1, 0.1], seed=0) is None


def test_classification_refuses_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="2 labels for 1 scores"):
        classification([T, F], [0.5])


def test_auc_by_hand() -> None:
    # Pairs (positive, negative): .9>.5, .9>.1, .5=.5 (half), .5>.1: 3.5 of 4.
    assert auc([T, T, F, F], [0.9, 0.5, 0.5, 0.1]) == 3.5 / 4


@given(JUDGED)
def test_auc_agrees_with_scipy_and_mirrors(judged: list[tuple[bool, float]]) -> None:
    labels, scores = [label for label, _ in judged], [score for _, score in judged]
    positives = [score for label, score in judged if label]
    negatives = [score for label, score in judged if not label]
    found = auc(labels, scores)
    if not positives or not negatives:
        assert found is None
        return
    area = stats.mannwhitneyu(positives, negatives).statistic / (len(positives) * len(negatives))
    assert found == pytest.approx(area)
    assert auc([not label for label in labels], scores) == pytest.approx(1 - area)


def test_reliability_and_calibration_error_by_hand() -> None:
    labels, scores = [T, F, T, T], [0.3125, 0.4375, 0.5, 1.0]
    assert reliability(labels, scores, bins=2) == [Bin(0.0, 0.5, 2, 0.375, 0.5), Bin(0.5, 1.0, 2, 0.75, 1.0)]
    assert calibration_error(labels, scores, bins=2) == 2 / 4 * 0.125 + 2 / 4 * 0.25
    assert reliability([T], [0.9], bins=2)[0] == Bin(0.0, 0.5, 0, None, None)


@given(JUDGED, st.integers(1, 20))
def test_every_score_is_in_a_bin(judged: list[tuple[bool, float]], bins: int) -> None:
    labels, scores = [label for label, _ in judged], [score for _, score in judged]
    found = reliability(labels, scores, bins)
    assert sum(item.n for item in found) == len(judged)
    assert 0 <= (calibration_error(labels, scores, bins) or 0) <= 1


def test_bootstrap_of_a_mean_is_near_theory_and_seeded() -> None:
    values = np.random.default_rng(1).normal(size=400)

    def mean(sample: np.ndarray) -> float:
        return float(sample.mean())

    low, high = bootstrap_interval(values, mean, seed=0, draws=2000) or (0, 0)
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert low == pytest.approx(values.mean() - half, abs=0.01)
    assert high == pytest.approx(values.mean() + half, abs=0.01)
    assert bootstrap_interval(values, mean, seed=0, draws=2000) == (low, high)
    assert bootstrap_interval(values, mean, seed=1, draws=2000) != (low, high)


def test_f1_interval_encloses_f1_and_narrows_with_n() -> None:
    labels, scores = [T, T, T, F, F, F] * 10, [0.9, 0.5, 0.2, 0.7, 0.1, 0.4] * 10
    low, high = f1_interval(labels, scores, seed=0) or (0, 0)
    assert 0.45 < low < 2 / 3 < high < 0.85
    narrow_low, narrow_high = f1_interval(labels * 10, scores * 10, seed=0) or (0, 1)
    assert narrow_high - narrow_low < (high - low) / 2
    assert f1_interval([T, F], [1.0, 0.0], seed=0) == (1.0, 1.0)


def test_balanced_accuracy_counts_right_and_wrong_cases_alike() -> None:
    """3 of 4 true cases and 1 of 2 false ones: (0.75 + 0.5) / 2."""
    labels = [True, True, True, True, False, False]
    assert balanced_accuracy(labels, [True, True, True, False, True, False]) == 0.625
    assert balanced_accuracy([True], [True]) is None
