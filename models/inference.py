"""Generation and scoring: what steps, samples and candidates have in common is encoded once, and remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from models.drafts import GUESSED, MOST, guess
from models.engine import MIN_P, parted, seed_number
from models.memory import Memory, Planted
from models.network import Network
from models.prompts import Context, opening
from models.tree import Tree

_Place = tuple[int, int]  # of a token: the row of its tree, and the place in the tree


class TorchEngine:
    """A network in this process. It goes on from prompts it has read before."""

    def __init__(self, network: Network) -> None:
        self._network, self._memory = network, Memory(network)

    def fresh(self) -> TorchEngine:
        """See :class:`models.engine.Engine`."""
        return TorchEngine(self._network)

    @torch.inference_mode()
    def sample(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[Counter[str]]:
        """See :class:`models.engine.Engine`.

        Samples that agree so far are one token of a tree, and part where they differ: the draws are those of
        separate sampling, the cost that of the distinct beginnings. What their prompts say after the same words is
        computed with them (:mod:`models.drafts`).
        """
        generator = torch.Generator().manual_seed(seed_number(seed))
        planted = self._memory.plant(contexts)
        planted.forest.compute()
        self._memory.keep(planted)
        greedy, drawn = parted(samples, temperature, likeliest)
        starts = [(count, at) for count, at in ((greedy, 0.0), (drawn, temperature)) if count]
        rows = [_Row(owner, (), count, at) for owner in range(len(contexts)) for count, at in starts]
        places = [planted.ends[row.owner] for row in rows]
        known = dict(zip(places, planted.forest.hidden(places), strict=True))
        answers: list[Counter[tuple[int, ...]]] = [Counter() for _ in contexts]
        while rows:
            logits = self._network.head(torch.stack([known[place] for place in places]))
            going = []
            for parent, row in _draw(logits, rows, generator):
                if self._network.ends(row.tokens):
                    answers[row.owner][row.tokens] += row.count
                else:
                    going.append((parent, row))
            rows = [row for _, row in going]
            places = [_after(planted.forest.trees, places[parent], row.tokens[-1]) for parent, row in going]
            _reach(planted, rows, places, known)
        return [self._texts(found) for found in answers]

    def _texts(self, found: Counter[tuple[int, ...]]) -> Counter[str]:
        """What answers say, and how often: several may spell the same in other tokens."""
        texts = Counter[str]()
        for tokens, count in found.items():
            texts[self._network.text(tokens)] += count
        return texts

    @torch.inference_mode()
    def score(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        """See :class:`models.engine.Engine`. Steps whose prompts begin alike are one pass: a tree, with no padding."""
        return self._by_opening(self._score, contexts, answers)

    @torch.inference_mode()
    def likelihood(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        """Mean log-likelihood of the tokens of each answer to each context, the one that ends it among them: 0 or less.

        One pass for steps whose prompts begin alike, as in :meth:`score`.
        """
        return self._by_opening(self._likelihood, contexts, answers)

    def _by_opening(
        self,
        judge: Callable[[Sequence[Context], Sequence[Sequence[str]]], list[list[float]]],
        contexts: Sequence[Context],
        answers: Sequence[Sequence[str]],
    ) -> list[list[float]]:
        """What ``judge`` says of answers, asked once for all contexts that begin alike."""
        alike: dict[tuple[str, bytes], list[int]] = {}
        for place, context in enumerate(contexts):
            alike.setdefault(opening(context, self._network.screenshots), []).append(place)
        judged: dict[int, list[float]] = {}
        for places in alike.values():
            found = judge([contexts[place] for place in places], [answers[place] for place in places])
            judged |= zip(places, found, strict=True)
        return [judged[place] for place in range(len(contexts))]

    def _score(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        planted, said = self._say(contexts, answers)
        ends = [(row, places[-1]) for row, places, _ in said]
        logits = self._network.head(planted.forest.hidden(ends), self._network.verdicts)
        scores = iter(logits.softmax(-1)[:, 0].tolist())
        return [[next(scores) for _ in candidates] for candidates in answers]

    def _likelihood(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        planted, said = self._say(contexts, answers)
        means = []
        for row, places, tokens in said:
            before = planted.forest.hidden([(row, place) for place in places[:-1]])
            chosen = self._network.head(before).log_softmax(-1)[range(len(tokens)), list(tokens)]
            means.append(float(chosen.mean()))
        found = iter(means)
        return [[next(found) for _ in candidates] for candidates in answers]

    def _say(
        self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]
    ) -> tuple[Planted, list[tuple[int, list[int], list[int]]]]:
        """Prompts with their answers, computed. Of each answer: row, places from the prompt's end on, tokens."""
        planted = self._memory.plant(contexts)
        said = []
        for (row, end), candidates in zip(planted.ends, answers, strict=True):
            for answer in candidates:
                tokens = self._network.answer_tokens(answer)
                said.append((row, [end, *planted.forest.trees[row].say(end, tokens)], tokens))
        planted.forest.compute()
        self._memory.keep(planted)
        return planted, said


@dataclass(frozen=True, slots=True)
class _Row:
    """The samples of a context (its place is ``owner``) that agree on ``tokens`` so far: ``count`` of them."""

    owner: int
    tokens: tuple[int, ...]
    count: int
    temperature: float


def _after(trees: Sequence[Tree], place: _Place, token: int) -> _Place:
    row, on = place
    return row, trees[row].say(on, [token])[0]


def _reach(planted: Planted, rows: Sequence[_Row], places: Sequence[_Place], known: dict[_Place, Tensor]) -> None:
    """Let the hidden states at the rows' places be known; what they may go on with is computed in the same pass."""
    if not known.keys() >= set(places):
        new = [place for place in [*places, *_guesses(planted, rows, places)] if place not in known]
        planted.forest.compute()
        known |= zip(new, planted.forest.hidden(new), strict=True)


def _guesses(planted: Planted, rows: Sequence[_Row], places: Sequence[_Place]) -> Iterator[_Place]:
    """The places, in the trees, of what rows may go on with; where there are many, of nothing."""
    if len(set(places)) * GUESSED > MOST:
        return
    for row, (tree, on) in zip(rows, places, strict=True):
        prompt = np.concatenate([run.ids for run in planted.prompts[row.owner].runs])
        yield from ((tree, place) for place in planted.forest.trees[tree].say(on, guess(prompt, row.tokens)))


def _draw(logits: Tensor, rows: Sequence[_Row], generator: torch.Generator) -> list[tuple[int, _Row]]:
    """The rows one token on: (the row each came from, the row). Each sample draws its own token."""
    likeliest = logits.argmax(-1).tolist()
    found = [
        _tokens((logits[place] / row.temperature).softmax(-1).cpu(), row.count, generator)  # where the generator is
        if row.temperature
        else Counter({likeliest[place]: row.count})
        for place, row in enumerate(rows)
    ]
    return [
        (place, replace(row, tokens=(*row.tokens, token), count=count))
        for place, (row, counts) in enumerate(zip(rows, found, strict=True))
        for token, count in sorted(counts.items())
    ]


def _tokens(odds: Tensor, count: int, generator: torch.Generator) -> Counter[int]:
    """``count`` tokens drawn by their odds (tokens,), of those that are likely enough."""
    likely = (odds >= MIN_P * odds.max()).nonzero().flatten()
    places = torch.multinomial(odds[likely], count, replacement=True, generator=generator)
    return Counter(likely[places].tolist())
