"""``ratchet evaluate reward``: gather cases, let every judge score them, say how well each does.

Everything is left under ``.ratchet/audit``: ``audit.json`` with all figures, plots, and the material. What an
interrupted audit has finished is kept, and gone on from by the same command.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from environments.types import Action, GoalError, Instance
from models.engine import Source
from models.prompts import Context, context_of
from models.roles import Agent, load_reward_model
from tasks import versions
from tasks.audit.cases import LABELLED, Labelled, Part
from tasks.audit.judges import Chance, Likelihood, Verifier
from tasks.audit.material import Players, gather, goals_apart, instances_of, with_pairs
from tasks.audit.summary import Scores, summarise, table
from tasks.audit.vision import Vision, every_screen, keyframes
from tasks.base import location
from tasks.errors import ParamsError, WorkspaceError
from tasks.files import ROUND, SEED, STATE, WORK, digest, remove, write_json, write_whole
from tasks.params import Params, load_params
from tasks.search import Scorer
from tasks.stages import prepare
from tasks.workers import JSON, crew, hands, spread

if TYPE_CHECKING:
    from models.inference import TorchEngine

OUT = WORK / "audit"
APART = 500_000  # seeds after evaluate.first_seed, where those of the audit begin: beyond the first 500 rounds' own
MAX_NEGATIVES = 6  # of a step, among the pairs: more than are trained on, so that every generator has its say
ADAPTERS = {"seed": SEED / "reward", "champion": STATE / "reward"}
AGENTS = {"weak": SEED / "agent", "middling": STATE / "agent"}


@versions.round_lock(versions.AUDIT)
def run(per_goal: int, first_seed: int | None, vision: str, rounds: Sequence[int] = ()) -> list[str]:
    """Audit all judges. Returns the lines for people; ``.ratchet/audit`` and MLflow have the rest.

    Args:
        first_seed: of the goal instances; None for those that nothing else uses.
        vision: a model at ``OPENAI_BASE_URL`` that judges too; "" for none.
        rounds: whose reward models judge too, promoted or not.

    Raises:
        ParamsError: the seeds are not held out, or the goals cannot be read.
        WorkspaceError: there are no champions yet, or no such round.
        BusyError: a round is at work in this workspace.
    """
    params = load_params()
    prepare("evaluate_reward", params.numerics)
    first = params.evaluate.first_seed + APART if first_seed is None else first_seed
    if first < params.evaluate.first_seed:
        raise ParamsError(f"--first-seed {first}: seeds below evaluate.first_seed = {params.evaluate.first_seed} train")
    if missing := [str(path) for path in (*ADAPTERS.values(), *AGENTS.values()) if not path.is_dir()]:
        raise WorkspaceError(f"{missing[0]}: not there; `ratchet round` makes it, `ratchet pull` fetches it")
    try:
        instances = instances_of(params, per_goal, first)
    except GoalError as error:
        raise ParamsError(str(error)) from error
    scratch = _scratch(params, instances, vision)
    with _trained(rounds) as adapters:
        found, names = _gather(params, instances, scratch), _judges(adapters, vision)
        scores = _score(names, adapters, vision, found, params, scratch)
        about = _about(params, per_goal, first, names, adapters)
    summary = summarise(found, scores, params.filter.bar)
    _write(about, summary, found)
    run_id = _log(about, summary)
    remove(scratch)
    return [*table(summary), f"all figures: {OUT}/audit.json, plots beside it; MLflow run {run_id}"]


def make_gatherer(params: Params, source: Source) -> Callable[[tuple[Part, Instance]], list[Labelled]]:
    """What makes the material of one instance, with the agents of the workspace."""
    engines = {folder: source.engine(folder) for folder in _distinct(AGENTS).values()}
    folders = {name: _distinct(AGENTS).get(name, AGENTS["middling"]) for name in AGENTS}

    def work(unit: tuple[Part, Instance]) -> list[Labelled]:
        agents = {name: Agent(engines[folder].fresh()) for name, folder in folders.items()}
        part, instance = unit
        settings = params.explore.model_copy(update={"budget_steps": None, "budget_seconds": None})
        return gather(part, instance, Players(**agents), settings, f"audit/{params.seed}/{instance.name}")

    return work


def make_scorer(
    source: Source, adapters: Mapping[str, Path], vision: str
) -> Callable[[tuple[str, Sequence[Labelled]]], list[dict[str, Any]]]:
    """What lets one judge score the cases of one instance."""

    @lru_cache(maxsize=1)  # units come judge by judge: one network at a time is in memory
    def engine(adapter: Path) -> TorchEngine:
        return cast("TorchEngine", source.engine(adapter))  # a source without a server

    reward = lru_cache(maxsize=1)(partial(load_reward_model, source))

    def judge(name: str, instance: Instance) -> Scorer:
        if name in adapters:
            return reward(adapters[name]).fresh()
        plain: dict[str, Callable[[], Scorer]] = {
            "chance": Chance,
            "likelihood": lambda: Likelihood(engine(STATE / "agent").fresh()),
            "verifier": lambda: Verifier(instance),
            "vision": lambda: Vision(vision, every_screen),
            "vision, keyframes": lambda: Vision(vision, keyframes),
        }
        return plain[name]()

    def work(unit: tuple[str, Sequence[Labelled]]) -> list[dict[str, Any]]:
        name, items = unit
        asked = judge(name, items[0].trajectory.episode.instance)
        return [_ask(asked, item, whole_path=name in adapters) for item in items]

    return work


def _ask(judge: Scorer, item: Labelled, whole_path: bool) -> dict[str, Any]:
    """The scores of a trajectory's cases, in their order, and of the steps that were taken."""
    taken = item.taken if whole_path and any(case.query == "outcome" for case in item.cases) else []
    episode = item.trajectory.episode
    asked = [(context_of(episode, case.step, case.instruction), Action.parse(case.action)) for case in item.cases]
    alike: dict[Context, dict[Action, float]] = {}
    for context, action in [*asked, *taken]:
        alike.setdefault(context, {})[action] = math.nan
    if alike:
        rows = judge.score(list(alike), [list(row) for row in alike.values()])
        for known, row in zip(alike.values(), rows, strict=True):
            known.update(zip(known, row, strict=True))

    def scores(of: Iterable[tuple[Context, Action]]) -> list[float | None]:
        found = (alike[context][action] for context, action in of)
        return [None if math.isnan(score) else score for score in found]

    return {"cases": scores(asked), "path": scores(taken)}


def _gather(params: Params, instances: Sequence[tuple[Part, Instance]], scratch: Path) -> list[Labelled]:
    units = [(instance.name, (part, instance)) for part, instance in instances]
    with crew(make_gatherer, (params, _source(params)), hands(params)) as workers:
        found = list(
            spread("audit: cases", workers, units, scratch / "material", LABELLED, lambda unit: unit[1].goal.max_steps)
        )
    return with_pairs(found, goals_apart(instances), MAX_NEGATIVES, params.seed)


def _score(
    names: Sequence[str],
    adapters: Mapping[str, Path],
    vision: str,
    found: Sequence[Labelled],
    params: Params,
    scratch: Path,
) -> dict[str, list[Scores]]:
    grouped = groupby(found, key=lambda item: item.trajectory.episode.instance.name)
    groups = [list(group) for _, group in grouped]
    units = [(f"{name}-{place}.json", (name, group)) for name in names for place, group in enumerate(groups)]
    with crew(make_scorer, (_source(params), adapters, vision), hands(params)) as workers:
        rows = iter(list(spread("audit: scores", workers, units, scratch / "scores", JSON)))
    return {name: [Scores(**next(rows)) for _ in found] for name in names}


@contextmanager
def _trained(rounds: Iterable[int]) -> Iterator[dict[str, Path]]:
    """The reward models that judge, by name: those that rounds trained lie there for as long as the block lasts."""
    with ExitStack() as held:
        found = {
            f"round {number}": held.enter_context(versions.checked_out(versions.tag_of(number), str(ROUND / "reward")))
            for number in rounds
        }
        yield _distinct({"seed": ADAPTERS["seed"], **found, "champion": ADAPTERS["champion"]})


def _judges(adapters: Iterable[str], vision: str) -> list[str]:
    return [
        "chance",
        "likelihood",
        *adapters,
        "verifier",
        *(["vision", "vision, keyframes"] if vision else []),
    ]


def _distinct(folders: Mapping[str, Path]) -> dict[str, Path]:
    """Without what is the same as the last one: before the first promotion, the seed models are the champions."""
    *_, last = folders.values()
    return {name: path for name, path in folders.items() if path == last or digest(path) != digest(last)}


def _source(params: Params) -> Source:
    return Source(
        {role: location(role) for role in ("agent", "reward")}, params.numerics.dtype, params.prompt.screenshots
    )


def _scratch(params: Params, instances: Sequence[tuple[Part, Instance]], vision: str) -> Path:
    """Where finished work is kept: named by all that it depends on."""
    models = [digest(path) for path in (*ADAPTERS.values(), *AGENTS.values())]
    asked = [(part, asdict(instance)) for part, instance in instances]
    inputs = [params.model_dump(mode="json"), models, asked, vision, versions.head()]
    return WORK / "work" / f"audit-{hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:12]}"


def _about(
    params: Params, per_goal: int, first: int, names: Sequence[str], adapters: Mapping[str, Path]
) -> dict[str, str]:
    return {
        "git.commit": versions.head(),
        "ratchet.goals": params.goals,
        "ratchet.instances": f"{per_goal} of each goal from seed {first}",
        "ratchet.judges": ", ".join(names),
        **{f"ratchet.{name.replace(' ', '_')}_reward": digest(path) for name, path in {**ADAPTERS, **adapters}.items()},
        **{f"ratchet.{name}_agent": digest(path) for name, path in AGENTS.items()},
    }


def _write(about: Mapping[str, str], summary: Mapping[str, Any], found: Sequence[Labelled]) -> None:
    from tasks.audit.plots import draw

    def store(folder: Path) -> None:
        folder.mkdir()
        write_json(folder / "audit.json", {"about": about, **summary})
        draw(folder / "plots", summary)
        LABELLED.write(folder / "material", found)

    write_whole(OUT, store)


def _log(about: Mapping[str, str], summary: Mapping[str, Any]) -> str:
    from tasks import lineage

    return lineage.log_audit(about, _values(summary["judges"]), OUT)


def _values(figures: Any) -> Any:
    """Nested figures without their intervals, as MLflow shows them."""
    if not isinstance(figures, Mapping):
        return figures
    return figures["value"] if "value" in figures else {key: _values(value) for key, value in figures.items()}
