"""The figures of an audit against hand-computed values, and scikit-learn as a second opinion."""

from __future__ import annotations

import math
import random
from operator import mul
from statistics import fmean

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from models.calibration import Scale
from tasks.audit.cases import Case
from tasks.audit.figures import Judged, false_accepts, figures, length_bin, lift, sample, top1
from tasks.audit.summary import halves, scale_of


def judged(
    label: bool,
    score: float,
    group: str = "g",
    instance: str = "goal/1",
    count: int = 1,
    kind: str = "click",
    length: int = 2,
) -> Judged:
    return Judged(
        Case("t", 0, "Go", kind, label, "live", "step", "middling", kind, instance, length, group, count),
        score,
    )


def many(n: int) -> list[Judged]:
    """Scores that tend to be right, of 20 instances."""
    chooser = random.Random(3)
    found = []
    for place in range(n):
        label = chooser.random() < 0.4
        score = min(max(chooser.gauss(0.65 if label else 0.4, 0.2), 0.0), 1.0)
        found.append(judged(label, score, f"g{place // 5}", f"goal/{place % 20}"))
    return found


def test_figures_agree_with_scikit_learn() -> None:
    cases = many(300)
    found = figures(cases)
    labels, scores = [item.case.label for item in cases], [item.score for item in cases]
    said = [score >= 0.5 for score in scores]
    expected = {
        "f1": f1_score(labels, said),
        "precision": precision_score(labels, said),
        "recall": recall_score(labels, said),
        "auc": roc_auc_score(labels, scores),
    }
    assert {name: found[name]["value"] for name in expected} == pytest.approx(expected)
    assert found["n"] == 300
    assert found["positives"] == sum(labels)
    for name in expected:
        assert found[name]["low"] < found[name]["value"] < found[name]["high"]


def test_choices_by_hand() -> None:
    """Of ten draws: six click A (right), three B, one C. The judge prefers B, then in a second group A."""
    first = [judged(True, 0.4, "a", count=6), judged(False, 0.9, "a", count=3), judged(False, 0.1, "a", count=1)]
    second = [judged(True, 0.8, "b", count=2), judged(False, 0.3, "b", count=8)]
    hopeless = [judged(False, 0.2, "c"), judged(False, 0.3, "c")]
    made = sample([*first, *second, *hopeless]).choices
    assert made.tolist() == [[0.0, 0.6, 1.0], [1.0, 0.2, 1.0], [0.0, 0.0, 0.0]]
    assert top1(made) == 0.5
    assert lift(made) == pytest.approx((-0.6 + 0.8) / (0.4 + 0.8))


def test_a_judge_that_cannot_tell_lifts_nothing_and_the_truth_lifts_all() -> None:
    labels = [True, False, False, True, False, False]
    blind = [judged(label, 0.5, f"g{at % 2}", count=at + 1) for at, label in enumerate(labels)]
    assert lift(sample(blind).choices) == pytest.approx(0.0)
    knowing = [judged(label, float(label), f"g{at % 2}") for at, label in enumerate(labels)]
    assert lift(sample(knowing).choices) == pytest.approx(1.0)
    lying = [judged(label, float(not label), f"g{at % 2}") for at, label in enumerate(labels)]
    assert lift(sample(lying).choices) == pytest.approx(-0.5)
    assert lift(sample([]).choices) is None


def test_what_a_judge_cannot_say_is_left_out() -> None:
    found = figures([judged(True, 0.9), judged(False, math.nan), judged(False, 0.2)])
    assert found["n"] == 2
    assert found["f1"]["value"] == 1.0
    assert figures([judged(True, math.nan)])["auc"] == {"value": None, "low": None, "high": None}


def test_false_accepts_by_kind() -> None:
    cases = [
        judged(False, 0.9, kind="complete"),
        judged(False, 0.1, kind="complete"),
        judged(False, 0.2),
        judged(True, 0.9),
    ]
    found = false_accepts(cases, lambda case: case.kind)
    assert {name: (rate["value"], rate["n"]) for name, rate in found.items()} == {
        "click": (0.0, 1),
        "complete": (0.5, 2),
    }


def test_intervals_draw_instances_and_not_cases() -> None:
    """Ten copies of each case tell no more than one: the interval stays as wide."""
    once = [judged(at % 3 == 0, 0.9, instance=f"goal/{at}") for at in range(12)]
    often = [item for item in once for _ in range(10)]
    one, ten = figures(once)["precision"], figures(often)["precision"]
    assert (ten["low"], ten["high"]) == pytest.approx((one["low"], one["high"]))
    assert one["high"] - one["low"] > 0.3


@pytest.mark.parametrize(("length", "name"), [(0, "0-1"), (1, "0-1"), (2, "2"), (4, "3-4"), (8, "5-8"), (30, "9+")])
def test_lengths(length: int, name: str) -> None:
    assert length_bin(judged(True, 1.0, length=length).case) == name


def test_platt_is_a_logistic_regression_on_the_log_odds() -> None:
    """Near that without a prior; at the optimum, the slope of the loss is that of the prior, by hand."""
    kept = [item for item in many(400) if 1e-6 < item.score < 1 - 1e-6]
    odds, labels = [math.log(item.score / (1 - item.score)) for item in kept], [item.case.label for item in kept]
    model = LogisticRegression(C=1e9, tol=1e-10, max_iter=1000).fit([[one] for one in odds], labels)
    found = scale_of(kept, shifted=True)
    assert (found.slope, found.offset) == pytest.approx((model.coef_[0, 0], model.intercept_[0]), abs=0.1)
    wrong = [found.apply(item.score) - item.case.label for item in kept]
    assert fmean(map(mul, wrong, odds)) == pytest.approx(-0.02 * (found.slope - 1), abs=1e-5)
    assert fmean(wrong) == pytest.approx(-0.02 * found.offset, abs=1e-5)


@pytest.mark.parametrize("shifted", [True, False])
def test_a_half_without_a_mistake_is_no_certainty(shifted: bool) -> None:
    """Without a prior the likeliest slope is endless."""
    found = scale_of([judged(at % 2 == 0, 0.9 if at % 2 == 0 else 0.1) for at in range(40)], shifted)
    assert 1 < found.slope < 5
    assert [found.apply(score) for score in (0.0, 1.0)] == pytest.approx([0, 1], abs=1e-3)


def test_a_temperature_undoes_overconfidence() -> None:
    """Log-odds three times too large: the temperature is three."""
    chooser = random.Random(5)
    cases = []
    for _ in range(20_000):
        honest = chooser.gauss(0, 1.5)
        label = chooser.random() < 1 / (1 + math.exp(-honest))
        cases.append(judged(label, 1 / (1 + math.exp(-3 * honest))))
    found = scale_of(cases, shifted=False)
    assert 1 / found.slope == pytest.approx(3, rel=0.05)
    assert Scale(1 / 3, 0).apply(1 / (1 + math.exp(-3))) == pytest.approx(1 / (1 + math.exp(-1)))


def test_halves_part_instances_and_keep_all() -> None:
    cases = many(100)
    first, second = halves(cases)
    assert len(first) + len(second) == 100
    assert not {item.case.instance for item in first} & {item.case.instance for item in second}
    assert abs(len(first) - len(second)) <= 10
