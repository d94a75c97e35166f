"""The rounds of this workspace as git has them: what each tagged round measured and decided."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasks import versions
from tasks.errors import WorkspaceError
from tasks.evidence.metrics import Model
from tasks.files import ROUND

Kind = Literal["agent", "reward"]
Query = Literal["step", "outcome"]
Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PastRound:
    """A tagged round: the contents of its ``metrics.json`` and ``decision.json``."""

    number: int
    commit: str
    metrics: Figures
    decision: Mapping[str, Figures]

    @property
    def tag(self) -> str:
        """The tag, such as ``round-0003``."""
        return versions.tag_of(self.number)

    def promoted(self, kind: Kind) -> bool:
        """Whether the round's own model came into use."""
        return bool(self.decision[kind]["promoted"])

    def in_use(self, kind: Kind) -> Model | None:
        """Which of the two models was in use after the round; None where it is an older one, which was not measured."""
        if self.decision[kind].get("rolled_back"):  # decisions of earlier versions do not say
            return None
        return "challenger" if self.promoted(kind) else "champion"

    def success(self, model: Model | None, group: str = "overall") -> Figures:
        """Held-out success of an agent (``rate``, ``low``, ``high``, ``solved``, ``n``), of all or of ``tier_2``."""
        figures: Figures = self.metrics["agent"][model].get(group, {}) if model else {}
        return figures

    def judging(self, model: Model | None, query: Query) -> Figures:
        """How well a reward model judges held-out pairs (``f1``, ``f1_low``, ``f1_high``, ``n`` and others).

        Where no oracle makes pairs it is of live judgements; empty where there are none of these either.
        """
        sources = self.metrics["reward"][model].get(query, {}) if model else {}
        figures: Figures = sources.get("pairs") or sources.get("live") or {}
        return figures


def past_rounds() -> list[PastRound]:
    """The tagged rounds, oldest first.

    Raises:
        WorkspaceError: a tag has no metrics or no decision.
    """
    return [read_round(int(tag.removeprefix("round-"))) for tag in versions.round_tags()]


def read_round(number: int) -> PastRound:
    """A tagged round.

    Raises:
        WorkspaceError: there is no such tag, or it has no metrics or no decision.
    """
    tag = versions.tag_of(number)
    commit = versions.commit_of(tag)
    return PastRound(number, commit, _read(tag, "metrics.json"), _read(tag, "decision.json"))


def _read(tag: str, name: str) -> Any:
    path = (ROUND / name).as_posix()
    try:
        return json.loads(versions.show(tag, path) or "")
    except ValueError as error:
        raise WorkspaceError(f"{tag}: its {path} is not there or not JSON; see `git show {tag}:{path}`") from error
