"""The page of a workspace, in the real browser, against the files that the rounds left."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from workspace import Workspace

from environments.browser.chromium import Browser, Screen
from tasks.records import read_trajectories

WATCH = """
window.complaints = [];
addEventListener('error', (event) => complaints.push(String(event.message || event.target.outerHTML)), true);
for (const level of ['error', 'warn']) console[level] = (...words) => complaints.push(words.join(' '));
"""


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory, two_rounds: Workspace) -> Workspace:
    """A workspace of two rounds with its page."""
    workspace = two_rounds.copy(tmp_path_factory.mktemp("reported") / "workspace")
    done = workspace.ratchet("report")
    assert done.returncode == 0, done.stderr
    page = workspace.root / ".ratchet/report.html"
    assert done.stdout.splitlines()[0] == f".ratchet/report.html: {page.as_uri()}"
    return workspace


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, reported: Workspace) -> Iterator[Browser]:
    """The page, open, with everything the browser complains about in ``complaints``."""
    watch = tmp_path_factory.mktemp("watch") / "watch.js"
    watch.write_text(WATCH)
    with closing(Browser(reported.root / ".ratchet", [watch], screen=Screen(1200, 2000))) as opened:
        opened.open("report.html")
        yield opened


def _texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.evaluate(f"[...document.querySelectorAll({selector!r})].map((e) => e.innerText)")
    return found


def test_it_loads_without_a_complaint_and_names_every_round(browser: Browser) -> None:
    assert browser.evaluate("complaints") == []
    assert _texts(browser, "#rounds th a") == ["round-0001", "round-0002"]
    pictures = browser.evaluate("[...document.images].map((picture) => [picture.naturalWidth, picture.complete])")
    assert pictures == [[160, True]] * 4


def test_its_table_is_what_the_rounds_committed(browser: Browser, reported: Workspace) -> None:
    cells = [_texts(browser, f"#rounds tr.{kind} td") for kind in ("agent", "step", "outcome")]
    for place, tag in enumerate(("round-0001", "round-0002")):
        metrics = json.loads(reported.git("show", f"{tag}:data/round/metrics.json"))
        agents = [metrics["agent"][model]["overall"] for model in ("champion", "challenger")]
        assert cells[0][5 * place + 1 : 5 * place + 5] == [
            *(f"{a['rate']:.3f} [{a['low']:.3f}, {a['high']:.3f}] {a['solved']} of {a['n']}" for a in agents),
            "",
            "promoted: better",
        ]
        for row, query in ((cells[1], "step"), (cells[2], "outcome")):
            width = len(row) // 2
            judges = [metrics["reward"][model][query]["pairs"] for model in ("champion", "challenger")]
            shown = [f"{j['f1']:.3f} [{j['f1_low']:.3f}, {j['f1_high']:.3f}]" for j in judges]
            assert row[width * place + 1 : width * place + 3] == shown
    assert cells[1][4] == "not promoted: no better"


def test_its_curves_are_of_the_models_in_use(browser: Browser) -> None:
    """Of the toy: 1 of 4 at the start and then 2; tier 2 is solved after round 1 only; the reward model stays."""
    drawn: list[dict[str, Any]] = browser.evaluate(
        """[...document.querySelectorAll('.curves figure')].map((figure) => [
          figure.innerText.split('\\n').pop(),
          [...figure.querySelectorAll('circle title')].map((title) => title.textContent)])"""
    )
    assert dict(map(tuple, drawn)) == {
        "Agent: all goals": ["0.250", "0.500", "0.500"],
        "Agent: tier 1": ["1.000", "1.000", "1.000"],
        "Agent: tier 2": ["0.000", "1.000", "0.000"],
        "Agent: tier 3": ["0.000", "0.000", "1.000"],
        "Agent: tier 4": ["0.000", "0.000", "0.000"],
        "Reward model: F1 of steps": ["0.500"] * 3,
        "Reward model: F1 of outcomes": ["0.667"] * 3,
    }
    heights = browser.evaluate(
        "[...document.querySelector('.curves svg').querySelectorAll('circle')].map(c => c.cy.baseVal.value)"
    )
    assert heights == [150 - 140 * value for value in (0.25, 0.5, 0.5)]


def test_it_shows_what_was_newly_solved(browser: Browser, reported: Workspace) -> None:
    """Not `click`, which the first champion solved, and of each round its own new goal, as the challenger did it."""
    ids = browser.evaluate("[...document.querySelectorAll('.example')].map((example) => example.id)")
    assert ids == ["round-0001/form/1/challenger", "round-0002/mail/2/challenger"]
    (path,) = [one for one in read_trajectories(reported.root / "data/round/evaluation") if one.id == ids[1]]
    png = base64.b64encode(path.episode.last.screenshot).decode()
    assert browser.evaluate("document.images[3].src") == f"data:image/png;base64,{png}"
    captions = browser.evaluate("[...document.querySelectorAll('.example figcaption')].map((e) => e.innerText)")
    assert captions == [str(path.episode.steps[0].action), "the end"] * 2
    assert 'mail (tier 3, solved for the first time): Do "mail" & <go>' in _texts(browser, ".example p")[1]
    assert _texts(browser, "h3 + p")[:2] == ["form (1)", "mail (1)"]


def test_its_lineage_is_that_of_git_dvc_and_mlflow(browser: Browser, reported: Workspace) -> None:
    codes = _texts(browser, "code")
    lock = reported.git("show", "round-0001:dvc.lock")
    md5s = [line.split()[-1] for line in lock.splitlines() if " md5:" in line]
    for tag in ("round-0001", "round-0002"):
        assert reported.git("rev-parse", f"{tag}^{{commit}}") in codes
    assert len(set(md5s) & set(codes)) >= 5
    with sqlite3.connect(reported.root / ".ratchet/mlflow.db") as db:
        runs = db.execute("select run_uuid, artifact_uri from runs where name like 'round-%' order by name").fetchall()
    assert {run for run, _ in runs} < set(codes)
    artifacts = [Path(url.removeprefix("file://")) / "report.html" for _, url in runs]
    assert [path.exists() for path in artifacts] == [False, True]
    assert artifacts[1].read_bytes() == (reported.root / ".ratchet/report.html").read_bytes()


def test_without_a_round_there_is_no_page(fresh: Workspace) -> None:
    refused = fresh.ratchet("report")
    assert refused.returncode == 2
    assert refused.stderr.startswith("ratchet: no round is tagged here")


def test_a_figure_that_is_not_defined_is_no_point(tmp_path: Path) -> None:
    """Nothing was judged, and no instance of tier 2 was played in the first round."""
    from tasks.page.curves import Point, curves
    from tasks.rounds import PastRound

    success = {"rate": 0.5, "low": 0.1, "high": 0.9, "solved": 1, "n": 2}
    one = {model: {"overall": success} for model in ("champion", "challenger")}
    two = {model: {"overall": success, "tier_2": success} for model in one}
    decision = {kind: {"promoted": kind == "agent", "reason": ""} for kind in ("agent", "reward")}
    reward: dict[str, Any] = {model: {} for model in one}
    rounds = [PastRound(n, "c", {"agent": agent, "reward": reward}, decision) for n, agent in ((1, one), (2, two))]
    drawn = {curve.title: curve.points for curve in curves(rounds)}
    assert drawn["Agent: tier 2"] == (
        Point("start", None, None, None),
        Point("1", None, None, None),
        Point("2", 0.5, 0.1, 0.9),
    )
    assert [point.value for point in drawn["Reward model: F1 of steps"]] == [None] * 3


def test_after_a_roll_back_no_figure_is_shown_for_what_is_in_use() -> None:
    """The round measured its champion and its challenger; in use is the one before."""
    from tasks.page.curves import curves
    from tasks.rounds import PastRound

    judged = {"step": {"pairs": {"f1": 0.5, "f1_low": 0.1, "f1_high": 0.9}}, "outcome": {}}
    metrics = {kind: dict.fromkeys(("champion", "challenger"), of) for kind, of in (("agent", {}), ("reward", judged))}
    decision = {"agent": {"promoted": False}, "reward": {"promoted": False, "rolled_back": True}}
    made = PastRound(1, "c", metrics, decision)
    assert (made.in_use("agent"), made.in_use("reward")) == ("champion", None)
    drawn = {curve.title: curve.points for curve in curves([made])}
    assert [point.value for point in drawn["Reward model: F1 of steps"]] == [0.5, None]
