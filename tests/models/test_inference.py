from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import contexts, journey, pictures_seen

from models import inference
from models.drafts import GUESSED, guess
from models.engine import MAX_ANSWER_TOKENS, MIN_P
from models.inference import TorchEngine, _draw, _Row
from models.memory import Memory
from models.network import Network
from models.prompts import Context
from models.reading import Album, plant, read
from models.roles import Agent, merge
from models.tree import Forest

ACTIONS = [["wait", "complete", 'type "a longer one"'], ["complete"], ["scroll up", "wait"]]


def test_scores_do_not_depend_on_the_batch(network: Network) -> None:
    together = TorchEngine(network).score(contexts(), ACTIONS)
    for context, candidates, scores in zip(contexts(), ACTIONS, together, strict=True):
        for candidate, found in zip(candidates, scores, strict=True):
            ((alone,),) = TorchEngine(network).score([context], [[candidate]])
            assert found == pytest.approx(alone, abs=1e-5)


def test_contexts_without_candidates_have_no_scores(network: Network) -> None:
    assert TorchEngine(network).score(contexts(), [[], ["wait"], []])[::2] == [[], []]
    assert TorchEngine(network).score(contexts()[:1], [[]]) == [[]]


def own_likelihood(network: Network, context: Context, answer: str) -> float:
    """By a plain forward of the model, with no tree, no memory and no batch."""
    inputs, tokens = network.tensors(context), torch.tensor([network.answer_tokens(answer)])
    before = inputs["input_ids"].shape[1]
    for name, filler in (("input_ids", tokens), ("attention_mask", torch.ones_like(tokens))):
        inputs[name] = torch.cat([inputs[name], filler], dim=1)
    if "mm_token_type_ids" in inputs:
        inputs["mm_token_type_ids"] = torch.cat([inputs["mm_token_type_ids"], torch.zeros_like(tokens)], dim=1)
    with torch.inference_mode():
        logits = network.model(**inputs).logits[0, before - 1 : -1].log_softmax(-1)
    return float(logits.gather(1, tokens.T).mean())


def test_likelihoods_are_those_of_a_plain_forward(network: Network) -> None:
    expected = [
        [own_likelihood(network, context, answer) for answer in answers]
        for context, answers in zip(contexts(), ACTIONS, strict=True)
    ]
    found = TorchEngine(network).likelihood(contexts(), ACTIONS)
    assert found == [pytest.approx(row, abs=1e-4) for row in expected]
    assert len({round(value, 3) for row in found for value in row}) == 6


def test_likelihoods_along_a_trajectory_are_those_of_a_plain_forward(network: Network) -> None:
    engine = TorchEngine(network)
    for context in journey(5):
        expected = [own_likelihood(network, context, answer) for answer in ACTIONS[0]]
        assert engine.likelihood([context], [ACTIONS[0]]) == [pytest.approx(expected, abs=1e-4)]


def own_answer(network: Network, context: Context) -> str:
    """By transformers' own generate."""
    inputs = network.tensors(context)
    kept = {"max_new_tokens": MAX_ANSWER_TOKENS, "eos_token_id": network.end, "do_sample": False}
    output = network.model.generate(**inputs, **kept)
    return network.said(output[0, inputs["input_ids"].shape[1] :].tolist())


def test_an_answer_ends_by_its_token_or_when_it_is_too_long(network: Network) -> None:
    """A token a letter: 40 that are not in quotes, or 128 in all; quotes that are not closed hold the rest."""
    tokens = network.processor.tokenizer.encode

    def length(answer: str) -> int:
        return len(network.said(tokens(answer)))

    assert network.said([*tokens("wait"), network.end, *tokens("ing")]) == "wait"
    assert length("no" * 80) == 40
    assert length('click "' + "a" * 50 + '" 540,1200' + "0" * 80) == 40 + 52
    assert length('type "' + "a" * 200) == 128
    assert length('type "a\\"' + "b" * 200) == 128  # a quote within quotes


def test_greedy_answers_are_those_of_generate(network: Network) -> None:
    answers = TorchEngine(network).sample(contexts(), 3, 0.0)
    assert answers == [{own_answer(network, context): 3} for context in contexts()]


def test_answers_along_a_trajectory_are_those_of_generate(network: Network) -> None:
    """Each step goes on from what is remembered of the one before, eight steps: beyond the window."""
    engine = TorchEngine(network)
    for context in journey(8):
        assert engine.sample([context], 1, 0.0) == [{own_answer(network, context): 1}]


def test_scores_along_a_trajectory_are_those_without_memory(network: Network) -> None:
    engine, path = TorchEngine(network), journey(12)
    at_once = TorchEngine(network).score(path, [ACTIONS[0]] * 12)
    for context, together in zip(path, at_once, strict=True):
        (alone,) = TorchEngine(network).score([context], [ACTIONS[0]])
        assert engine.score([context], [ACTIONS[0]])[0] == pytest.approx(alone, abs=1e-5)
        assert together == pytest.approx(alone, abs=1e-5)


def test_paths_that_part_go_on_from_what_they_share(network: Network) -> None:
    """As in a beam: two paths side by side, one of which began later, and a third goal between them."""
    engine, first, second = TorchEngine(network), journey(5), journey(9)[3:8]
    for left, right in zip(first, second, strict=True):
        batch = [left, contexts()[2], right, left]
        expected = [TorchEngine(network).score([context], [ACTIONS[0]])[0] for context in batch]
        for found, alone in zip(engine.score(batch, [ACTIONS[0]] * 4), expected, strict=True):
            assert found == pytest.approx(alone, abs=1e-5)


def test_only_what_is_new_is_computed(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens that go through the language model, and pictures through the vision tower."""
    computed, seen = [], pictures_seen(network)
    hidden = Network.hidden
    width = lambda inputs: inputs["inputs_embeds"].shape[1]  # noqa: E731
    monkeypatch.setattr(Network, "hidden", lambda self, **rest: computed.append(width(rest)) or hidden(self, **rest))
    engine, path = TorchEngine(network), journey(6)
    prompts = read(network, path, Album())
    seen.clear()
    for context in path:
        engine.score([context], [["wait"]])
    answer = len(network.answer_tokens("wait"))
    assert computed == [len(prompt.trunk[-1]) + len(prompt.twig) + answer for prompt in prompts]
    assert seen == [1] * 6

    computed.clear()
    engine.fresh().score(path, [["wait"]] * 6)
    assert computed == [len(plant(prompts)[0][0]) + 6 * answer]
    assert seen == [1] * 6 + [6]


def test_a_memory_that_is_full_starts_anew(network: Network) -> None:
    engine, small = TorchEngine(network), TorchEngine(network)
    small._memory = Memory(network, limit=20_000)
    held = []
    for context in journey(12):
        (expected,) = engine.score([context], [ACTIONS[0]])
        assert small.score([context], [ACTIONS[0]])[0] == pytest.approx(expected, abs=1e-5)
        held.append(small._memory.bytes)
    assert max(held) < engine._memory.bytes


def test_what_a_full_memory_still_knows_is_not_seen_again(network: Network) -> None:
    """It forgets at every step, but for the prompt in hand, which the next one begins with."""
    small, seen = TorchEngine(network), pictures_seen(network)
    small._memory = Memory(network, limit=0)
    for context in journey(6):
        small.score([context], [["wait"]])
    assert seen == [1] * 6


def test_what_a_fresh_engine_gives_depends_on_nothing_before(network: Network) -> None:
    engine = TorchEngine(network)
    first = [engine.fresh().score(journey(8), [ACTIONS[0]] * 8), engine.fresh().sample(journey(3), 5, 1.0, "x")]
    engine.score(contexts(), ACTIONS)
    assert [engine.fresh().score(journey(8), [ACTIONS[0]] * 8), engine.fresh().sample(journey(3), 5, 1.0, "x")] == first


def test_shared_rows_draw_what_separate_rows_would() -> None:
    """4,000 samples in three rows against the softmax of their logits, the unlikely left out: within 5 sigma."""
    logits = torch.randn(3, 12, generator=torch.Generator().manual_seed(1))
    rows = [_Row(0, (7,), 1500, 0.7), _Row(0, (8,), 500, 0.7), _Row(1, (7,), 2000, 0.7)]
    drawn = _draw(logits, rows, torch.Generator().manual_seed(0))
    assert len({(row.owner, row.tokens) for _, row in drawn}) == len(drawn)
    for place, parent in enumerate(rows):
        children = {row.tokens[-1]: row.count for at, row in drawn if at == place}
        assert sum(children.values()) == parent.count
        odds = (logits[place] / 0.7).softmax(-1)
        kept = odds >= MIN_P * odds.max()
        assert 1 < kept.sum() < 12
        assert set(children) <= set(kept.nonzero().flatten().tolist())
        odds = odds * kept / odds[kept].sum()
        for token, share in enumerate(odds.tolist()):
            sigma = (parent.count * share * (1 - share)) ** 0.5
            assert abs(children.get(token, 0) - parent.count * share) < 5 * sigma + 1


def test_the_same_seed_gives_the_same_samples(network: Network) -> None:
    draws = [TorchEngine(network).sample(contexts(), 5, 1.0, seed) for seed in "aab"]
    assert draws[0] == draws[1] != draws[2]
    assert [answers.total() for answers in draws[0]] == [5, 5, 5]


def test_answers_that_spell_the_same_count_together(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = TorchEngine(network).sample(contexts(), 8, 1.0, "a")
    assert max(len(answers) for answers in apart) > 1
    monkeypatch.setattr(Network, "text", lambda _, tokens: "wait")
    assert TorchEngine(network).sample(contexts(), 8, 1.0, "a") == [Counter({"wait": 8})] * 3


def test_one_of_the_samples_may_be_the_likeliest_answer(network: Network) -> None:
    whole = TorchEngine(network).sample(contexts(), 5, 1.0, "a", likeliest=True)
    drawn = TorchEngine(network).sample(contexts(), 4, 1.0, "a")
    greedy = TorchEngine(network).sample(contexts(), 1, 0.0)
    assert whole == [one + more for one, more in zip(greedy, drawn, strict=True)]
    assert TorchEngine(network).sample(contexts(), 1, 1.0, "a", likeliest=True) == greedy


def test_a_guess_is_what_the_prompt_last_said_after_the_same_words() -> None:
    prompt = np.array([5, 1, 2, 3, 9, 1, 2, 4, 8, 2, 7])
    assert guess(prompt, (6, 1, 2)) == [4, 8, 2, 7]
    assert guess(prompt, (9, 2)) == [7], "the last word alone is in it"
    assert guess(prompt, (7,)) == guess(prompt, (1, 6)) == []
    assert guess(np.arange(100), (3, 4)) == list(range(5, 5 + GUESSED))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_guessed_right_needs_no_pass_and_what_is_guessed_wrong_changes_nothing(
    network: Network, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    context, passes, heard = contexts()[1], [0], [()]
    compute = Forest.compute

    def counted(forest: Forest) -> None:
        passes[-1] += 1
        compute(forest)

    def sampled(guessed: Callable[[np.ndarray, tuple[int, ...]], list[int]]) -> list[Counter[str]]:
        monkeypatch.setattr(inference, "guess", guessed)
        passes.append(0)
        return TorchEngine(network).sample([context], 1, temperature, "a")

    def unguessed(_: np.ndarray, said: tuple[int, ...]) -> list[int]:
        heard.append(said)
        return []

    monkeypatch.setattr(Forest, "compute", counted)
    plain = sampled(unguessed)
    whole = heard[-1]
    assert len(whole) > 2 * GUESSED
    assert sampled(lambda _, said: list(whole[len(said) :][:GUESSED])) == plain
    assert sampled(lambda _, said: [token ^ 1 for token in whole[len(said) :][:GUESSED]]) == plain
    assert passes[1] == passes[3]
    assert passes[2] <= 2 + passes[1] // GUESSED


def test_equal_contexts_draw_each_for_itself(network: Network) -> None:
    context = contexts()[1]
    first, second = TorchEngine(network).sample([context, context], 8, 1.0, "a")
    assert first.total() == second.total() == 8
    assert first != second


def test_candidates_of_one_element_are_merged() -> None:
    observation = contexts()[0].observation
    answers = {'click button "b0" 20,5': 2, 'click button "b0" 21,6': 1, "wait": 1, "nonsense": 4, "wait extra": 1}
    answers |= {'click button "b0" 45,5': 3, 'click button "b0" 20,52': 1, 'type "June" 61,88': 2, 'type "June"': 1}
    found = merge(answers, observation)
    assert [(str(candidate.action), candidate.count) for candidate in found] == [
        ('click button "b0" 20,5', 3),
        ('type "June"', 3),
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


def test_clicks_near_each_other_are_one_where_no_element_is_known() -> None:
    """A fiftieth of the diagonal of 40 x 52 pixels is 1.3."""
    observation = replace(contexts()[0].observation, elements=())
    answers = {'click text "" 20,20': 3, 'click text "" 21,20': 2, 'click text "" 20,19': 1, 'click text "" 22,20': 2}
    found = merge(answers | {'long_press text "" 20,20': 1}, observation)
    assert [(str(candidate.action), candidate.count) for candidate in found] == [
        ('click text "" 20,20', 6),
        ('click text "" 22,20', 2),
        ('long_press text "" 20,20', 1),
    ]


def test_an_untrained_agent_has_nothing_to_propose(network: Network) -> None:
    """The tiny network says nonsense, some of it, and none of it is an action."""
    engine = TorchEngine(network)
    assert all(sum(texts.values()) == 3 for texts in engine.sample(contexts(), 3, 1.0, "a seed", False))
    assert Agent(engine).propose(contexts(), 3, 1.0, "a seed") == [[], [], []]
