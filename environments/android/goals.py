"""Goals in apps, from YAML: which app, how it is made ready, what is asked for, and how the phone tells success.

The format is in docs/android.md. Words in braces stand for values, which the seed chooses. In commands a value comes
quoted for the phone's shell, in SQL for SQL.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from environments.android.adb import Phone
from environments.types import Goal, GoalError, Observation

WORLD = "environments.android:Android"
_Words = Annotated[str, Field(min_length=1)]
_APP = r"^[A-Za-z]\w*(\.\w+)+/[\w.$]+$"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Check(_Strict):
    """How the phone tells that a goal is reached: one of ``shell``, ``sql`` and ``screen``.

    ``shell`` and ``sql`` (with the ``database``, a file on the phone) are run there and must print ``prints``, blanks
    around it apart; ``screen`` must stand in the text of an element.
    """

    shell: _Words | None = None
    sql: _Words | None = None
    database: _Words | None = None
    prints: str | None = None
    screen: _Words | None = None

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

    def holds(self, values: Mapping[str, str], phone: Phone, screen: Observation) -> bool:
        """Whether it is so now. Raises WorldError when the phone cannot tell."""
        if self.screen is not None:
            wanted = _fill(self.screen, values)
            return any(wanted in element.text for element in screen.elements)
        if self.sql is not None:
            line = shlex.join(["sqlite3", _fill(self.database or "", values), _fill(self.sql, values, _sql)])
        else:
            line = _fill(self.shell or "", values, shlex.quote)
        return phone.shell(line).strip() == _fill(self.prints or "", values)


class _Entry(_Strict):
    """A goal as it stands in a file. ``setup`` are lines for adb, run after the app's own ``reset``."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    tier: Annotated[int, Field(ge=1, le=4)]
    max_steps: Annotated[int, Field(ge=1)]
    instruction: _Words
    values: dict[_Words, Annotated[list[str], Field(min_length=1)]] = {}
    setup: list[_Words] = []
    success: Check

    @model_validator(mode="after")
    def _filled(self) -> _Entry:
        for template in (self.instruction, *self.setup, *self.success.templates):
            if unknown := _names(template) - self.values.keys():
                known = ", ".join(self.values) or "it has none"
                raise ValueError(f"{template!r} has {{{min(unknown)}}}, which is not among its values ({known})")
        return self


class _App(_Strict):
    """An app and its goals. ``reset`` are lines for adb, run before each episode."""

    app: Annotated[str, Field(pattern=_APP)]
    reset: list[_Words] = []
    goals: Annotated[list[_Entry], Field(min_length=1)]


class _File(_Strict):
    android: _App


@dataclass(frozen=True, slots=True)
class Job:
    """A goal instance on a phone: its values are filled in."""

    app: str
    before: tuple[str, ...]  # lines for adb
    instruction: str
    reached: Callable[[Phone, Observation], bool]


def android_goals(file: Path, content: object) -> list[Goal]:
    """The goals of a file whose one key is ``android``, in file order.

    Raises:
        GoalError: in one line, when the content is not of that form.
    """
    entries = _read(file, content).goals
    return [Goal(entry.id, WORLD, f"{file}#{entry.id}", entry.tier, entry.max_steps) for entry in entries]


def read_job(page: str, seed: int) -> Job:
    """The goal instance of a page (``file#goal-id``) and a seed.

    Raises:
        GoalError: when the file cannot be read, or has no such goal.
    """
    name, _, wanted = page.rpartition("#")
    file = Path(name)
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise GoalError(f"page {page!r}: {' '.join(str(error).split())}; give it as FILE#GOAL-ID") from error
    app = _read(file, content)
    entry = next((entry for entry in app.goals if entry.id == wanted), None)
    if entry is None:
        raise GoalError(f"page {page!r}: {wanted!r} is not one of {', '.join(entry.id for entry in app.goals)}")
    values = dict(_choose(entry, seed))
    setup = (_fill(line, values, shlex.quote) for line in entry.setup)

    def reached(phone: Phone, screen: Observation) -> bool:
        return entry.success.holds(values, phone, screen)

    return Job(app.app, (*app.reset, *setup), _fill(entry.instruction, values), reached)


def _choose(entry: _Entry, seed: int) -> Iterator[tuple[str, str]]:
    """A value for each name, fixed by goal and seed."""
    for name, options in entry.values.items():
        yield name, random.Random(f"{entry.id}/{seed}/{name}").choice(options)


def _fill(template: str, values: Mapping[str, str], quote: Callable[[str], str] = str) -> str:
    return template.format_map({name: quote(value) for name, value in values.items()})


def _sql(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _names(template: str) -> set[str]:
    """The words in braces. Raises ValueError when braces do not match, or hold more than a word."""
    names = set()
    for _, name, form, conversion in Formatter().parse(template):
        if name is not None and (form or conversion or not name.isidentifier()):
            raise ValueError(f"{template!r}: {{{name}}} must be the name of a value; write {{{{ and }}}} for braces")
        names |= set() if name is None else {name}
    return names


def _read(file: Path, content: object) -> _App:
    try:
        return _File.model_validate(content).android
    except ValidationError as error:
        first = error.errors()[0]
        raise GoalError(f"{file}: {_place(content, first['loc'])}: {first['msg']}") from error


def _place(content: Any, path: tuple[int | str, ...]) -> str:
    """Where in the file: the goal by its id, then the keys."""
    keys = [str(key) for key in path]
    if path[:2] == ("android", "goals") and len(path) > 2:
        entry = content["android"]["goals"][path[2]]
        named = entry.get("id", "without an id") if isinstance(entry, dict) else "without an id"
        return " ".join([f"goal {named}", ".".join(keys[3:])]).strip()
    return ".".join(keys)
