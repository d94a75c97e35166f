"""Stages that train: the warm start from the demonstrations, and a round's retraining from the champions."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from environments.types import COMPLETE
from models.calibration import Calibration, Scale, fitted
from models.engine import members
from models.inference import TorchEngine
from models.network import Network, load_base
from models.packing import Sample, imitation, judgement, log_likelihoods, preference, referred
from models.prompts import Context, context_of
from models.roles import ENSEMBLE
from models.training import Schedule, multiplies_bfloat16, train
from models.tuning import Tuning, save_tuned, tunable, tuned_as, with_tuned
from tasks.base import location
from tasks.errors import ParamsError, StageError
from tasks.files import CALIBRATION, DEMONSTRATIONS, KNOWN, REHEARSAL, ROUND, SEED, STATE, copy, write_json, write_whole
from tasks.params import Params, Retrain, RetrainAgent, Train
from tasks.progress import Progress, log
from tasks.records import AgentRow, RewardRow, read_rows, read_trajectories
from tasks.stages import scratch

_HELD_EVERY = 8
_READINGS = 4  # of an action that is news, at most
_TOGETHER = 8  # samples read at once: those of a trajectory follow each other, and share their beginning
SamplesOf = Callable[[Path, Network], list[Sample]]


@dataclass(frozen=True, slots=True)
class _Job:
    """One training: the stage's name, its settings, what it starts from, the samples, and where it is put.

    The last folder of ``out`` is named after the role.
    """

    stage: str
    settings: Train
    start: Path | None
    samples: Callable[[Network], list[Sample]]
    out: Path


def warm_agent(params: Params) -> None:
    """A first agent from the demonstrations and the exercises. Writes ``data/seed/agent``."""

    def samples(network: Network) -> list[Sample]:
        return [*agent_samples(DEMONSTRATIONS, network), *agent_samples(REHEARSAL, network)]

    _run(_Job("warm_agent", params.warm_agent, None, samples, SEED / "agent"), params)


def warm_reward(params: Params) -> None:
    """A first reward model from the demonstrations. Writes ``data/seed/reward``."""
    samples = partial(reward_samples, DEMONSTRATIONS, ranking=params.reward.ranking)
    _run(_Job("warm_reward", params.warm_reward, None, samples, SEED / "reward"), params)


def train_agent(params: Params) -> None:
    """The challenger agent: the champion, trained on, the exercises gone over again. Writes ``data/round/agent``."""
    beta = params.train_agent.preference
    samples_of = agent_samples if beta is None else partial(_imitated_and_preferred, beta=beta)
    mixed = _with_replay(samples_of, params.train_agent, params.seed)

    def samples(network: Network) -> list[Sample]:
        return news(network, [*mixed(network), *agent_samples(REHEARSAL, network)], params.train_agent)

    _run(_Job("train_agent", params.train_agent, STATE / "agent", samples, ROUND / "agent"), params)


def train_reward(params: Params) -> None:
    """The challenger reward model: the champion, trained on, or as it is if frozen. Writes ``data/round/reward``."""
    if params.train_reward.frozen:
        write_whole(ROUND / "reward", partial(copy, STATE / "reward"))
        return
    samples_of = partial(reward_samples, ranking=params.reward.ranking)
    mixed = _with_replay(samples_of, params.train_reward, params.seed)

    def samples(network: Network) -> list[Sample]:
        attacks = ROUND / "attacks" / "reward_rows.parquet"
        return [*mixed(network), *reward_samples(KNOWN, network, params.reward.ranking, attacks)]

    _run(_Job("train_reward", params.train_reward, STATE / "reward", samples, ROUND / "reward"), params)


def agent_samples(dataset: Path, network: Network) -> list[Sample]:
    """One sample for each agent row of a dataset: the action to imitate in its context."""
    known = {trajectory.id: trajectory for trajectory in read_trajectories(dataset)}
    rows = read_rows(dataset / "agent_rows.parquet", AgentRow)
    return [imitation(network, context_of(known[row.trajectory].episode, row.step), row.action) for row in rows]


def news(network: Network, samples: Sequence[Sample], settings: RetrainAgent) -> list[Sample]:
    """The samples to learn from: preferences, and the actions less likely to it than ``settings.known``.

    Most of what an agent's own search finds, the agent does anyway, and most of a training would read that
    (docs/decisions/0058-what-is-news.md). Where there are so few that the training would read each more than
    :data:`_READINGS` times, and learn it by heart, right or wrong, the least likely of the others too.
    """
    imitated, preferred = ([sample for sample in samples if bool(sample.beta) is of] for of in (False, True))
    likely: list[float] = []
    for start in range(0, len(imitated), _TOGETHER):
        likely += [math.exp(of) for (of,) in log_likelihoods(network, imitated[start : start + _TOGETHER])]
    enough = max(sorted(likely)[: settings.updates * settings.batch_rows // _READINGS], default=0.0)
    found = [one for one, of in zip(imitated, likely, strict=True) if of < settings.known or of <= enough]
    log.info("%d of %d actions to imitate are news", sum(of < settings.known for of in likely), len(imitated))
    return [*found, *preferred]


def preference_samples(dataset: Path, network: Network, beta: float) -> list[Sample]:
    """One sample for each context of which reward rows of a dataset know both a right action and wrong ones."""
    samples = []
    for context, rows in _judged(dataset, dataset / "reward_rows.parquet"):
        right, wrong = ([row.action for row in rows if row.label is label] for label in (True, False))
        if right and wrong:
            samples.append(preference(network, context, right[0], wrong, beta))
    return samples


def _imitated_and_preferred(dataset: Path, network: Network, beta: float) -> list[Sample]:
    return [*agent_samples(dataset, network), *preference_samples(dataset, network, beta)]


def reward_samples(dataset: Path, network: Network, ranking: float, at: Path | None = None) -> list[Sample]:
    """One sample for each context that reward rows judge, the dataset's own or those of a file ``at`` another place.

    All its candidates are on one prefix.

    ``ranking`` is the weight of ranking them. Right and wrong weigh the same, among outcomes and among steps, and so do
    the generators of each: a score of 0.5 is where the evidence tips, whatever the generators happened to make many of.
    """
    judged = _judged(dataset, at or dataset / "reward_rows.parquet")
    weight = _balance(row for _, rows in judged for row in rows)
    return [
        judgement(network, context, [(row.action, row.label, weight(row)) for row in rows], ranking)
        for context, rows in judged
    ]


def _judged(dataset: Path, at: Path) -> list[tuple[Context, list[RewardRow]]]:
    """The contexts that reward rows judge, trajectories of the dataset all, and the rows of each."""
    known = {trajectory.id: trajectory for trajectory in read_trajectories(dataset)}
    grouped: dict[tuple[str, int, str], list[RewardRow]] = {}
    for row in read_rows(at, RewardRow):
        grouped.setdefault((row.trajectory, row.step, row.instruction), []).append(row)
    return [
        (context_of(known[trajectory].episode, step, instruction), rows)
        for (trajectory, step, instruction), rows in grouped.items()
    ]


def calibrated(network: Network, dataset: Path) -> Calibration:
    """What sets the network's scores of a dataset's rows right, weighed as in training; nothing where there is none."""
    if not dataset.exists():
        return Calibration()
    judged = _judged(dataset, dataset / "reward_rows.parquet")
    contexts, actions = [one for one, _ in judged], [[row.action for row in rows] for _, rows in judged]
    with network.autocast():
        scores = list(chain.from_iterable(TorchEngine(network).score(contexts, actions)))
    rows = [row for _, rows in judged for row in rows]
    weight = _balance(rows)

    def scale(outcomes: bool) -> Scale:
        asked = [(score, row) for score, row in zip(scores, rows, strict=True) if _class(row)[0] is outcomes]
        return fitted([score for score, _ in asked], [row.label for _, row in asked], [weight(row) for _, row in asked])

    found = Calibration(step=scale(outcomes=False), outcome=scale(outcomes=True))
    log.info("calibrated on %d rows: %s", len(rows), found)
    return found


def _balance(rows: Iterable[RewardRow]) -> Callable[[RewardRow], float]:
    """Weights under which each class of rows weighs the same, and so does each generator of a class."""
    counts = Counter((_class(row), row.generator) for row in rows)
    makers = Counter(of for of, _ in counts)
    return lambda row: counts.total() / (makers[_class(row)] * counts[_class(row), row.generator])


def _class(row: RewardRow) -> tuple[bool, bool]:
    return row.action == str(COMPLETE), row.label


def _with_replay(samples_of: SamplesOf, settings: Retrain, seed: int) -> Callable[[Network], list[Sample]]:
    """The round's samples, and as many of the corpus as make up the share of replay."""

    def samples(network: Network) -> list[Sample]:
        fresh = samples_of(ROUND / "rows", network)
        corpus = [sample for part in sorted((STATE / "corpus").iterdir()) for sample in samples_of(part, network)]
        return [*fresh, *replayed(corpus, settings.replay, len(fresh), seed)]

    return samples


def replayed(corpus: Sequence[Sample], share: float, fresh: int, seed: int) -> Iterable[Sample]:
    """Of the corpus as many as make up a share of all, beside so many fresh samples; all where there are fewer."""
    wanted = round(fresh * share / (1 - share))
    return random.Random(seed).sample(corpus, min(wanted, len(corpus)))


def _begin(job: _Job, params: Params, start: Path | None, seed: int) -> Network:
    """The network to train: the base, or a champion.

    Raises:
        ParamsError: the champion was trained in another way, or nothing of the base is left to train.
    """
    for name, began in tuned_as(start).items() if start else ():
        if (asked := getattr(params.tune, name)) != began:
            raise ParamsError(
                f"tune.{name} = {asked!r}: {start} was trained with {began!r}, and goes on as it began; "
                f"set tune.{name} back"
            )
    network = load_base(location(job.out.name), params.numerics.dtype, params.prompt.screenshots)
    if params.numerics.dtype == "bfloat16" and not multiplies_bfloat16(network.model.device.type):
        log.warning(
            "numerics.dtype = bfloat16: this machine does not multiply it by itself, and trains many times as long; "
            "set float32 in params.yaml"
        )
    if start is None:
        try:
            return tunable(network, Tuning(**params.tune.model_dump()), seed)
        except ValueError as error:
            raise ParamsError(str(error)) from error
    return with_tuned(network, start, trainable=True)


def _run(job: _Job, params: Params) -> None:
    """Train the model, or each member of an ensemble, which goes on from that of the champion where it has several."""
    count = params.reward.members if job.out.name == "reward" else 1
    starts = members(job.start) if job.start else [None]

    def store(folder: Path) -> None:
        folder.mkdir()
        if count == 1:
            _train(job, params, starts[0], params.seed, scratch(job.stage), folder)
            return
        for member in range(count):
            kept, made = scratch(job.stage) / str(member), folder / str(member)
            made.mkdir()
            _train(job, params, starts[member % len(starts)], params.seed + member, kept, made)
        write_json(folder / ENSEMBLE, {"together": params.reward.together})

    write_whole(job.out, store)


def _train(job: _Job, params: Params, start: Path | None, seed: int, kept: Path, folder: Path) -> None:
    """Train one model; an interrupted training goes on from ``kept``."""
    network = _begin(job, params, start, seed)
    samples, held = _parted(referred(network, job.samples(network)))
    schedule = Schedule(job.settings.updates, job.settings.batch_rows, job.settings.learning_rate, seed)
    progress = Progress(job.stage, schedule.updates)
    log.info("%s: %d readings of %d samples", job.stage, schedule.updates * schedule.batch_rows, len(samples))

    def report(done: int, value: float) -> None:
        progress.step(f"loss {value:.3f}", done - progress.done)

    try:
        losses = train(network, samples, schedule, kept, report, held)
    except FloatingPointError as error:
        raise StageError(f"{job.stage}: {error} in params.yaml") from error
    save_tuned(network, folder)
    if job.out.name == "reward":
        calibrated(network, (KNOWN if start else DEMONSTRATIONS) / CALIBRATION).write(folder)
    write_json(folder / "history.json", {"loss": losses, "samples": len(samples)})


def _parted(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """What is trained on, and every eighth preference, which is not: it tells when preferring goes too far."""
    preferences = [sample for sample in samples if sample.beta]
    held = preferences[_HELD_EVERY - 1 :: _HELD_EVERY]
    return [sample for sample in samples if sample not in held], held
