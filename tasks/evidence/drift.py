"""How far the challenger agent has moved from the champion: the divergence that RL calls KL, on what was explored."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, cast

from environments.types import Candidate
from models.engine import Source
from models.prompts import Context, context_at
from tasks.files import ROUND, STATE
from tasks.records import Origin, Trajectory, read_trajectories
from tasks.workers import JSON, crew, spread

if TYPE_CHECKING:
    from models.inference import TorchEngine

CONTEXTS, _TOGETHER = 32, 8
Sampled = tuple[Context, tuple[Candidate, ...]]


def divergence(source: Source, seed: int, processes: int, kept: Path) -> float | None:
    """How much likelier the champion's answers are to the champion, in nats a token, on :data:`CONTEXTS` screens.

    Of each screen it is the mean, over the actions that the champion sampled there, of the log of how much likelier the
    champion gives a token of them than the challenger. It would be KL(champion | challenger), were they sampled at
    temperature 1; at ``explore.temperature``, the likeliest among them, it compares rounds of one setting. None where
    nothing was sampled, and where a server runs the models, which says no likelihoods.
    """
    if source.served:
        return None
    found = drawn(read_trajectories(ROUND / "scored"), seed)
    parts = [found[at : at + _TOGETHER] for at in range(0, len(found), _TOGETHER)]
    units = [(f"drift-{place}.json", part) for place, part in enumerate(parts)]
    with crew(make_meter, (source,), processes) as workers:
        gaps = list(spread("drift", workers, units, kept, JSON))
    return fmean(gaps) if gaps else None


def drawn(explored: Iterable[Trajectory], seed: int) -> list[Sampled]:
    """At most :data:`CONTEXTS` different screens of the search, with what the champion sampled on each."""
    known: dict[Context, tuple[Candidate, ...]] = {}
    for trajectory in explored:
        episode = trajectory.episode
        for place, step in enumerate(episode.steps if trajectory.origin is Origin.SEARCH else ()):
            if step.candidates:
                known.setdefault(
                    context_at(episode.instruction, episode.steps[:place], step.observation), step.candidates
                )
    return random.Random(seed).sample(list(known.items()), min(CONTEXTS, len(known)))


def make_meter(source: Source) -> Callable[[Sequence[Sampled]], list[float]]:
    """What measures some screens."""
    engines = [cast("TorchEngine", source.engine(folder / "agent")) for folder in (STATE, ROUND)]

    def measure(sampled: Sequence[Sampled]) -> list[float]:
        contexts = [context for context, _ in sampled]
        answers = [[str(option.action) for option in options] for _, options in sampled]
        before, after = (engine.fresh().likelihood(contexts, answers) for engine in engines)
        return [gap(options, *logs) for (_, options), *logs in zip(sampled, before, after, strict=True)]

    return measure


def gap(options: Sequence[Candidate], before: Sequence[float], after: Sequence[float]) -> float:
    """The mean of the differences, each action counted as often as it was sampled."""
    differences = (option.count * (old - new) for option, old, new in zip(options, before, after, strict=True))
    return sum(differences) / sum(option.count for option in options)
