"""What each generator of reward rows is worth: ``python -m benchmarks.generators``, after a round.

Those that make rows of demonstrations are judged by first reward models: trained from the base on the demonstrations'
rows, as ``warm_reward`` does, on all of them, and without those of each generator in turn. The others make rows of what
an agent did, and are judged by the round's retraining in the same way: from the champion, on its rows and replayed
ones. First models then judge the paths that the round explored, retrained ones what its agent did, held out, the world
being the truth. Generators that made no row here are named. What was measured is kept, and a benchmark that was stopped
goes on: delete its file to begin anew.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.retraining import began_with, earlier, quiet, schedule
from models.inference import TorchEngine
from models.network import Network, load_base
from models.packing import Sample
from models.roles import RewardModel
from models.training import train
from models.tuning import Tuning, tunable, with_tuned
from tasks.acceptance import Bar
from tasks.base import location
from tasks.curriculum.plan import Plan
from tasks.evaluate import Question, live
from tasks.evidence.metrics import ACCEPT
from tasks.evidence.statistics import auc, classification, f1_interval
from tasks.files import CALIBRATION, DEMONSTRATIONS, KNOWN, ROUND, read_json
from tasks.generators import Generator
from tasks.params import Params, Train, load_params
from tasks.records import RewardRow, read_rows, read_trajectories, write_rows
from tasks.reward_data import reward_rows
from tasks.stages import pin
from tasks.train import calibrated, replayed, reward_samples

RESULTS = Path(".ratchet/generators.jsonl")
ALL = "all"
School = Callable[[str, Params], RewardModel]


def played() -> list[Question]:
    """The steps and the outcomes of what the challenger did on held-out instances, as the world judged."""
    episodes = [one for one in read_trajectories(ROUND / "evaluation") if one.id.endswith("/challenger")]
    return [question for trajectory in episodes if trajectory.episode.last.screenshot for question in live(trajectory)]


def explored() -> list[Question]:
    """The same of the paths that the round's search followed to an end."""
    verdicts = read_json(ROUND / "evaluation" / "explored.json")["verdicts"]
    paths = [one for one in read_trajectories(ROUND / "scored") if one.id in verdicts]
    return [question for one in paths for question in live(replace(one, verdict=verdicts[one.id]))]


def made(dataset: Path, without: str, params: Params, bar: Bar = Bar(0.0)) -> list[RewardRow]:  # noqa: B008 (frozen)
    """The reward rows of a dataset's trajectories, but those of a generator."""
    off = [] if without == ALL else [Generator(without)]
    negatives = params.filter.max_negatives
    paths = list(read_trajectories(dataset))
    return reward_rows(paths, bar=bar, max_negatives=negatives, seed=params.seed, without=off)


def of_round(without: str, params: Params) -> list[RewardRow]:
    """The reward rows of what the round scored, but those of a generator."""
    return made(ROUND / "scored", without, params, Plan.read().applied(params).filter.bar)


def attacked() -> list[RewardRow]:
    """The rows that the round's attack made."""
    return list(read_rows(ROUND / "attacks" / "reward_rows.parquet", RewardRow))


def first(without: str, params: Params) -> RewardModel:
    """A first reward model, that has learnt from all rows of the demonstrations but those of a generator."""
    network = tunable(_base(params), Tuning(**params.tune.model_dump()), params.seed)
    samples = _samples(DEMONSTRATIONS, made(DEMONSTRATIONS, without, params), network, params)
    return _trained(network, samples, params.warm_reward, params)


def again(without: str, params: Params) -> RewardModel:
    """The round's champion, retrained on all rows of the round but those of a generator, and as many replayed ones."""
    network = with_tuned(_base(params), began_with("reward"), trainable=True)
    fresh = _samples(ROUND / "scored", of_round(without, params), network, params)
    known = [sample for part in earlier() for sample in reward_samples(part, network, params.reward.ranking)]
    older = replayed(known, params.train_reward.replay, len(fresh), params.seed)
    attacks = _samples(KNOWN, attacked(), network, params) if without != Generator.ATTACK else []
    samples = [*fresh, *older, *attacks]
    return _trained(network, samples, params.train_reward, params)


def _base(params: Params) -> Network:
    return load_base(location("reward"), params.numerics.dtype, params.prompt.screenshots)


def _samples(dataset: Path, rows: Sequence[RewardRow], network: Network, params: Params) -> list[Sample]:
    with TemporaryDirectory(prefix="ratchet-generators-") as folder:
        file = Path(folder) / "rows.parquet"
        write_rows(file, RewardRow, rows)
        return reward_samples(dataset, network, params.reward.ranking, file)


def _trained(network: Network, samples: Sequence[Sample], settings: Train, params: Params) -> RewardModel:
    with TemporaryDirectory(prefix="ratchet-generators-") as kept:
        train(network, samples, schedule(settings, params), Path(kept), quiet)
    return RewardModel(TorchEngine(network), calibrated(network, DEMONSTRATIONS / CALIBRATION))


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
    yield f"{'school':6} {'without':14} {'steps AUC':>9} {'F1':>18} {'outcomes AUC':>12} {'F1':>18} {'precision':>9}"
    for line in lines:
        step, outcome = line["step"], line["outcome"]
        yield (
            f"{line['school']:6} {line['without']:14} {_figure(step['auc']):>9} {_spread(step):>18} "
            f"{_figure(outcome['auc']):>12} {_spread(outcome):>18} {_figure(outcome['precision']):>9}"
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _spread(query: dict[str, Any]) -> str:
    low, high = query["interval"] or (None, None)
    return f"{_figure(query['f1'])} [{_figure(low)}, {_figure(high)}]"


def schools(params: Params) -> dict[str, tuple[School, list[Question], list[Generator]]]:
    """How the worth of generators is found: what trains, what it is asked, and which generators it tells of."""
    of_demonstrations = {row.generator for row in made(DEMONSTRATIONS, ALL, params)}
    late = {row.generator for row in (*of_round(ALL, params), *attacked())} - of_demonstrations
    return {
        "first": (first, explored(), [one for one in Generator if one in of_demonstrations]),
        "again": (again, played(), [one for one in Generator if one in late]),
    }


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    params = load_params()
    pin(params.numerics)
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    asked = schools(params)
    arms = [len(generators) + 1 for _, _, generators in asked.values()]
    for school, (teach, questions, generators) in asked.items():
        for without in (ALL, *generators):
            if (school, without) in {(line["school"], line["without"]) for line in lines}:
                continue
            lines.append({"school": school, "without": str(without), **figures(teach(without, params), questions)})
            with RESULTS.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            print(f"{len(lines)} of {sum(arms)}: {school}, without {without}", flush=True)
    print("\n".join(table(lines)))
    told = {name for _, _, generators in asked.values() for name in generators}
    print(f"no row of: {', '.join(sorted(set(Generator) - told)) or 'none'}")
    print(json.dumps({f"{line['school']} {line['without']}": line["outcome"]["auc"] for line in lines}))


if __name__ == "__main__":
    main()
