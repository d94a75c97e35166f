"""A packed batch must give the loss and the gradients of its rows one by one, and of the textbook formula."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tiny import contexts, journey, pictures_seen

from models import packing
from models.inference import TorchEngine
from models.network import Network, load_base
from models.packing import (
    Batch,
    Branch,
    Sample,
    imitation,
    judgement,
    lay,
    learn,
    log_likelihoods,
    loss,
    loss_of,
    preference,
    referred,
)
from models.prompts import Context
from models.reading import Album, plant, read
from models.tree import ROOT, Tree, text
from models.tuning import Method, Tuning, tunable

LABELLED = [
    [("click b0", True, 1.0), ("complete", False, 2.0), ('type "abc"', False, 0.5)],
    [("wait", True, 1.0)],
    [("scroll up", False, 1.0), ("x", True, 3.0)],
]


def longer(inputs: dict[str, torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """The inputs of a prompt that goes on with text, but for the tokens themselves."""
    images = {name: value for name, value in inputs.items() if name.startswith(("pixel", "image"))}
    if "mm_token_type_ids" in inputs:
        kinds = torch.zeros_like(ids)
        kinds[:, : inputs["input_ids"].shape[1]] = inputs["mm_token_type_ids"]
        images["mm_token_type_ids"] = kinds
    return images


def judged(network: Network, ranking: float = 0.0) -> list[Sample]:
    return [judgement(network, context, rows, ranking) for context, rows in zip(contexts(), LABELLED, strict=True)]


def gradients_of(network: Network, value: torch.Tensor) -> dict[str, torch.Tensor]:
    network.model.zero_grad()
    value.backward()
    return {name: w.grad.clone() for name, w in network.model.named_parameters() if w.grad is not None}


def learnt(network: Network, steps: int) -> dict[str, list[Sample]]:
    """Both models' samples of the steps of one trajectory; two answers in three have much in common."""
    path = journey(steps)
    answers = [(f"click b{place}", place % 2 == 0, 0.5 + place) for place in range(2)] + [("wait", True, 2.0)]
    return {
        "imitation": [imitation(network, context, f"click b{place}") for place, context in enumerate(path)],
        "judgement": [judgement(network, context, answers[: 1 + place % 3]) for place, context in enumerate(path)],
    }


def rows_of(samples: list[Sample]) -> list[Sample]:
    """One for each answer."""
    return [Sample(sample.context, (branch,), sample.among) for sample in samples for branch in sample.branches]


@pytest.mark.parametrize("kind", ["imitation", "judgement"])
def test_a_trajectory_packed_equals_its_rows_one_by_one(tuned: Network, kind: str) -> None:
    """Nine steps: three blocks of the window, and a context of another goal between them."""
    samples = learnt(tuned, 9)[kind]
    samples.insert(4, judged(tuned)[1] if kind == "judgement" else imitation(tuned, contexts()[1], "wait"))
    packed = loss(tuned, samples)
    expected = gradients_of(tuned, packed)

    rows = rows_of(samples)
    shares = [row.branches[0].weight * len(row.branches[0].targets) for row in rows]
    single = sum(loss(tuned, [row]) * share for row, share in zip(rows, shares, strict=True)) / sum(shares)
    found = gradients_of(tuned, single)

    assert packed.item() == pytest.approx(single.item(), rel=1e-5)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(expected[name], gradient, rtol=1e-3, atol=1e-5)


def test_trees_side_by_side_teach_what_they_do_one_by_one(tuned: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of several lengths, padded to the longest; in float64, so that the order of sums tells little."""
    tuned.model.double()
    samples = judged(tuned) + learnt(tuned, 1)["imitation"]
    alone = loss(tuned, samples)
    by_itself = gradients_of(tuned, alone)
    monkeypatch.setattr(Network, "abreast", 100_000)
    beside = loss(tuned, samples)
    torch.testing.assert_close(beside, alone)
    for name, gradient in gradients_of(tuned, beside).items():
        torch.testing.assert_close(gradient, by_itself[name], rtol=1e-4, atol=1e-6)


def several(network: Network) -> list[Sample]:
    """Of each kind, in several trees; one screenshot stands in two of them."""
    context = contexts()[1]
    elsewhere = Context("Look again", context.history, context.observation)
    (preferred,) = referred(network, [preference(network, contexts()[2], "wait", ["click b1"], beta=1.0)])
    answered = [imitation(network, each, "click b1") for each in (context, elsewhere)]
    return [*answered, preferred, *judged(network, ranking=0.5), *learnt(network, 9)["judgement"]]


def test_a_gradient_of_parts_is_that_of_the_whole(tuned: Network) -> None:
    """In float64, so that the order of sums tells little."""
    tuned.model.double()
    samples = several(tuned)
    whole = loss(tuned, samples)
    expected = gradients_of(tuned, whole)
    tuned.model.zero_grad()
    batch = lay(tuned, samples)
    assert len(batch.forests) > 3
    found = learn(tuned, batch)
    assert not found.requires_grad
    torch.testing.assert_close(found, whole.detach())
    gradients = {name: weight.grad for name, weight in tuned.model.named_parameters() if weight.grad is not None}
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6)


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_a_place_learnt_from_many_times_has_the_same_gradient_each_time(tuned: Network) -> None:
    """Threads that share the work add up in an order that is theirs alone."""
    tokens = tuned.answer_tokens("click b0")
    branches = tuple(Branch((), ((-1, tokens[0]),), 1 / (1 + number)) for number in range(1500))
    samples = [Sample(contexts()[0], branches)]
    (first, *others) = (gradients_of(tuned, loss(tuned, samples)) for _ in range(5))
    for gradients in others:
        assert all(torch.equal(gradient, first[name]) for name, gradient in gradients.items())


@pytest.mark.parametrize("kind", ["imitation", "judgement"])
def test_what_was_multiplied_in_float32_is_on_the_way_back(either: Path, method: Method, kind: str) -> None:
    """Of a base in bfloat16: the way back of a whole loss, which stands outside autocast."""
    network = tunable(load_base(str(either), "bfloat16", 5), Tuning(method, 4, 8, 1), seed=0)
    samples = learnt(network, 3)[kind]
    with network.autocast():
        whole = loss(network, samples)
    expected = gradients_of(network, whole)
    network.model.zero_grad()
    with network.autocast():
        assert torch.equal(learn(network, lay(network, samples)), whole)
    for name, weight in network.model.named_parameters():
        assert weight.grad is None or torch.equal(weight.grad, expected[name])


def test_the_activations_of_one_forest_are_held(tuned: Network) -> None:
    """By what autograd has saved and not let go of whenever a forest has been computed."""
    samples, held, counted = several(tuned), set[int](), list[int]()

    def save(tensor: torch.Tensor) -> _Saved:
        kept = _Saved([tensor])
        held.add(id(kept))
        weakref.finalize(kept, held.discard, id(kept))
        return kept

    def measured(step: Callable[[Network, Batch], object]) -> list[int]:
        counted.clear()
        with torch.autograd.graph.saved_tensors_hooks(save, lambda kept: kept[0]):
            step(tuned, lay(tuned, samples))
        return list(counted)

    tuned._body.register_forward_hook(lambda *_: counted.append(len(held)))
    whole = measured(lambda network, batch: loss_of(network, batch).backward())
    assert not held
    parts = measured(learn)
    most = max(later - before for before, later in zip([0, *whole], whole, strict=False))
    assert len(parts) == len(whole) > 3
    assert max(parts) < 1.1 * most < whole[-1] / 3  # what trained features came from stays, which is little


class _Saved(list[torch.Tensor]):
    """What autograd keeps, of which one can tell when it is let go of."""


def test_what_is_computed_at_once_is_alike_and_bounded() -> None:
    trees = [Tree() for _ in range(5)]
    for tree, length in zip(trees, (7, 2, 5, 2, 20), strict=True):
        tree.add(ROOT, text(range(length), 0, 1))
    assert packing._abreast(trees, 10) == [[1, 3], [2], [0], [4]]
    assert packing._abreast(trees, 15) == [[1, 3, 2], [0], [4]]


@pytest.mark.parametrize("kind", ["imitation", "judgement"])
def test_each_screenshot_is_encoded_once(network: Network, kind: str) -> None:
    """Six steps of a block show 21 screenshots, six different ones."""
    seen = pictures_seen(network)
    loss(network, learnt(network, 6)[kind])
    assert seen == [6]


def test_the_steps_of_a_block_are_one_row(network: Network) -> None:
    """What they share is there once. Of two twigs, Qwen2.5-VL's share the token that closes a picture."""
    prompts = read(network, journey(6), Album())
    (tree,), ends = plant(prompts)
    assert len({place for _, place in ends}) == 6
    twigs = sum(len(prompt.twig) for prompt in prompts[:5])
    assert len(tree) == sum(map(len, prompts[5].runs)) + twigs - 5 * (network.axes == 3)
    assert [row for row, _ in plant(read(network, journey(12), Album()))[1]] == [0] * 6 + [1] * 3 + [2] * 3


def test_loss_of_a_verdict_is_the_log_of_the_score(network: Network) -> None:
    """-log p(+)/(p(+)+p(-)) for a right action, -log p(-)/(p(+)+p(-)) for a wrong one; p from the plain model."""
    context = contexts()[2]
    inputs = network.tensors(context)
    ids = torch.cat([inputs["input_ids"], torch.tensor([network.answer_tokens("click b0")])], dim=1)
    images = longer(inputs, ids)
    with torch.no_grad():
        logits = network.model(input_ids=ids, attention_mask=torch.ones_like(ids), **images).logits[0, -1]
    positive, negative = (math.exp(logits[token].item()) for token in network.verdicts)
    expected = positive / (positive + negative)
    assert TorchEngine(network).score([context], [["click b0"]]) == [[pytest.approx(expected, rel=1e-4)]]
    for label, share in ((True, expected), (False, 1 - expected)):
        found = loss(network, [judgement(network, context, [("click b0", label, 1.0)])]).item()
        assert found == pytest.approx(-math.log(share), rel=1e-4)


def test_loss_of_a_ranking_is_the_log_of_what_the_right_ones_have(network: Network) -> None:
    """Two right of three, by the scores that the engine gives: exp(margin) is score / (1 - score)."""
    context, other = contexts()[1], contexts()[2]
    labelled = [("click b0", True, 1.0), ("click b1", False, 1.0), ("wait", True, 1.0)]
    ((first, second, third),) = TorchEngine(network).score([context], [[action for action, _, _ in labelled]])
    odds = [score / (1 - score) for score in (first, second, third)]
    expected = -math.log((odds[0] + odds[2]) / sum(odds))
    alone = [("wait", True, 1.0)]  # nothing to rank: it does not count

    def both(ranking: float) -> list[Sample]:
        return [judgement(network, context, labelled, ranking), judgement(network, other, alone, ranking)]

    assert loss(network, both(0.5)).item() - loss(network, both(0.0)).item() == pytest.approx(expected / 2, rel=1e-3)


def test_loss_of_an_answer_is_that_of_the_plain_model(network: Network) -> None:
    """Against transformers' own loss on the same tokens with the prompt masked out."""
    context = contexts()[1]
    inputs = network.tensors(context)
    answer = network.answer_tokens("click b1")
    ids = torch.cat([inputs["input_ids"], torch.tensor([answer])], dim=1)
    labels = ids.clone()
    labels[:, : inputs["input_ids"].shape[1]] = -100
    images = longer(inputs, ids)
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


def test_answers_and_verdicts_of_a_context_share_its_prompt(network: Network) -> None:
    context = contexts()[0]
    answered, asked = imitation(network, context, "wait"), judgement(network, context, LABELLED[0], ranking=0.5)
    apart = loss(network, [answered]) + loss(network, [asked])
    seen = pictures_seen(network)
    assert loss(network, [answered, asked]).item() == pytest.approx(apart.item(), rel=1e-5)
    assert seen == [1]
    (tree,), ends = plant(read(network, [context, context], Album()))
    assert ends[0] == ends[1] == (0, len(tree) - 1)


def test_loss_of_a_preference_by_hand(tuned: Network) -> None:
    """-log sigmoid(beta * difference of gains), gains from the engine's likelihoods before and after a change."""
    context, actions = contexts()[1], ["click b0", "wait", "click b1"]
    lengths = [len(tuned.answer_tokens(action)) for action in actions]

    def likelihoods() -> list[float]:
        (means,) = TorchEngine(tuned).likelihood([context], [actions])
        return [mean * length for mean, length in zip(means, lengths, strict=True)]

    before = likelihoods()
    (sample,) = referred(tuned, [preference(tuned, context, actions[0], actions[1:], beta=0.5)])
    assert sample.reference == pytest.approx(before, rel=1e-4)
    assert loss(tuned, [sample]).item() == pytest.approx(math.log(2), rel=1e-5)  # nothing has changed yet
    with torch.no_grad():
        for weight in tuned.model.parameters():
            if weight.requires_grad:
                weight.add_(0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(weight.numel())))
    gains = [now - then for now, then in zip(likelihoods(), before, strict=True)]
    assert max(map(abs, gains)) > 0.01
    expected = [math.log1p(math.exp(-0.5 * (gains[0] - gain))) for gain in gains[1:]]
    assert loss(tuned, [sample]).item() == pytest.approx(sum(expected) / 2, rel=1e-3)


@pytest.mark.parametrize("skip", [0, 1])
def test_a_preference_is_referred_where_the_base_is_in_bfloat16(either: Path, method: Method, skip: int) -> None:
    """What is trained is in float32 all the same; before any update the reference is what the loss measures."""
    network = tunable(load_base(str(either), "bfloat16", 0), Tuning(method, 4, 8, skip), seed=0)
    (sample,) = referred(network, [preference(network, contexts()[1], "wait", ["click b1"], beta=1.0)])
    with network.autocast():
        assert loss(network, [sample]).item() == pytest.approx(math.log(2), rel=1e-3)


def test_a_preference_is_learnt_beside_imitation(tuned: Network) -> None:
    """A step down its gradient makes the right action likelier than before, against the wrong one."""
    context, other = contexts()[1], contexts()[2]
    answered = imitation(tuned, other, "click b0")
    (preferred,) = referred(tuned, [preference(tuned, context, "wait", ["click b1"], beta=1.0)])
    both = loss(tuned, [answered, preferred])
    assert both.item() == pytest.approx(loss(tuned, [answered]).item() + math.log(2), rel=1e-5)
    loss(tuned, [preferred]).backward()
    with torch.no_grad():
        for weight in tuned.model.parameters():
            if weight.grad is not None:
                weight.sub_(0.1 * weight.grad)
    assert loss(tuned, [preferred]).item() < math.log(2)


def test_likelihoods_of_samples_read_together_are_those_of_the_engine(tuned: Network) -> None:
    asked = [(contexts()[1], ["click b0"]), (contexts()[1], ["wait", "click b1"]), (contexts()[2], ["click b1"])]
    samples = [preference(tuned, context, actions[0], actions[1:], beta=1.0) for context, actions in asked]
    for found, (context, actions) in zip(log_likelihoods(tuned, samples), asked, strict=True):
        (means,) = TorchEngine(tuned).likelihood([context], [actions])
        expected = [mean * len(tuned.answer_tokens(action)) for mean, action in zip(means, actions, strict=True)]
        assert found == pytest.approx(expected, rel=1e-4)


def test_what_is_no_preference_has_no_reference(network: Network) -> None:
    samples = [imitation(network, contexts()[0], "wait"), *judged(network)]
    assert referred(network, samples) == samples
