"""Fills a new Trac project: people, milestones, tickets and a wiki page. Run: seed.py PROJECT_FOLDER."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from trac.env import Environment
from trac.perm import PermissionSystem
from trac.ticket.model import Component, Milestone, Ticket
from trac.wiki.model import WikiPage

BEGIN = datetime(2024, 1, 2, 9, tzinfo=UTC)
SESSION = "5e55107a11"  # the cookie trac_auth of the goal files
TICKETS = (
    ("The pump stops after ten minutes", "defect", "major", "Pump", "It runs dry although the tank is full."),
    ("Water meter shows gallons", "defect", "minor", "Meter", "Litres are what everybody here reads."),
    ("Night mode for the display", "enhancement", "minor", "Display", "It lights the whole greenhouse."),
    ("Valve 3 leaks when closed", "defect", "critical", "Valves", "A cup of water in an hour."),
    ("Write down how to clean the filter", "task", "trivial", "Pump", "With pictures."),
    ("Schedule forgets the summer time", "defect", "major", "Schedule", "Everything runs an hour late in April."),
    ("Warn when the tank is nearly empty", "enhancement", "major", "Meter", "A lamp would do."),
    ("Buttons are hard to press with gloves", "enhancement", "minor", "Display", "Larger ones, please."),
)

env = Environment(sys.argv[1])
for component in ("component1", "component2"):
    Component(env, component).delete()
for milestone in ("milestone1", "milestone2", "milestone3", "milestone4"):
    Milestone(env, milestone).delete()
for name in ("Display", "Meter", "Pump", "Schedule", "Valves"):
    component = Component(env)
    component.name, component.owner = name, "ben"
    component.insert()
for name in ("Spring", "Summer"):
    milestone = Milestone(env)
    milestone.name = name
    milestone.insert()
for number, (summary, kind, priority, component, description) in enumerate(TICKETS):
    ticket = Ticket(env)
    ticket.populate(
        {
            "summary": summary,
            "type": kind,
            "priority": priority,
            "component": component,
            "description": description,
            "reporter": "ben",
            "owner": "ann",
            "milestone": "Spring" if number % 2 else "Summer",
            "status": "new",
        }
    )
    ticket.insert(when=BEGIN + timedelta(days=number))
page = WikiPage(env, "WateringPlan")
page.text = "= Watering plan =\n\n * Tomatoes: every morning\n * Herbs: every second day\n * Cactus: once a month\n"
page.save("ben", "", BEGIN)
env.config.set("header_logo", "src", "")
env.config.save()
PermissionSystem(env).grant_permission("ann", "TICKET_ADMIN")
with env.db_transaction as db:
    db("INSERT INTO auth_cookie (cookie, name, ipnr, time) VALUES (%s, 'ann', '', 0)", (SESSION,))
    db("UPDATE wiki SET time = %s", (int(BEGIN.timestamp() * 1_000_000),))
