"""Generation and scoring: the prefix of a step is encoded once, its samples and candidates branch off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.network import Network
from models.prompts import Context

MAX_ANSWER_TOKENS = 40


@dataclass
class _Prefix:
    """Encoded prompts: their cache, the last hidden state (batch, width), mask and lengths (batch,)."""

    cache: Any
    last: Tensor
    mask: Tensor
    lengths: Tensor

    def select(self, rows: Tensor) -> None:
        """Keep these rows, repeats allowed: each becomes a branch of its own."""
        self.cache.batch_select_indices(rows)
        self.last, self.mask, self.lengths = self.last[rows], self.mask[rows], self.lengths[rows]


def _prefill(network: Network, contexts: Sequence[Context]) -> _Prefix:
    inputs = network.encode(contexts)
    mask = inputs["attention_mask"]
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    output = network.hidden(**inputs, position_ids=positions, use_cache=True)
    return _Prefix(output.past_key_values, output.last_hidden_state[:, -1], mask, mask.sum(-1))


def _extend(network: Network, prefix: _Prefix, tokens: Tensor, mask: Tensor, start: Tensor) -> Tensor:
    """Hidden states (rows, tokens, width) of ``tokens`` put after the prefix, first at position ``start`` (rows,)."""
    prefix.mask = torch.cat([prefix.mask, mask], dim=-1)
    positions = start[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
    output = network.hidden(
        input_ids=tokens,
        attention_mask=prefix.mask,
        position_ids=positions,
        past_key_values=prefix.cache,
        use_cache=True,
    )
    hidden: Tensor = output.last_hidden_state
    return hidden


@torch.inference_mode()
def sample(
    network: Network,
    contexts: Sequence[Context],
    samples: int,
    temperature: float,
    generator: torch.Generator | None,
) -> list[list[str]]:
    """``samples`` answers to each context; greedy when the temperature is 0.

    Returns:
        One list of answers per context, without the token that ends them.
    """
    prefix = _prefill(network, contexts)
    prefix.select(torch.arange(len(contexts)).repeat_interleave(samples))
    answers: list[list[int]] = [[] for _ in range(len(contexts) * samples)]
    rows, hidden = torch.arange(len(answers)), prefix.last
    for place in range(MAX_ANSWER_TOKENS):
        chosen = _choose(network.head(hidden), temperature, generator)
        for row, token in zip(rows.tolist(), chosen.tolist(), strict=True):
            answers[row].append(token)
        going = (chosen != network.end).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(rows):
            prefix.select(going)
            rows, chosen = rows[going], chosen[going]
        column = chosen[:, None]
        hidden = _extend(network, prefix, column, torch.ones_like(column), prefix.lengths + place)[:, -1]
    texts = network.processor.tokenizer.batch_decode(answers, skip_special_tokens=True)
    return [texts[at : at + samples] for at in range(0, len(texts), samples)]


def _choose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]


@torch.inference_mode()
def score(
    network: Network, contexts: Sequence[Context], actions: Sequence[Sequence[str]]
) -> list[list[float]]:
    """p(+) / (p(+) + p(-)) of each candidate action of each context, in 0..1 (UI-Genie, section 3.2)."""
    rows = [row for row, candidates in enumerate(actions) for _ in candidates]
    branches = [network.answer_tokens(action) for candidates in actions for action in candidates]
    prefix = _prefill(network, contexts)
    prefix.select(torch.tensor(rows))
    width = max(map(len, branches))
    tokens = torch.tensor([[*branch, *[network.end] * (width - len(branch))] for branch in branches])
    ends = torch.tensor([len(branch) - 1 for branch in branches])
    mask = (torch.arange(width) <= ends[:, None]).long()
    hidden = _extend(network, prefix, tokens, mask, prefix.lengths)
    logits = network.head(hidden[torch.arange(len(branches)), ends])[:, list(network.verdicts)]
    scores = iter(torch.sigmoid(logits[:, 0] - logits[:, 1]).tolist())
    return [[next(scores) for _ in candidates] for candidates in actions]
