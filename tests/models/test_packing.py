"""A packed batch must give the loss and the gradients of its rows one by one, and of the textbook formula."""

from __future__ import annotations

import math

import pytest
import torch
from tiny import contexts

from models.inference import score
from models.network import Network
from models.packing import Branch, Sample, imitation, judgement, loss

LABELLED = [
    [("click b0", True, 1.0), ("complete", False, 2.0), ('type "abc"', False, 0.5)],
    [("wait", True, 1.0)],
    [("scroll up", False, 1.0), ("x", True, 3.0)],
]


def gradients(network: Network) -> dict[str, torch.Tensor]:
    return {name: w.grad.clone() for name, w in network.model.named_parameters() if w.grad is not None}


def judged(network: Network) -> list[Sample]:
    return [judgement(network, context, rows) for context, rows in zip(contexts(), LABELLED, strict=True)]


def test_shared_prefix_equals_separate_rows(adapted: Network) -> None:
    samples = judged(adapted)
    packed = loss(adapted, samples)
    packed.backward()
    expected = gradients(adapted)
    adapted.model.zero_grad()

    rows = [Sample(sample.context, (branch,), sample.among) for sample in samples for branch in sample.branches]
    weights = [row.branches[0].weight for row in rows]
    total = sum(loss(adapted, [row]) * weight for row, weight in zip(rows, weights, strict=True)) / sum(weights)
    total.backward()

    assert packed.item() == pytest.approx(total.item(), rel=1e-5)
    found = gradients(adapted)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(expected[name], gradient, rtol=1e-4, atol=1e-6)


def test_loss_of_a_verdict_is_the_log_of_the_score(network: Network) -> None:
    """-log p(+)/(p(+)+p(-)) for a right action, -log p(-)/(p(+)+p(-)) for a wrong one; p from the plain model."""
    context = contexts()[2]
    inputs = network.encode([context])
    ids = torch.cat([inputs["input_ids"], torch.tensor([network.answer_tokens("click b0")])], dim=1)
    images = {name: value for name, value in inputs.items() if name.startswith("pixel")}
    with torch.no_grad():
        logits = network.model(input_ids=ids, attention_mask=torch.ones_like(ids), **images).logits[0, -1]
    positive, negative = (math.exp(logits[token].item()) for token in network.verdicts)
    expected = positive / (positive + negative)
    assert score(network, [context], [["click b0"]]) == [[pytest.approx(expected, rel=1e-4)]]
    for label, share in ((True, expected), (False, 1 - expected)):
        found = loss(network, [judgement(network, context, [("click b0", label, 1.0)])]).item()
        assert found == pytest.approx(-math.log(share), rel=1e-4)


def test_loss_of_an_answer_is_that_of_the_plain_model(network: Network) -> None:
    """Against transformers' own loss on the same tokens with the prompt masked out."""
    context = contexts()[1]
    inputs = network.encode([context])
    answer = network.answer_tokens("click b1")
    ids = torch.cat([inputs["input_ids"], torch.tensor([answer])], dim=1)
    labels = ids.clone()
    labels[:, : inputs["input_ids"].shape[1]] = -100
    images = {name: value for name, value in inputs.items() if name.startswith("pixel")}
    with torch.no_grad():
        expected = network.model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels, **images).loss
    assert loss(network, [imitation(network, context, "click b1")]).item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_branch_does_not_see_its_siblings(network: Network) -> None:
    context = contexts()[0]
    alone = loss(network, [judgement(network, context, [("wait", True, 1.0)])]).item()
    sample = judgement(network, context, [("wait", True, 1.0), ("something long and different", False, 1.0)])
    first, second = sample.branches
    silent = Sample(context, (first, Branch(second.tokens, ())), sample.among)
    assert loss(network, [silent]).item() == pytest.approx(alone, rel=1e-5)


def test_answers_and_verdicts_do_not_share_a_batch(network: Network) -> None:
    context = contexts()[0]
    with pytest.raises(ValueError, match="one kind"):
        loss(network, [imitation(network, context, "wait"), judgement(network, context, [("wait", True, 1.0)])])
