"""Goals in apps, from YAML: which app, how it is made ready, what is asked for, and how the phone tells success.

The format is in docs/android.md. Words in braces stand for values, which the seed chooses. In commands a value comes
quoted for the phone's shell, in SQL for SQL.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from environments.android.adb import Phone, parted
from environments.goalfile import Section, Values, Word, Worded, check, fill, read, require
from environments.types import GoalError, Observation

_APP = r"^[A-Za-z]\w*(\.\w+)+/[\w.$]+$"


class Check(Section):
    """How the phone tells that a goal is reached: one of ``shell``, ``sql`` and ``screen``.

    ``shell`` and ``sql`` (with the ``database``, a file on the phone) are run there and must print ``prints``, blanks
    around it apart; ``screen`` must stand in the text of an element.
    """

    shell: Word | None = None
    sql: Word | None = None
    database: Word | None = None
    prints: str | None = None
    screen: Word | None = None

    @model_validator(mode="after")
    def _one(self) -> Check:
        given = {name for name, value in self if value is not None}
        if given not in ({"shell", "prints"}, {"sql", "database", "prints"}, {"screen"}):
            raise ValueError("give shell and prints, or sql, database and prints, or screen")
        return self

    @property
    def templates(self) -> list[str]:
        """Where words in braces are filled in."""
        return [text for _, text in self if text is not None]

    def holds(self, values: Values, phone: Phone, screen: Observation) -> bool:
        """Whether it is so now. Raises WorldError when the phone cannot tell."""
        if self.screen is not None:
            wanted = fill(self.screen, values)
            return any(wanted in element.text for element in screen.elements)
        if self.sql is not None:
            line = shlex.join(["sqlite3", fill(self.database or "", values), fill(self.sql, values, _sql)])
        else:  # a grep that finds nothing has status 1; from 126 on, the shell found no such program
            line = fill(self.shell or "", values, shlex.quote) + "; [ $? -lt 126 ]"
        return bool(phone.shell(line).strip() == fill(self.prints or "", values).strip())


class _Entry(Worded):
    """A goal as it stands in a file. ``setup`` are lines for adb, run after the app's own ``reset``."""

    setup: list[Word] = []
    success: Check

    @model_validator(mode="after")
    def _has_its_values(self) -> _Entry:
        require(self.instruction, self.values, "instruction")
        require([*self.setup, *self.success.templates], self.values, "setup or success")
        _check_lines(self.setup, "setup")
        return self


class _App(Section):
    """An app and its goals. ``reset`` are lines for adb, run before each episode."""

    app: Annotated[str, Field(pattern=_APP)]
    reset: list[Word] = []
    goals: Annotated[list[_Entry], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_whole_lines(self) -> _App:
        _check_lines(self.reset, "reset")
        return self


class AndroidFile(Section):
    """The whole file."""

    android: _App


@dataclass(frozen=True, slots=True)
class Job:
    """A goal instance on a phone: its values are filled in."""

    app: str
    before: tuple[str, ...]  # lines for adb
    instruction: str
    reached: Callable[[Phone, Observation], bool]


def read_job(page: str, seed: int) -> Job:
    """The goal instance of a page (``file#goal-id``) and a seed.

    Raises:
        GoalError: when the file cannot be read, or has no such goal.
    """
    name, _, wanted = page.rpartition("#")
    app = check(AndroidFile, Path(name), read(Path(name))).android
    entry = next((entry for entry in app.goals if entry.id == wanted), None)
    if entry is None:
        raise GoalError(f"page {page!r}: {wanted!r} is not one of {', '.join(entry.id for entry in app.goals)}")
    values = entry.choose(seed)
    setup = (fill(line, values, shlex.quote) for line in entry.setup)

    def reached(phone: Phone, screen: Observation) -> bool:
        return entry.success.holds(values, phone, screen)

    return Job(app.app, (*app.reset, *setup), fill(entry.instruction, values), reached)


def _check_lines(lines: Iterable[str], what: str) -> None:
    for line in lines:
        try:
            parted(line)
        except ValueError as error:  # a quote without its other half
            raise ValueError(f"{what}: {line!r}: {error}") from error


def _sql(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
