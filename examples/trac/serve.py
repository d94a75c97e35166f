"""Trac's own server, its clock stopped at the time that pages have: the same actions then give the same pages."""

from datetime import UTC, datetime

import time_machine

time_machine.travel(datetime(2024, 1, 15, 12, tzinfo=UTC), tick=False).start()

from trac.web.standalone import main  # noqa: E402  (after the clock has stopped)

main()
