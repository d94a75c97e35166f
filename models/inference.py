"""Generation and scoring: the prefix of a step is encoded once, its samples and candidates branch off it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.engine import MAX_ANSWER_TOKENS, seed_number
from models.network import Network
from models.prompts import Context


class TorchEngine:
    """A network in this process."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def sample(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = ""
    ) -> list[Counter[str]]:
        """See :class:`models.engine.Engine`."""
        return sample(self._network, contexts, samples, temperature, _generator(seed) if temperature else None)

    def score(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        """See :class:`models.engine.Engine`."""
        return score(self._network, contexts, answers)


def _generator(seed: str) -> torch.Generator:
    return torch.Generator().manual_seed(seed_number(seed))


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
) -> list[Counter[str]]:
    """``samples`` answers to each context, with how often each was drawn; the greedy one at temperature 0.

    Samples that agree so far are one row of the batch, and part where they differ: the draws are those of
    separate sampling, the cost that of the distinct beginnings.
    """
    prefix = _prefill(network, contexts)
    rows = [_Row(owner, (), samples) for owner in range(len(contexts))]
    answers: list[Counter[tuple[int, ...]]] = [Counter() for _ in contexts]
    hidden = prefix.last
    for place in range(MAX_ANSWER_TOKENS):
        drawn = _draw(network.head(hidden), rows, temperature, generator)
        for _, row in drawn:
            if row.tokens[-1] == network.end or place == MAX_ANSWER_TOKENS - 1:
                answers[row.owner][row.tokens] += row.count
        going = [(parent, row) for parent, row in drawn if row.tokens[-1] != network.end]
        if not going:
            break
        prefix.select(torch.tensor([parent for parent, _ in going]))
        rows = [row for _, row in going]
        column = torch.tensor([[row.tokens[-1]] for row in rows])
        hidden = _extend(network, prefix, column, torch.ones_like(column), prefix.lengths + place)[:, -1]
    return [Counter({network.text(tokens): count for tokens, count in found.items()}) for found in answers]


@dataclass(frozen=True, slots=True)
class _Row:
    """The samples of a context (its place is ``owner``) that agree on ``tokens`` so far: ``count`` of them."""

    owner: int
    tokens: tuple[int, ...]
    count: int


def _draw(
    logits: Tensor, rows: Sequence[_Row], temperature: float, generator: torch.Generator | None
) -> list[tuple[int, _Row]]:
    """The rows one token on: (the row each came from, the row). Each sample draws its own token."""
    drawn = []
    greedy = logits.argmax(-1).tolist()
    for place, row in enumerate(rows):
        counts = Counter({greedy[place]: row.count})
        if temperature:
            odds = (logits[place] / temperature).softmax(-1)
            counts = Counter(torch.multinomial(odds, row.count, replacement=True, generator=generator).tolist())
        drawn += [(place, _Row(row.owner, (*row.tokens, token), count)) for token, count in sorted(counts.items())]
    return drawn


@torch.inference_mode()
def score(network: Network, contexts: Sequence[Context], actions: Sequence[Sequence[str]]) -> list[list[float]]:
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
    logits = network.head(hidden[torch.arange(len(branches)), ends], network.verdicts)
    scores = iter(logits.softmax(-1)[:, 0].tolist())
    return [[next(scores) for _ in candidates] for candidates in actions]
