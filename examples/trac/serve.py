"""Trac's own server with a clock that its database sets, so that the same actions give the same pages.

It is the time that pages have, or a second after the last change of a ticket: Trac keeps one change for each moment.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine

BEGIN = datetime(2024, 1, 15, 12, tzinfo=UTC)
clock = time_machine.travel(BEGIN, tick=False).start()

from trac.web import standalone  # noqa: E402  (after the clock has stopped)

database = f"{sys.argv[-1]}/db/trac.db"
dispatch = standalone.dispatch_request


def dispatch_at_its_time(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    with closing(sqlite3.connect(database)) as connection:
        ((microseconds,),) = connection.execute("SELECT max(changetime) FROM ticket")
    changed = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    clock.move_to(max(BEGIN, changed + timedelta(seconds=1)), tick=False)
    return dispatch(environ, start_response)


standalone.dispatch_request = dispatch_at_its_time
standalone.main()
