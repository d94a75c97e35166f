"""A packed batch must give the loss and the gradients of its rows one by one, and of the textbook formula."""

from __future__ import annotations

import math

import pytest
import torch
from tiny import contexts

from models.inference import score
from models.network import Network
from models.packing import Sample, imitation, judgement, loss

LABELLED = [
    [("click b0", True), ("complete", False), ('type "abc"', False)],
    [("wait", True)],
    [("scroll up", False), ("x", True)],
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

    rows = [Sample(sample.context, (branch,)) for sample in samples for branch in sample.branches]
    total = sum(loss(adapted, [row]) for row in rows) / len(rows)
    total.backward()

    assert packed.item() == pytest.approx(total.item(), rel=1e-5)
    found = gradients(adapted)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(expected[name], gradient, rtol=1e-4, atol=1e-6)


def test_loss_of_verdicts_is_the_log_likelihood_the_scorer_sees(network: Network) -> None:
    """-log p(label) over the whole vocabulary; between the two verdicts it is what `score` reports."""
    context = contexts()[2]
    yes = loss(network, [judgement(network, context, [("click b0", True)])]).item()
    no = loss(network, [judgement(network, context, [("click b0", False)])]).item()
    ((reward,),) = score(network, [context], [["click b0"]])
    assert reward == pytest.approx(math.exp(-yes) / (math.exp(-yes) + math.exp(-no)), rel=1e-4)


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
    alone = loss(network, [judgement(network, context, [("wait", True)])]).item()
    sample = judgement(network, context, [("wait", True), ("something long and different", False)])
    first = Sample(context, (sample.branches[0], sample.branches[1].__class__(sample.branches[1].tokens, ())))
    assert loss(network, [first]).item() == pytest.approx(alone, rel=1e-5)
