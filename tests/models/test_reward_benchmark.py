"""The ways that ``benchmarks.reward`` and ``benchmarks.training`` time mean the same."""

from __future__ import annotations

import random

from benchmarks import reward, training
from models.network import Network

SIZE = (160, 210)


def test_candidates_have_the_same_scores_and_losses_in_every_way(tuned: Network) -> None:
    query = reward.query(random.Random(0), SIZE)
    assert len(set(query.actions)) == reward.CANDIDATES
    assert [label for _, label in query.candidates].count(True) == 1
    reward.assert_same(tuned, query)


def test_steps_have_the_same_loss_packed_and_in_rows(tuned: Network) -> None:
    training.assert_same_loss(tuned, training.trajectory(random.Random(0), 3, SIZE))
