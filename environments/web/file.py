"""The goal file of a web application: how it runs, how it is reset, its goals and how each is judged.

Paths on disk start at ``app.folder``, and those of hooks at the world's copy of ``app.data``. In texts, ``{name}``
stands for a value of the goal instance, in commands also ``{port}`` and ``{data}``; SQL takes values as ``:name``.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Discriminator, Field, Tag, model_validator

from environments.goalfile import Section, Value, Values, Word, Worded, fill, require

Path = Annotated[str, Field(pattern=r"^/")]
Request = Annotated[str, Field(pattern=r"^/[!-~]*$")]  # a path that no browser encodes: ASCII, without blanks
RESERVED = frozenset({"port", "data"})


class Sql(Section):
    """A statement in a SQLite database, by default ``app.database``."""

    sql: Word
    database: Word | None = None


class Rest(Section):
    """A request to the application; ``body`` is sent as JSON."""

    rest: Request
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    body: Any = None
    headers: dict[str, str] = {}


class Command(Section):
    """A program and its arguments, run in ``app.folder``. It is split as a shell would, and given to none."""

    command: Word


class Restore(Section):
    """A file or folder that becomes again what it is in ``app.data``; a SQLite database may be in use."""

    restore: Word


class SqlCheck(Sql):
    """The first value of the first row."""

    equals: Value | None


class RestCheck(Rest):
    """The value ``at`` a path of keys and numbers in the JSON of the answer, such as ``items.0.title``."""

    at: str = ""
    equals: Any


class PageCheck(Section):
    """A JavaScript expression in the page, with ``values`` at hand; it must be true."""

    page: Word


_HOOKS = ("sql", "rest", "command", "restore")
_CHECKS = ("sql", "rest", "page")


def _one_of(*names: str) -> Discriminator:
    def which(section: Any) -> str | None:
        return next((name for name in names if isinstance(section, dict) and name in section), None)

    wrong = f"Input should be a mapping with one of the keys {', '.join(names)}"
    return Discriminator(which, custom_error_type="no_such_hook", custom_error_message=wrong)


Hook = Annotated[
    Annotated[Sql, Tag("sql")]
    | Annotated[Rest, Tag("rest")]
    | Annotated[Command, Tag("command")]
    | Annotated[Restore, Tag("restore")],
    _one_of(*_HOOKS),
]
Check = Annotated[
    Annotated[SqlCheck, Tag("sql")] | Annotated[RestCheck, Tag("rest")] | Annotated[PageCheck, Tag("page")],
    _one_of(*_CHECKS),
]


class Login(Section):
    """A form at ``path``: a text for each field, by CSS selector. The form of the last one is sent."""

    path: Path
    fill: Annotated[dict[str, str], Field(min_length=1)]


class App(Section):
    """The application: one server process, port and copy of ``data`` for each world."""

    start: Word
    folder: Word = "."
    env: dict[str, str] = {}
    ready: Request = "/"
    ready_in_s: Annotated[int, Field(ge=1)] = 60
    data: Word | None = None
    database: Word | None = None
    reset: list[Hook] = []  # none: the server is restarted on a new copy of its data
    cookies: dict[str, str] = {}
    login: Login | None = None
    viewport: Annotated[list[Annotated[int, Field(ge=100, le=4096)]], Field(min_length=2, max_length=2)]
    phone: bool = False
    hosts: list[Annotated[str, Field(pattern=r"^[a-z0-9.-]+$")]] = []
    hide: list[Word] = []

    @model_validator(mode="after")
    def _is_whole(self) -> App:
        require(shlex.split(self.start), RESERVED, "start")
        _check_hooks(self.reset, (), "reset")
        _check_databases(self.reset, self.database)
        return self


class WebGoal(Worded):
    """One goal; ``setup`` runs after the reset of each episode."""

    path: Path
    setup: list[Hook] = []
    success: Check

    @model_validator(mode="after")
    def _has_its_values(self) -> WebGoal:
        if taken := RESERVED & self.values.keys():
            raise ValueError(f"{min(taken)!r} is no name of a value: it stands for the server's own")
        require(self.instruction, self.values, "instruction")
        require(self.path, self.values, "path")
        _check_hooks([*self.setup, self.success], self.values, "setup or success")
        return self


class WebFile(Section):
    """The whole file."""

    app: App
    goals: Annotated[list[WebGoal], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_databases(self) -> WebFile:
        for goal in self.goals:
            _check_databases([*goal.setup, goal.success], self.app.database)
        return self


def fill_path(template: str, values: Values) -> str:
    """A path with its ``{name}``s replaced by percent-encoded values."""
    return str(fill(template, values, lambda value: quote(value, safe="")))


def _check_hooks(hooks: Iterable[Section], values: Collection[str], what: str) -> None:
    for hook in hooks:
        if isinstance(hook, Command):
            require(shlex.split(hook.command), {*values, *RESERVED}, what)
        elif isinstance(hook, Rest):
            require([hook.rest, hook.body, hook.headers], values, what)
        require(getattr(hook, "equals", None), values, what)


def _check_databases(hooks: Iterable[Section], database: str | None) -> None:
    if database is None and any(isinstance(hook, Sql) and hook.database is None for hook in hooks):
        raise ValueError("a hook with sql needs a database: name one there, or app.database")
