"""What runs a network. Agent and reward model ask it for answers and scores, and need not know where it runs.

Two engines: :class:`models.inference.TorchEngine` in this process, and :class:`models.vllm.VllmEngine`, a vLLM
server. On the same checkpoints both give the same greedy answers and, within rounding, the same scores; what they
sample at a temperature differs, as each draws in its own way.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from models.prompts import Context

MAX_ANSWER_TOKENS = 128
"""Of an answer, with the one that ends it: room for an address of 150 letters, and for what one types in a field."""
MAX_UNQUOTED_TOKENS = 40
"""Of an answer, those in quotes left out: only what it names or types makes one long, and others run on for nothing."""
MIN_P = 0.1
"""Sampled are tokens that are so likely, at the temperature, beside the likeliest (min-p: arXiv:2407.01082).

So answers stay well-formed at temperatures at which an agent that is sure of itself still differs with itself.
"""


class EngineError(RuntimeError):
    """An engine cannot be had, does not answer, or reads prompts otherwise than they were trained on."""


class Engine(Protocol):
    """Runs one network. It may remember what it has read, to read it once; answers and scores are the same."""

    def fresh(self) -> Engine:
        """The same network without what was read before.

        Rounding may depend on what is remembered. Each unit of work has a fresh engine, so that its bytes do not
        depend on the units that its process did before.
        """
        ...

    def sample(
        self, contexts: Sequence[Context], samples: int, temperature: float, seed: str = "", likeliest: bool = False
    ) -> list[Counter[str]]:
        """``samples`` answers to each context, with how often each was drawn; the greedy one at temperature 0.

        What is unlikely beside the likeliest is not drawn, see :data:`MIN_P`. ``likeliest``: one of the samples is the
        greedy answer. ``seed`` names the draw: the same name gives the same samples.
        """
        ...

    def score(self, contexts: Sequence[Context], answers: Sequence[Sequence[str]]) -> list[list[float]]:
        """p(+) / (p(+) + p(-)) of each candidate answer of each context, 0..1 (UI-Genie, section 3.2)."""
        ...


def parted(samples: int, temperature: float, likeliest: bool) -> tuple[int, int]:
    """How many of the samples are the greedy answer, and how many are drawn."""
    greedy = int(likeliest) if temperature else samples
    return greedy, samples - greedy


def seed_number(name: str) -> int:
    """The number that the name of a draw stands for, below 2**63."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def members(checkpoint: Path) -> list[Path]:
    """The checkpoints of an ensemble, numbered from 0; the checkpoint itself where it is none."""
    return sorted(checkpoint.glob("[0-9]*"), key=lambda folder: int(folder.name)) or [checkpoint]


def role_of(checkpoint: Path) -> str:
    """``agent`` or ``reward``, after which the folder of a checkpoint, or of its ensemble, is named."""
    return (checkpoint.parent if checkpoint.name.isdecimal() else checkpoint).name


class Served(NamedTuple):
    """A checkpoint on a server: the server's address, and the checkpoint's name there."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where any process of a stage gets its engines: bases to load, or servers that have them loaded.

    ``bases`` are by role (``agent``, ``reward``), after which the folder of a checkpoint is named; ``served`` are the
    checkpoints that servers have, by folder.
    """

    bases: Mapping[str, str]
    dtype: str
    screenshots: int
    served: Mapping[str, Served] = field(default_factory=dict)

    def engine(self, checkpoint: Path) -> Engine:
        """What runs the base of its role with a stored checkpoint, which is no ensemble.

        Raises:
            EngineError: the base cannot be had, or does not load.
        """
        base = self.bases[role_of(checkpoint)]
        if self.served:
            from models.network import load_reader
            from models.vllm import Server, VllmEngine

            url, name = self.served[str(checkpoint)]
            return VllmEngine(Server(url), name, load_reader(base, self.screenshots))
        from models.half import halved
        from models.inference import TorchEngine
        from models.network import load_base
        from models.tuning import with_tuned

        return TorchEngine(halved(with_tuned(load_base(base, self.dtype, self.screenshots), checkpoint)))
