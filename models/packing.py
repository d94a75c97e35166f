"""Shared-prefix training: a prompt is encoded once, and every answer to it branches off.

A row of a batch is ``[padding, prompt, branch, branch, ...]``. A branch sees the prompt and itself, never its
siblings, and its positions go on from the prompt's end; so losses and gradients are those of separate rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from models.network import Network
from models.prompts import Context


@dataclass(frozen=True, slots=True)
class Branch:
    """Tokens put after a prompt, and what is to be predicted.

    ``targets`` are (place, token): the token to be predicted after ``tokens[place]``; place -1 is the prompt's end.
    ``weight`` is that of each of them in the loss.
    """

    tokens: tuple[int, ...]
    targets: tuple[tuple[int, int], ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A context and the branches trained on it.

    ``among`` are the tokens a target is one of, between which the likelihood is shared; empty for all tokens.
    """

    context: Context
    branches: tuple[Branch, ...]
    among: tuple[int, ...] = ()


def imitation(network: Network, context: Context, action: str) -> Sample:
    """Predict every token of the action, and that it ends there."""
    tokens = network.answer_tokens(action)
    return Sample(context, (Branch(tuple(tokens), tuple((place - 1, token) for place, token in enumerate(tokens))),))


def judgement(network: Network, context: Context, labelled: Sequence[tuple[str, bool, float]]) -> Sample:
    """Predict the verdict after each (action, label, weight): ``<|+|>`` where the label is true, ``<|-|>`` where not.

    The likelihood is shared between the two, so that the loss is that of the score itself: no training goes into
    making the rest of the vocabulary unlikely (docs/decisions/0002-one-prompt-for-both-models.md).
    """
    positive, negative = network.verdicts
    branches = []
    for action, label, weight in labelled:
        tokens = network.answer_tokens(action)
        branches.append(Branch(tuple(tokens), ((len(tokens) - 1, positive if label else negative),), weight))
    return Sample(context, tuple(branches), network.verdicts)


def loss(network: Network, samples: Sequence[Sample]) -> Tensor:
    """Weighted mean negative log-likelihood of the batch's targets (UI-Genie, section 3.2, for verdicts).

    Raises:
        ValueError: when the samples choose among different tokens.
    """
    if len({sample.among for sample in samples}) > 1:
        raise ValueError("a batch holds samples of one kind: answers or verdicts")
    among = samples[0].among
    inputs = network.encode([sample.context for sample in samples])
    prompt_mask = inputs.pop("attention_mask").bool()
    prompt_ids = inputs.pop("input_ids")
    tail = [[token for branch in sample.branches for token in branch.tokens] for sample in samples]
    width = max(map(len, tail))
    tail_ids = torch.tensor([[*tokens, *[network.end] * (width - len(tokens))] for tokens in tail])
    owner, offset = _layout(samples, width)
    hidden = network.hidden(
        **inputs,
        input_ids=torch.cat([prompt_ids, tail_ids.to(prompt_ids)], dim=1),
        attention_mask=_visible(prompt_mask, owner.to(prompt_ids), network.model.dtype),
        position_ids=_positions(prompt_mask, offset.to(prompt_ids)),
        use_cache=False,
    ).last_hidden_state
    rows, columns, targets, weights = _targets(samples, prompt_ids.shape[1])
    wanted = torch.tensor([among.index(target) for target in targets] if among else targets, device=hidden.device)
    losses = functional.cross_entropy(network.head(hidden[rows, columns], among), wanted, reduction="none")
    shares = torch.tensor(weights, device=hidden.device)
    return (losses * shares).sum() / shares.sum()


def _layout(samples: Sequence[Sample], width: int) -> tuple[Tensor, Tensor]:
    """For each tail place (batch, width): the branch it belongs to (-1 for padding) and its place in the branch."""
    owner = torch.full((len(samples), width), -1)
    offset = torch.zeros((len(samples), width), dtype=torch.long)
    for row, sample in enumerate(samples):
        start = 0
        for index, branch in enumerate(sample.branches):
            stop = start + len(branch.tokens)
            owner[row, start:stop] = index
            offset[row, start:stop] = torch.arange(stop - start)
            start = stop
    return owner, offset


def _visible(prompt: Tensor, owner: Tensor, dtype: torch.dtype) -> Tensor:
    """Additive mask (batch, 1, places, places): 0 where a place is seen, the dtype's minimum where it is not.

    A place sees earlier real prompt places and earlier places of its own branch. Padding sees itself alone,
    so that no row of the softmax is empty.
    """
    group = torch.cat([torch.where(prompt, -2, -1), owner], dim=1)
    places = group.shape[1]
    earlier = torch.ones(places, places, dtype=torch.bool, device=group.device).tril()
    of_prompt = (group == -2)[:, None, :]
    same = group[:, :, None] == group[:, None, :]
    real = (group != -1)[:, :, None] & (group != -1)[:, None, :]
    itself = torch.eye(places, dtype=torch.bool, device=group.device)
    seen = (earlier & real & (of_prompt | same)) | itself
    return torch.zeros(seen.shape, dtype=dtype, device=group.device).masked_fill(~seen, torch.finfo(dtype).min)[:, None]


def _positions(prompt: Tensor, offset: Tensor) -> Tensor:
    within = (prompt.long().cumsum(-1) - 1).clamp(min=0)
    return torch.cat([within, prompt.long().sum(-1, keepdim=True) + offset], dim=1)


def _targets(samples: Sequence[Sample], prompt_width: int) -> tuple[list[int], list[int], list[int], list[float]]:
    rows, columns, targets, weights = [], [], [], []
    for row, sample in enumerate(samples):
        start = prompt_width
        for branch in sample.branches:
            for place, token in branch.targets:
                rows.append(row)
                columns.append(prompt_width - 1 if place < 0 else start + place)
                targets.append(token)
                weights.append(branch.weight)
            start += len(branch.tokens)
    return rows, columns, targets, weights
