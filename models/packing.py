"""What the models learn from, packed: the steps of a trajectory and the answers to each are one tree of tokens.

Losses and gradients are those of a separate row for each answer (:mod:`models.tree`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from models.network import Network
from models.prompts import Context
from models.reading import Picture, features, plant, read
from models.tree import Forest


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
    ``ranking`` is the weight of putting right verdicts' branches before wrong ones', see :func:`judgement`.
    """

    context: Context
    branches: tuple[Branch, ...]
    among: tuple[int, ...] = ()
    ranking: float = 0.0


class _Target(NamedTuple):
    """A token to be predicted after a place of a tree, its weight, and the number of the sample it is of."""

    place: int
    token: int
    weight: float
    owner: int


def imitation(network: Network, context: Context, action: str) -> Sample:
    """Predict every token of the action, and that it ends there."""
    tokens = network.answer_tokens(action)
    return Sample(context, (Branch(tuple(tokens), tuple((place - 1, token) for place, token in enumerate(tokens))),))


def judgement(
    network: Network, context: Context, labelled: Sequence[tuple[str, bool, float]], ranking: float = 0.0
) -> Sample:
    """Predict the verdict after each (action, label, weight): ``<|+|>`` where the label is true, ``<|-|>`` where not.

    The likelihood is shared between the two, so that the loss is that of the score itself: no training goes into
    making the rest of the vocabulary unlikely (docs/decisions/0002-one-prompt-for-both-models.md).

    ``ranking`` is the weight of a listwise loss among the actions, which is what a search makes of scores: with margins
    m = logit(<|+|>) - logit(<|-|>), minus the log of the share of exp(m) that the right ones have (ListNet's top-one
    probability, Cao et al. 2007, with several that are right).
    """
    positive, negative = network.verdicts
    branches = []
    for action, label, weight in labelled:
        tokens = network.answer_tokens(action)
        branches.append(Branch(tuple(tokens), ((len(tokens) - 1, positive if label else negative),), weight))
    return Sample(context, tuple(branches), network.verdicts, ranking)


def loss(network: Network, samples: Sequence[Sample]) -> Tensor:
    """Weighted mean negative log-likelihood of the batch's targets (UI-Genie, section 3.2, for verdicts).

    That of answers and that of verdicts are added where there are both, and so is the mean ranking loss of the samples
    that have one. Samples of the same context share all of its prompt.
    """
    album: dict[bytes, Picture] = {}
    trees, ends = plant(read(network, [sample.context for sample in samples], album))
    wanted: list[list[_Target]] = [[] for _ in trees]
    for number, (sample, (row, end)) in enumerate(zip(samples, ends, strict=True)):
        for branch in sample.branches:
            said = [*trees[row].say(end, branch.tokens), end]  # the last of which is at -1
            wanted[row] += [_Target(said[place], token, branch.weight, number) for place, token in branch.targets]
    states, shown = [], features(album)
    for tree, found in zip(trees, wanted, strict=True):  # one at a time: padding costs what tokens cost
        forest = Forest(network, [tree], shown)
        forest.compute()
        states.append(forest.hidden([(0, target.place) for target in found]))
    hidden, targets = torch.cat(states), list(chain.from_iterable(wanted))
    total = hidden.new_zeros((), dtype=torch.float32)
    for among in dict.fromkeys(sample.among for sample in samples):
        mine = [place for place, target in enumerate(targets) if samples[target.owner].among == among]
        total = total + _loss_among(network.head(hidden[mine], among), [targets[place] for place in mine], samples)
    return total


def _loss_among(logits: Tensor, targets: Sequence[_Target], samples: Sequence[Sample]) -> Tensor:
    """The loss of targets that are of the same tokens."""
    among = samples[targets[0].owner].among
    tokens = [among.index(target.token) if among else target.token for target in targets]
    meant = torch.tensor(tokens, device=logits.device)
    shares = torch.tensor([target.weight for target in targets], device=logits.device)
    losses = functional.cross_entropy(logits, meant, reduction="none")
    owners = [target.owner for target in targets]
    return (losses * shares).sum() / shares.sum() + _ranking(logits, meant, owners, samples)


def _ranking(logits: Tensor, targets: Tensor, owners: Sequence[int], samples: Sequence[Sample]) -> Tensor:
    """The mean ranking loss of the samples that have right and wrong branches; 0 where there are none."""
    lost = []
    for number, sample in enumerate(samples):
        mine = [place for place, owner in enumerate(owners) if owner == number]
        right = targets[mine] == 0
        if sample.ranking and right.any() and not right.all():
            margins = logits[mine, 0] - logits[mine, 1]
            lost.append(sample.ranking * (margins.logsumexp(0) - margins[right].logsumexp(0)))
    return torch.stack(lost).mean() if lost else logits.new_zeros(())
