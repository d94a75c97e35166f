"""What each generator of reward rows is worth: ``python -m benchmarks.generators``, after a round.

From the same base a reward model is trained on the rows of the demonstrations, as ``warm_reward`` does: on all of them,
and without those of each generator in turn. Each then judges what the round's agents did, explored or held out, the
world being the truth. What was measured is kept, and a benchmark that was stopped goes on: delete its file to begin
anew.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from models.inference import TorchEngine
from models.network import load_base
from models.roles import RewardModel
from models.training import Schedule, train
from models.tuning import Tuning, tunable
from tasks.base import location
from tasks.evaluate import Question, live
from tasks.files import CALIBRATION, ROUND, SEED, read_json
from tasks.generators import Generator
from tasks.metrics import ACCEPT
from tasks.params import Params, load_params
from tasks.records import RewardRow, read_trajectories, write_rows
from tasks.reward_data import reward_rows
from tasks.statistics import auc, classification, f1_interval
from tasks.train import calibrated, reward_samples

DEMONSTRATIONS = SEED / "demonstrations"
RESULTS = Path(".ratchet/generators.jsonl")
ALL = "all"


def asked() -> list[Question]:
    """The steps and the outcomes of what the round's search and its agents did, as the world judged."""
    verdicts = read_json(ROUND / "evaluation" / "explored.json")["verdicts"]
    explored = [one for one in read_trajectories(ROUND / "scored") if one.id in verdicts]
    judged = [replace(one, verdict=verdicts[one.id]) for one in explored]
    played = [one for one in read_trajectories(ROUND / "evaluation") if one.episode.last.screenshot]
    return [question for trajectory in (*judged, *played) for question in live(trajectory)]


def taught(without: str, params: Params) -> RewardModel:
    """A reward model that has learnt from all rows but those of a generator."""
    network = load_base(location("reward"), params.numerics.dtype, params.prompt.screenshots)
    network = tunable(network, Tuning(**params.tune.model_dump()), params.seed)
    made = partial(reward_rows, accept=0.0, max_negatives=params.filter.max_negatives, seed=params.seed)
    off = [] if without == ALL else [Generator(without)]
    settings = params.warm_reward
    schedule = Schedule(settings.updates, settings.batch_rows, settings.learning_rate, params.seed)
    with TemporaryDirectory(prefix="ratchet-generators-") as kept:
        rows = Path(kept) / "rows.parquet"
        write_rows(rows, RewardRow, made(list(read_trajectories(DEMONSTRATIONS)), without=off))
        samples = reward_samples(DEMONSTRATIONS, network, params.reward.ranking, rows)
        train(network, samples, schedule, Path(kept), _quiet)
    return RewardModel(TorchEngine(network), calibrated(network, DEMONSTRATIONS / CALIBRATION))


def _quiet(update: int, loss: float) -> None:
    """The table is the progress."""


def figures(model: RewardModel, questions: Sequence[Question]) -> dict[str, Any]:
    """Of steps and of outcomes: area under the curve, F1 with its interval, precision."""
    scored = [(question, model.fresh().score([question.context], [[question.action]])[0][0]) for question in questions]
    found: dict[str, Any] = {}
    for query in ("step", "outcome"):
        pairs = [(bool(one.about["label"]), score) for one, score in scored if one.about["query"] == query]
        labels, scores = [label for label, _ in pairs], [score for _, score in pairs]
        found[query] = {
            "n": len(labels),
            "auc": auc(labels, scores),
            "f1": classification(labels, scores, ACCEPT).f1,
            "interval": f1_interval(labels, scores, 0, ACCEPT),
            "precision": classification(labels, scores, ACCEPT).precision,
        }
    return found


def table(lines: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A row for each arm."""
    yield f"{'without':14} {'steps AUC':>9} {'F1':>18} {'outcomes AUC':>12} {'F1':>18} {'precision':>9}"
    for line in lines:
        step, outcome = line["step"], line["outcome"]
        yield (
            f"{line['without']:14} {_figure(step['auc']):>9} {_spread(step):>18} {_figure(outcome['auc']):>12} "
            f"{_spread(outcome):>18} {_figure(outcome['precision']):>9}"
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _spread(query: dict[str, Any]) -> str:
    low, high = query["interval"] or (None, None)
    return f"{_figure(query['f1'])} [{_figure(low)}, {_figure(high)}]"


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    params = load_params()
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    questions = asked()
    for without in (ALL, *Generator):
        if without in {line["without"] for line in lines}:
            continue
        lines.append({"without": str(without), **figures(taught(without, params), questions)})
        with RESULTS.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(f"{len(lines)} of {1 + len(Generator)}: without {without}", flush=True)
    print("\n".join(table(lines)))
    print(json.dumps({line["without"]: line["outcome"]["auc"] for line in lines}))


if __name__ == "__main__":
    main()
