"""What the models learn from, packed: the steps of a trajectory and the answers to each are one tree of tokens.

Losses and gradients are those of a separate row for each answer (:mod:`models.tree`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from models.network import Network
from models.prompts import Context
from models.reading import Album, plant, read
from models.tree import Forest, Tree


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
    ``ranking`` is the weight of putting right verdicts' branches before wrong ones', see :func:`judgement`; ``beta``
    is that of :func:`preference`, and ``reference`` the log-likelihoods of the branches before training.
    """

    context: Context
    branches: tuple[Branch, ...]
    among: tuple[int, ...] = ()
    ranking: float = 0.0
    beta: float = 0.0
    reference: tuple[float, ...] = ()


class _Target(NamedTuple):
    """A token to be predicted after a place of a tree, its weight, and the numbers of its sample and branch."""

    place: int
    token: int
    weight: float
    owner: int
    branch: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples laid out, to be computed once: forests with the numbers of their trees, and the targets of each tree."""

    samples: tuple[Sample, ...]
    forests: list[tuple[list[int], Forest]]
    targets: list[list[_Target]]
    album: Album


@dataclass(frozen=True, slots=True)
class _Computed:
    """Targets, and the states (targets, width) from which they are predicted."""

    targets: tuple[_Target, ...]
    states: Tensor


@dataclass(slots=True)
class _Counts:
    """What means are over, of a batch's targets that are of the same tokens.

    ``weight`` is that of all of them, ``ranked`` and ``preferred`` are the samples with a ranking or preference loss.
    """

    weight: float = 0.0
    ranked: int = 0
    preferred: int = 0


def imitation(network: Network, context: Context, action: str) -> Sample:
    """Predict every token of the action, and that it ends there."""
    return Sample(context, (_answer(network, action, 1.0),))


def preference(network: Network, context: Context, right: str, wrong: Sequence[str], beta: float) -> Sample:
    """Prefer one action to others, by direct preference optimisation (Rafailov et al. 2023, equation 7).

    The loss is the mean over the wrong ones of -log sigmoid(beta * (gain(right) - gain(wrong))), an action's gain being
    the log of how much likelier it is than before training: see :func:`referred`, without which there is no loss.
    """
    return Sample(context, tuple(_answer(network, action, 0.0) for action in (right, *wrong)), beta=beta)


def referred(network: Network, samples: Sequence[Sample]) -> list[Sample]:
    """Samples whose preferences are measured from the network as it is now."""
    return [
        replace(sample, reference=log_likelihoods(network, [sample])[0]) if sample.beta else sample
        for sample in samples
    ]


@torch.inference_mode()
def log_likelihoods(network: Network, samples: Sequence[Sample]) -> list[tuple[float, ...]]:
    """Of each sample those of its branches: of all targets of a branch together, each among all tokens."""
    batch, found = lay(network, samples), {}
    with network.autocast():
        for rows, forest in batch.forests:
            computed = _compute(batch, rows, forest)
            surprise = _surprise(network.head(computed.states), computed.targets, ())
            for number, mine in _by_sample(computed.targets).items():
                said = [computed.targets[place] for place in mine]
                found[number] = tuple(_likelihoods(-surprise[mine], said).tolist())
    return [found[number] for number in range(len(samples))]


def _answer(network: Network, action: str, weight: float) -> Branch:
    tokens = network.answer_tokens(action)
    return Branch(tuple(tokens), tuple((place - 1, token) for place, token in enumerate(tokens)), weight)


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
    """That of samples which are not laid out yet, see :func:`loss_of`."""
    return loss_of(network, lay(network, samples))


def loss_of(network: Network, batch: Batch) -> Tensor:
    """Weighted mean negative log-likelihood of the batch's targets (UI-Genie, section 3.2, for verdicts).

    That of answers and that of verdicts are added where there are both, and so are the mean ranking loss and the mean
    preference loss of the samples that have one. Samples of the same context share all of its prompt.
    """
    return torch.stack(list(_parts(network, batch))).sum()


def learn(network: Network, batch: Batch) -> Tensor:
    """The loss of :func:`loss_of` without its graph: the weights have the gradient already.

    It is a sum over the forests. Each has done its part of the gradient before the next is computed, so that the
    activations of one alone are held.
    """
    seen: list[tuple[Tensor, Tensor]] = []
    parts = []
    for part in _parts(network, batch, seen):
        parts.append(part.detach())
        if part.requires_grad:
            _backward([part])
    handed = [(features, kept) for features, kept in seen if kept.grad is not None]
    if handed:
        _backward([features for features, _ in handed], [kept.grad for _, kept in handed])
    return torch.stack(parts).sum()


def _backward(ends: Sequence[Tensor], gradients: Sequence[Tensor | None] | None = None) -> None:
    """In the types of the way forward: under autocast, what was multiplied in float32 would be in bfloat16."""
    with torch.autocast(ends[0].device.type, enabled=False):
        torch.autograd.backward(ends, gradients)


def _parts(network: Network, batch: Batch, seen: list[tuple[Tensor, Tensor]] | None = None) -> Iterator[Tensor]:
    """What each forest adds to the loss.

    ``seen``, if given, gets the features of pictures that are trained too, see :meth:`Album.cut_off`: forests may share
    them.
    """
    counts = _counted(batch)
    for rows, forest in batch.forests:
        if seen is not None:
            seen += batch.album.cut_off(network, forest.pictures)
        computed = _compute(batch, rows, forest)
        part = computed.states.new_zeros((), dtype=torch.float32)
        for among, count in counts.items():
            mine = [place for place, one in enumerate(computed.targets) if batch.samples[one.owner].among == among]
            if mine:
                logits = network.head(computed.states[mine], among)
                part = part + _loss_among(logits, [computed.targets[place] for place in mine], batch.samples, count)
        yield part


def _counted(batch: Batch) -> dict[tuple[int, ...], _Counts]:
    """What means are over, by the tokens that targets are of."""
    counts: dict[tuple[int, ...], _Counts] = {}
    targets = list(chain.from_iterable(batch.targets))
    for number, places in _by_sample(targets).items():
        sample, mine = batch.samples[number], [targets[place] for place in places]
        count = counts.setdefault(sample.among, _Counts())
        count.weight += sum(target.weight for target in mine)
        count.ranked += _is_ranked(sample, mine)
        count.preferred += bool(sample.reference)
    return counts


def _is_ranked(sample: Sample, targets: Sequence[_Target]) -> bool:
    """Whether it has right branches and wrong ones, to be put in order."""
    return bool(sample.ranking) and len({target.token == sample.among[0] for target in targets}) == 2


def lay(network: Network, samples: Sequence[Sample]) -> Batch:
    """Read the samples and lay them out: all of a loss that no device is needed for."""
    album = Album()
    trees, ends = plant(read(network, [sample.context for sample in samples], album))
    targets: list[list[_Target]] = [[] for _ in trees]
    for number, (sample, (row, end)) in enumerate(zip(samples, ends, strict=True)):
        for which, branch in enumerate(sample.branches):
            said = [*trees[row].say(end, branch.tokens), end]  # the last of which is at -1
            targets[row] += [_Target(said[at], token, branch.weight, number, which) for at, token in branch.targets]
    groups = _abreast(trees, network.abreast) if network.abreast else [[row] for row in range(len(trees))]
    forests = [(rows, Forest(network, [trees[row] for row in rows], album)) for rows in groups]
    for _, forest in forests:
        forest.lay()
    return Batch(tuple(samples), forests, targets, album)


def _compute(batch: Batch, rows: Sequence[int], forest: Forest) -> _Computed:
    """A forest of the batch, whose trees have the numbers ``rows``."""
    forest.compute()
    places = [(at, target.place) for at, row in enumerate(rows) for target in batch.targets[row]]
    return _Computed(tuple(target for row in rows for target in batch.targets[row]), forest.hidden(places))


def _abreast(trees: Sequence[Tree], most: int) -> list[list[int]]:
    """The numbers of trees that are computed at once: like with like, ``most`` tokens with padding or a single tree."""
    groups: list[list[int]] = []
    for row in sorted(range(len(trees)), key=lambda row: len(trees[row])):
        if not groups or (len(groups[-1]) + 1) * len(trees[row]) > most:
            groups.append([])
        groups[-1].append(row)
    return groups


def _loss_among(logits: Tensor, targets: Sequence[_Target], samples: Sequence[Sample], count: _Counts) -> Tensor:
    """What targets, which are of the same tokens, add to the loss of all those that are counted."""
    among = samples[targets[0].owner].among
    losses = _surprise(logits, targets, among)
    shares = torch.tensor([target.weight for target in targets], device=logits.device)
    mean = (losses * shares).sum() / count.weight if count.weight else logits.new_zeros(())
    ranking, preference = _ranking(logits, targets, samples), _preference(losses, targets, samples)
    return mean + ranking / max(1, count.ranked) + preference / max(1, count.preferred)


def _surprise(logits: Tensor, targets: Sequence[_Target], among: tuple[int, ...]) -> Tensor:
    """The negative log-likelihood of each target."""
    tokens = [among.index(target.token) if among else target.token for target in targets]
    return functional.cross_entropy(logits, torch.tensor(tokens, device=logits.device), reduction="none")


def _ranking(logits: Tensor, targets: Sequence[_Target], samples: Sequence[Sample]) -> Tensor:
    """The ranking losses of the samples that have right and wrong branches, added up."""
    lost = [logits.new_zeros(())]
    for number, mine in _by_sample(targets).items():
        sample, said = samples[number], [targets[place] for place in mine]
        if _is_ranked(sample, said):
            right = torch.tensor([target.token == sample.among[0] for target in said], device=logits.device)
            margins = logits[mine, 0] - logits[mine, 1]
            lost.append(sample.ranking * (margins.logsumexp(0) - margins[right].logsumexp(0)))
    return torch.stack(lost).sum()


def _preference(losses: Tensor, targets: Sequence[_Target], samples: Sequence[Sample]) -> Tensor:
    """The preference losses of the samples that have a reference, added up."""
    lost = [losses.new_zeros(())]
    for number, mine in _by_sample(targets).items():
        sample = samples[number]
        if sample.reference:
            now = _likelihoods(-losses[mine], [targets[place] for place in mine])
            gains = now - now.new_tensor(sample.reference)
            lost.append(-functional.logsigmoid(sample.beta * (gains[0] - gains[1:])).mean())
    return torch.stack(lost).sum()


def _by_sample(targets: Sequence[_Target]) -> dict[int, list[int]]:
    """The places of each sample's targets, by its number."""
    places: dict[int, list[int]] = {}
    for place, target in enumerate(targets):
        places.setdefault(target.owner, []).append(place)
    return places


def _likelihoods(tokens: Tensor, targets: Sequence[_Target]) -> Tensor:
    """The log-likelihood of each branch of a sample, from those of its tokens."""
    branches = torch.tensor([target.branch for target in targets], device=tokens.device)
    return tokens.new_zeros(int(branches.max()) + 1).index_add(0, branches, tokens)
