"""What a round says to people: its commit messages, its page in Prefect, its last lines, and ``ratchet status``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.journal import Journal
from tasks import versions
from tasks.errors import BusyError, WorkspaceError
from tasks.files import ROUND, read_json
from tasks.rounds import PastRound, read_round

Decision = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Report:
    """A finished round. ``overhead`` has wall_s, stages_s, overhead_s and overhead_percent of the wall time."""

    number: int
    commit: str
    decision: Decision
    overhead: dict[str, float]

    @property
    def lines(self) -> list[str]:
        """The last lines of ``ratchet round``."""
        tag, cost = versions.tag_of(self.number), self.overhead
        before = f"`dvc metrics diff {versions.tag_of(self.number - 1)} {tag}`, " if self.number > 1 else ""
        outside = f"{cost['overhead_percent']:.1f}% outside the stages"
        return [
            *verdicts(self.decision),
            f"{tag}: commit {self.commit[:8]}, {cost['wall_s']:.0f} s, {outside}",
            f"next: `ratchet lineage {tag}`, {before}`ratchet ui`, or another `ratchet round`",
        ]

    @property
    def markdown(self) -> str:
        """The page in Prefect."""
        rows = "\n".join(f"- {line}" for line in verdicts(self.decision))
        return f"# {versions.tag_of(self.number)}\n\n{rows}\n\nCommit `{self.commit}`. " + " ".join(self.lines[-2:])


def verdicts(decision: Decision) -> list[str]:
    """A line a model: success before and after, where known, and why it was promoted or not."""
    return [f"{model}: {_change(verdict)}{verdict['reason']}" for model, verdict in decision.items()]


def headline(decision: Decision) -> str:
    """What came of a round: who was promoted, and who is back."""
    promoted = [model for model, verdict in decision.items() if verdict["promoted"]]
    back = [model for model, verdict in decision.items() if verdict.get("rolled_back")]
    news = [
        f"{' and '.join(models)} {what}" for models, what in ((promoted, "promoted"), (back, "rolled back")) if models
    ]
    return ", ".join(news) or "champions kept"


def round_message(number: int, decision: Decision) -> str:
    """The message of the commit that holds what a round made."""
    return "\n\n".join([f"Round {number}: {headline(decision)}", "\n".join(verdicts(decision))])


def promotion_message(number: int, decision: Decision) -> str:
    """The message of the commit that moves the state."""
    title = f"State of round {number + 1}: {headline(decision)} in round {number}"
    return "\n\n".join([title, "\n".join(verdicts(decision))])


def progress(numbers: Sequence[int]) -> list[str]:
    """A line a round: how good the models are that it left in use, and which of them are its own.

    Raises:
        WorkspaceError: git has no such round.
    """
    return [_progress(read_round(number)) for number in numbers]


def read_decision() -> Decision:
    """What the round decided.

    Raises:
        WorkspaceError: the file is not there or is no decision.
    """
    path = ROUND / "decision.json"
    try:
        decision = read_json(path)
        return {model: {**decision[model], "reason": str(decision[model]["reason"])} for model in ("agent", "reward")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(f"{path}: no decision ({error!r}); make it with `dvc repro decide`") from error


def status() -> list[str]:
    """The round to come or what keeps it from starting, or the one under way or stopped; how the last one ended."""
    journal = Journal.read()
    if journal:
        return [f"{versions.tag_of(journal.round)}: {_where(journal)}"]
    lines = [_next()]
    if (ROUND / "decision.json").exists():
        lines += [f"last: {line}" for line in verdicts(read_decision())]
    return lines


def _next() -> str:
    try:
        number = Journal.open().round
    except WorkspaceError as error:
        return f"no round can start: {error}"
    return f"{versions.tag_of(number)}: to come; start it with `ratchet round`"


def _progress(made: PastRound) -> str:
    success = _figure(made.success(made.in_use("agent")).get("rate"))
    judge = made.in_use("reward")
    steps, outcomes = (_figure(made.judging(judge, query).get("f1")) for query in ("step", "outcome"))
    judging = f"reward model F1 of steps {steps}, of outcomes {outcomes}"
    return f"{made.tag}: agent success {success}; {judging}; {headline(made.decision)}"


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _where(journal: Journal) -> str:
    try:
        versions.refuse_if_busy()
    except BusyError as busy:
        audited = str(busy).startswith(versions.AUDIT)
        return f"stopped in {journal.at!r}; {busy}" if audited else f"under way, in {journal.at!r}"
    return f"stopped in {journal.at!r}; `ratchet round` goes on from there"


def _change(verdict: Mapping[str, Any]) -> str:
    rates = [verdict.get(model, {}).get("rate") for model in ("champion", "challenger")]
    if None in rates or verdict.get("rolled_back"):  # what comes back was not measured
        return ""
    return f"{rates[0]:.3f} -> {rates[1] if verdict['promoted'] else rates[0]:.3f}, "
