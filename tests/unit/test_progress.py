"""The progress of a stage: in its log a line every tenth, on a terminal a line that rewrites itself."""

from __future__ import annotations

import io
import logging
import re

import pytest

from tasks.progress import Progress, log


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, log.name)
    return caplog


def test_elsewhere_a_thousand_steps_are_eleven_lines(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    progress = Progress("explore", 1000)
    for _ in range(1000):
        progress.step()
    found = [re.match(r"explore (\d+)/1000 \((\d+)%\) \|", line) for line in said.messages]
    assert [(int(one[1]), int(one[2])) for one in found if one] == [
        (max(1, 100 * tenth), 10 * tenth) for tenth in range(11)
    ]
    assert len(said.messages) == 11
    assert shown.getvalue() == ""


def test_on_a_terminal_every_step_rewrites_the_line_and_the_last_one_ends_it(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    progress = Progress("score", 40)
    for _ in range(40):
        progress.step()
    start, *lines = shown.getvalue().split("\r\x1b[K")
    assert start == ""
    assert [line.partition(" (")[0] for line in lines] == [f"score {done}/40" for done in range(1, 41)]
    assert [line.endswith("\n") for line in lines] == [False] * 39 + [True]
    assert len(said.messages) == 11  # the log is the same


def test_what_was_finished_before_says_nothing_of_the_time_left(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two units in four seconds, so two more are four seconds away."""
    clock = Clock()
    monkeypatch.setattr("tasks.progress.time", clock)
    progress = Progress("train_agent", 10, done=6)
    clock.now += 4
    progress.step("loss 0.500", count=2)
    assert said.messages == ["train_agent 8/10 (80%) | 0.50/s | 4 s left | loss 0.500"]
