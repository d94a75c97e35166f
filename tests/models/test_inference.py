from __future__ import annotations

import pytest
import torch
from tiny import contexts

from environments.types import Action
from models.inference import MAX_ANSWER_TOKENS, sample, score
from models.network import Network
from models.roles import Agent, merge


def test_scores_do_not_depend_on_the_batch(network: Network) -> None:
    actions = [["wait", "complete", 'type "a longer one"'], ["complete"], ["scroll up", "wait"]]
    together = score(network, contexts(), actions)
    for context, candidates, scores in zip(contexts(), actions, together, strict=True):
        for candidate, found in zip(candidates, scores, strict=True):
            ((alone,),) = score(network, [context], [[candidate]])
            assert found == pytest.approx(alone, abs=1e-5)


def test_greedy_answers_are_those_of_generate(network: Network) -> None:
    """Against transformers' own generate, one context at a time."""
    answers = sample(network, contexts(), 1, 0.0, None)
    for context, (answer,) in zip(contexts(), answers, strict=True):
        inputs = network.encode([context])
        output = network.model.generate(**inputs, max_new_tokens=MAX_ANSWER_TOKENS, do_sample=False)
        tokens = output[0, inputs["input_ids"].shape[1] :]
        assert answer == network.processor.tokenizer.decode(tokens, skip_special_tokens=True)


def test_samples_follow_the_models_distribution(network: Network) -> None:
    """The first tokens of 4,000 samples against the softmax of the prompt's last logits: chi-square per cell < 5 sigma."""
    context = contexts()[0]
    with torch.no_grad():
        logits = network.model(**network.encode([context])).logits[0, -1].float()
    expected = (logits / 2.0).softmax(-1)
    from models import inference

    chosen = inference._choose(logits.expand(4000, -1), 2.0, torch.Generator().manual_seed(0))
    counts = torch.bincount(chosen, minlength=len(expected))
    spread = (4000 * expected * (1 - expected)).sqrt().clamp(min=1)
    assert ((counts - 4000 * expected).abs() / spread).max() < 5


def test_the_same_seed_gives_the_same_samples(network: Network) -> None:
    draws = [sample(network, contexts(), 5, 1.0, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]
    assert [len(answers) for answers in draws[0]] == [5, 5, 5]


def test_candidates_of_one_element_are_merged() -> None:
    observation = contexts()[0].observation
    answers = [
        'click button "b0" 20,5',
        'click button "b0" 21,6',
        'click button "b0" 20,5',
        "wait",
        "nonsense",
        "wait extra",
    ]
    found = merge(answers, observation)
    assert [(str(candidate.action), candidate.count) for candidate in found] == [
        ('click button "b0" 20,5', 3),
        ("wait", 1),
    ]


def test_an_untrained_agent_may_have_nothing_to_propose(network: Network) -> None:
    proposals = Agent(network).propose(contexts(), 3, 1.0, "a seed")
    assert len(proposals) == 3
    for candidates in proposals:
        assert all(isinstance(candidate.action, Action) for candidate in candidates)
