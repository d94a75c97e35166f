"""The candidates of a step, scored and learnt from: sharing what they share, or not. ``python -m benchmarks.reward``.

A step has ten candidate actions and five past screenshots beside its own, as UI-Genie's. Scored are all of them: on
their shared prefix, in separate rows of one batch, and one by one. Learnt from are the same with a verdict each:
packed, in separate rows, and by TRL. TRL's ``RewardTrainer`` reads text alone, so the peer is its ``SFTTrainer``, to
which action and verdict are the completion. All use the same model and machine, in turns; figures are medians over
rounds. The last line is one JSON object. ``make peers`` sets TRL up; ``--base qwen-3b --dtype bfloat16`` is for a GPU.
"""

from __future__ import annotations

import argparse
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from benchmarks.shapes import SCREENSHOTS
from benchmarks.training import by_hand, clock, completed, opened, trajectory
from environments.types import COMPLETE, Action, Kind
from models.inference import TorchEngine
from models.network import NEGATIVE, POSITIVE, Network
from models.packing import judgement, loss
from models.prompts import Context

CANDIDATES = 10


@dataclass(frozen=True)
class Query:
    """A step and its candidates: action and label."""

    context: Context
    candidates: list[tuple[str, bool]]

    @property
    def actions(self) -> list[str]:
        return [action for action, _ in self.candidates]


def query(draw: random.Random, size: tuple[int, int]) -> Query:
    """The last step of a trajectory; its own action is right, all others are wrong."""
    context, right = trajectory(draw, SCREENSHOTS + 1, size)[-1]
    others = [Action.click(element) for element in context.observation.elements]
    others += [COMPLETE, *(Action(Kind.PRESS, text=key) for key in ("Enter", "Tab", "Escape"))]
    wrong = [str(action) for action in others if str(action) != right]
    candidates = [(right, True), *((action, False) for action in wrong[: CANDIDATES - 1])]
    return Query(context, draw.sample(candidates, CANDIDATES))


def margins(network: Network, asked: Query) -> Tensor:
    """Logits of the verdicts (candidates, 2) from separate rows, padded on the left."""
    text, shown = network.prompt(asked.context)
    answers = [network.processor.tokenizer.decode(network.answer_tokens(action)) for action in asked.actions]
    images = [[Image.open(io.BytesIO(png)).convert("RGB") for png in shown] for _ in answers]
    texts = [text + answer for answer in answers]
    inputs = network.processor(text=texts, images=images, padding=True, padding_side="left", return_tensors="pt")
    hidden = network.hidden(**{name: network.place(value) for name, value in inputs.items()}, use_cache=False)
    return network.head(hidden.last_hidden_state[:, -1], network.verdicts)


@torch.inference_mode()
def scored_in_rows(network: Network, asked: Query) -> list[float]:
    return [float(score) for score in margins(network, asked).softmax(-1)[:, 0]]


def scored_together(network: Network, asked: Query) -> list[float]:
    [scores] = TorchEngine(network).score([asked.context], [asked.actions])
    return scores


def scored_one_by_one(network: Network, asked: Query) -> list[float]:
    return [TorchEngine(network).score([asked.context], [[action]])[0][0] for action in asked.actions]


SCORING: dict[str, Callable[[Network, Query], list[float]]] = {
    "shared": scored_together,
    "separate rows": scored_in_rows,
    "one by one": scored_one_by_one,
}


def packed(network: Network, asked: Query) -> Tensor:
    return loss(network, [judgement(network, asked.context, [(*one, 1.0) for one in asked.candidates])])


def unpacked(network: Network, asked: Query) -> Tensor:
    labels = network.place(torch.tensor([0 if label else 1 for _, label in asked.candidates]))
    return functional.cross_entropy(margins(network, asked), labels)


def learnt(value_of: Callable[[Network, Query], Tensor]) -> Callable[[Network, Sequence[Query]], float]:
    """What trains on queries, an update each, and tells the seconds of all but the first."""
    return lambda network, queries: by_hand(network, len(queries), lambda number: value_of(network, queries[number]))


def trl(network: Network, queries: Sequence[Query]) -> float:
    rows = [conversation(network, asked.context, *one) for asked in queries for one in asked.candidates]
    return completed(network, rows, CANDIDATES)


def conversation(network: Network, context: Context, action: str, label: bool) -> dict[str, Any]:
    messages, images = network.message(context)
    verdict = action + (POSITIVE if label else NEGATIVE)
    answer = [{"role": "assistant", "content": [{"type": "text", "text": verdict}]}]
    return {"prompt": messages, "completion": answer, "images": [Image.open(io.BytesIO(png)) for png in images]}


TRAINING: dict[str, Callable[[Network, Sequence[Query]], float]] = {
    "packed": learnt(packed),
    "separate rows": learnt(unpacked),
    "TRL": trl,
}


def timed(way: Callable[[Network, Query], list[float]], network: Network, queries: Sequence[Query]) -> float:
    """Seconds that a way of scoring takes."""
    began = clock()
    for asked in queries:
        way(network, asked)
    return clock() - began


def assert_same(network: Network, asked: Query) -> None:
    """All of our ways must mean the same."""
    bound = 1e-3 if network.model.dtype == torch.float32 else 0.1
    first, *others = (way(network, asked) for way in SCORING.values())
    losses = [way(network, asked).item() for way in (packed, unpacked)]
    apart = max(abs(one - other) for scores in others for one, other in zip(first, scores, strict=True))
    if apart > bound or abs(losses[0] - losses[1]) > bound:
        raise SystemExit(f"scores differ by {apart}, the losses are {losses}")


def measure(network: Network, asked: argparse.Namespace) -> tuple[dict[str, float], dict[str, float]]:
    """Candidates scored a second, and rows trained a second, of each way."""
    draw = random.Random(0)
    queries = [query(draw, asked.screen) for _ in range(1 + asked.steps)]
    network.model.eval()
    assert_same(network, queries[0])
    scored: dict[str, list[float]] = {name: [] for name in SCORING}
    trained: dict[str, list[float]] = {name: [] for name in TRAINING}
    for _ in range(asked.rounds):
        network.model.eval()
        for name, way in SCORING.items():
            scored[name].append(timed(way, network, queries[1:]))
        network.model.train()
        for name, train in TRAINING.items():
            trained[name].append(train(network, queries))
    count = CANDIDATES * asked.steps

    def rates(seconds: dict[str, list[float]]) -> dict[str, float]:
        return {name: count / median(found) for name, found in seconds.items()}

    return rates(scored), rates(trained)


def main() -> None:
    asked, network = opened("reward", __doc__, "steps")
    scored, trained = measure(network, asked)
    for title, found in (("candidates scored", scored), ("rows trained", trained)):
        print(f"{title:18}  per second   ratio")
        for name, rate in found.items():
            print(f"{name:18}  {rate:10.2f}  {rate / list(found.values())[-1]:6.2f}")
    print(
        json.dumps(
            {
                "scoring_over_naive": scored["shared"] / scored["separate rows"],
                "scoring_over_one_by_one": scored["shared"] / scored["one by one"],
                "training_over_naive": trained["packed"] / trained["separate rows"],
                "training_over_trl": trained["packed"] / trained["TRL"],
            }
        )
    )


if __name__ == "__main__":
    main()
