"""The page of a workspace: what its rounds came to, in one HTML file that needs nothing else.

The figures are those that the rounds committed, the pictures those of their evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tasks import ancestry, lineage, versions
from tasks.errors import WorkspaceError
from tasks.files import ROUND, WORK, write_text
from tasks.page.curves import curves
from tasks.page.examples import newly_solved
from tasks.rounds import past_rounds

FILE = WORK / "report.html"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a round is kept: its MLflow run, and by path the md5s of the state it started from and of what it made."""

    mlflow_run: str | None
    contents: dict[str, str]


def write(path: Path) -> str:
    """Write the page of all tagged rounds, and return the tag of the last one.

    Raises:
        WorkspaceError: there is no round; or what a round made is in no cache and no remote.
    """
    rounds = past_rounds()
    if not rounds:
        raise WorkspaceError("no round is tagged here, and the page is about rounds; make one with `ratchet round`")
    page = _render(
        rounds=rounds,
        curves=curves(rounds),
        examples=newly_solved(rounds),
        origins=_origins([made.tag for made in rounds]),
    )
    write_text(path, page)
    return rounds[-1].tag


def _origins(tags: Sequence[str]) -> dict[str, Origin]:
    found = {}
    for snapshot in ancestry.snapshots(versions.show, tags, versions.commit_of):
        outs = [out for record in snapshot.records for out in record.outs]
        made = {out.path: out.md5 for out in outs if ROUND in Path(out.path).parents}
        contents = {"data/state": snapshot.state or "", **made}
        found[snapshot.round] = Origin(lineage.run_of(snapshot.round), contents)
    return found


def _render(**values: Any) -> str:
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html").render(values)
