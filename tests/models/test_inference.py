from __future__ import annotations

import pytest
import torch
from tiny import contexts

from environments.types import Action
from models.engine import MAX_ANSWER_TOKENS
from models.inference import TorchEngine, _draw, _Row, sample, score
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
    for context, found in zip(contexts(), answers, strict=True):
        ((answer, _),) = found.items()
        inputs = network.encode([context])
        output = network.model.generate(**inputs, max_new_tokens=MAX_ANSWER_TOKENS, do_sample=False)
        tokens = output[0, inputs["input_ids"].shape[1] :]
        assert answer == network.processor.tokenizer.decode(tokens, skip_special_tokens=True)


def test_shared_rows_draw_what_separate_rows_would() -> None:
    """4,000 samples in three rows against the softmax of their logits: every cell within 5 sigma."""
    logits = torch.randn(3, 12, generator=torch.Generator().manual_seed(1))
    rows = [_Row(0, (7,), 1500), _Row(0, (8,), 500), _Row(1, (7,), 2000)]
    drawn = _draw(logits, rows, 0.7, torch.Generator().manual_seed(0))
    assert len({(row.owner, row.tokens) for _, row in drawn}) == len(drawn)
    for place, parent in enumerate(rows):
        children = {row.tokens[-1]: row.count for at, row in drawn if at == place}
        assert sum(children.values()) == parent.count
        odds = (logits[place] / 0.7).softmax(-1)
        for token, share in enumerate(odds.tolist()):
            sigma = (parent.count * share * (1 - share)) ** 0.5
            assert abs(children.get(token, 0) - parent.count * share) < 5 * sigma + 1


def test_the_same_seed_gives_the_same_samples(network: Network) -> None:
    draws = [sample(network, contexts(), 5, 1.0, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]
    assert [answers.total() for answers in draws[0]] == [5, 5, 5]


def test_candidates_of_one_element_are_merged() -> None:
    observation = contexts()[0].observation
    answers = {'click button "b0" 20,5': 2, 'click button "b0" 21,6': 1, "wait": 1, "nonsense": 4, "wait extra": 1}
    answers |= {'click button "b0" 45,5': 3, 'click button "b0" 20,52': 1}
    found = merge(answers, observation)
    assert [(str(candidate.action), candidate.count) for candidate in found] == [
        ('click button "b0" 20,5', 3),
        ("wait", 1),
    ]


def test_gestures_on_one_element_are_merged_by_what_they_do() -> None:
    observation = contexts()[0].observation
    answers = {f'{gesture} button "b0" 20,5': 1 for gesture in ("click", "long_press", "swipe up", "swipe left")}
    answers |= {'long_press button "b0" 21,6': 2, 'swipe left button "b0" 21,6': 3, 'swipe up button "b0" 45,5': 9}
    found = merge(answers, observation)
    assert [(str(candidate.action), candidate.count) for candidate in found] == [
        ('swipe left button "b0" 21,6', 4),
        ('long_press button "b0" 21,6', 3),
        ('click button "b0" 20,5', 1),
        ('swipe up button "b0" 20,5', 1),
    ]


def test_an_untrained_agent_may_have_nothing_to_propose(network: Network) -> None:
    proposals = Agent(TorchEngine(network)).propose(contexts(), 3, 1.0, "a seed")
    assert len(proposals) == 3
    for candidates in proposals:
        assert all(isinstance(candidate.action, Action) for candidate in candidates)
