"""The hooks of a web application: what changes its data between episodes, and what judges them."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from environments.goalfile import Values, fill
from environments.types import WorldError
from environments.web.file import App, Command, Hook, Rest, RestCheck, Restore, Sql, SqlCheck, fill_path
from environments.web.server import Server, ask

TIMEOUT_S = 60
_SQLITE = b"SQLite format 3\0"


class Hooks:
    """Runs the hooks of an application on its running server.

    Raises:
        WorldError: from every method, when a hook cannot be done; it names the hook.
    """

    def __init__(self, app: App, server: Server) -> None:
        self._app, self._server = app, server

    def run(self, hook: Hook, values: Values) -> None:
        """Do what a hook says."""
        try:
            if isinstance(hook, Sql):
                self._query(hook, values, "rwc")
            elif isinstance(hook, Rest):
                self._request(hook, values, refused_from=400)
            elif isinstance(hook, Command):
                self._command(hook, values)
            else:
                self._restore(hook)
        except (OSError, sqlite3.Error, subprocess.SubprocessError) as error:
            raise WorldError(f"hook {hook!r}: {error}") from error

    def holds(self, check: SqlCheck | RestCheck, values: Values) -> bool:
        """Whether the application's data are as a check says."""
        try:
            found = self._query(check, values, "ro") if isinstance(check, SqlCheck) else self._ask(check, values)
        except (OSError, sqlite3.Error) as error:
            raise WorldError(f"check {check!r}: {error}") from error
        return found in _wanted(check.equals, values)

    def _query(self, hook: Sql, values: Values, mode: str) -> Any:
        """The first value of the first row, None where there is none."""
        path = self._server.data / str(hook.database or self._app.database)
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode={mode}", timeout=TIMEOUT_S, uri=True)) as database,
            database,
        ):
            row = database.execute(hook.sql, dict(values)).fetchone()
        return row[0] if row else None

    def _ask(self, check: RestCheck, values: Values) -> Any:
        """The value that a check is about; None where the application has none, as of an item that is not there yet."""
        status, answer = self._request(check, values, refused_from=500)
        with suppress(ValueError):  # a page that says so instead of JSON
            return _at(json.loads(answer), check.at) if status < 400 else None
        return None

    def _request(self, hook: Rest, values: Values, refused_from: int) -> tuple[int, bytes]:
        """Status and body of the answer. Raises OSError when there is none, or its status is refused."""
        body = None if hook.body is None else json.dumps(fill(hook.body, values)).encode()
        headers = {"Content-Type": "application/json"} | fill(hook.headers, values)
        status, answer = ask(self._server.port, fill_path(hook.rest, values), hook.method, body, headers)
        if status >= refused_from:
            raise OSError(f"status {status}")
        return status, answer

    def _command(self, hook: Command, values: Values) -> None:
        words = [fill(word, {**values, **self._server.places}) for word in shlex.split(hook.command)]
        done = subprocess.run(
            words,
            cwd=self._server.folder,
            env=self._server.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().split("\n")[-1]
            raise WorldError(f"hook {hook!r}: exit status {done.returncode}: {said[:300]}")

    def _restore(self, hook: Restore) -> None:
        if self._server.pristine is None:
            raise WorldError(f"hook {hook!r}: there is nothing to restore from; set app.data")
        source, target = self._server.pristine / hook.restore, self._server.data / hook.restore
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, symlinks=True)
        elif _is_sqlite(source):
            # Page by page under SQLite's own locks, so that a server that has it open sees the change.
            old = sqlite3.connect(f"{source.as_uri()}?{_untouched(source)}", uri=True)
            new = sqlite3.connect(target, timeout=TIMEOUT_S)
            with closing(old), closing(new):
                old.backup(new)
        else:
            shutil.copyfile(source, target)


def _untouched(database: Path) -> str:
    """How to open a database that nobody writes: reading alone makes files beside one that is in WAL mode."""
    log = database.with_name(f"{database.name}-wal")  # what it holds would not be seen
    return "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _wanted(equals: Any, values: Values) -> list[Any]:
    """What a check may find: ``equals`` with its values as text, or the very value where it names nothing else."""
    alone = [value for name, value in values.items() if equals == f"{{{name}}}"]
    return [fill(equals, values), *alone]


def _at(value: Any, path: str) -> Any:
    """What lies at a dotted path of keys and numbers; None where nothing does."""
    for key in path.split(".") if path else []:
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (LookupError, ValueError, TypeError):
            return None
    return value
