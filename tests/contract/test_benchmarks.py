"""What the benchmarks measure still plays: our contenders of ``benchmarks.worlds``."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from benchmarks.contenders import Bare, Ours, Parts, play


@pytest.mark.parametrize("contender", [Ours, Bare, Parts])
def test_a_contender_of_ours_plays(contender: type[Ours]) -> None:
    with closing(contender()) as ours:
        ours.open("click-test-2")
        played = play(ours, random.Random(0), 0.5)
        assert played["steps"] > 0
        assert played["resets"] > 0
        if isinstance(ours, Parts):
            whole = ours.seconds.pop("all")
            assert len(whole) == played["steps"]
            assert sum(map(sum, ours.seconds.values())) < 2 * sum(whole)
            assert {"frame and PNG", "mouse events", "page time", "elements, reward, done"} <= ours.seconds.keys()
