"""Stage ``validate``: the gates between data and training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.registry import load_goals
from tasks.curriculum import Curriculum
from tasks.errors import GateError
from tasks.files import ROUND, STATE, WORK, remove, write_json
from tasks.params import Params

if TYPE_CHECKING:
    from tasks.gates import Check

DOCS = WORK / "data_docs"
VALIDATION = ROUND / "validation.json"
NAMED = 10  # broken rows named in an error


def run(params: Params) -> None:
    """Check ``data/round/rows``; write ``data/round/validation.json`` and, pass or fail, the data docs.

    Raises:
        GateError: naming suite, expectation, columns and rows; ``validation.json`` is not written then.
        RecordError: when a file cannot be read at all.
    """
    # Great Expectations takes seconds to load: only this stage's run pays for it.
    from tasks.gates import check
    from tasks.gates.frames import read_frames
    from tasks.gates.suites import Bounds

    remove(VALIDATION)
    curriculum = Curriculum.read(STATE / "curriculum.json")
    bounds = Bounds(sorted(load_goals(Path(params.goals))), curriculum.round, params)
    checks = check(read_frames(ROUND / "rows"), bounds, DOCS)
    failed = [item for item in checks if not item.success]
    if failed:
        raise GateError(_explain(failed))
    write_json(VALIDATION, _report(checks))


def _report(checks: Sequence[Check]) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for item in checks:
        found = {key: value for key, value in asdict(item).items() if key not in ("suite", "broken")}
        report.setdefault(item.suite, []).append(found)
    return report


def _explain(failed: Sequence[Check]) -> str:
    """Tell of the first failure, which is the nearest to the cause, and how many follow."""
    first, more = failed[0], len(failed) - 1
    columns = ", ".join(first.columns) or "the table"
    others = f" ({more} more failed)" if more else ""
    return (
        f"{first.suite}: {first.expectation} ({columns}): {first.rule}; {_found(first)}{others}; see "
        f"{DOCS / 'index.html'}, mend what `dvc repro filter` makes and run `dvc repro validate`"
    )


def _found(check: Check) -> str:
    if check.broken:
        more = ", ..." if len(check.broken) > NAMED else ""
        return f"broken by {len(check.broken)}: {', '.join(check.broken[:NAMED])}{more}"
    return "it could not be checked" if check.observed is None else f"found {check.observed}"
