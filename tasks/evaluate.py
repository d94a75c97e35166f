"""Stage evaluate: champions and challengers on held-out goal instances, the agents judged by the world itself.

The reward models judge labelled actions: held-out pairs made from oracle episodes by the same rules as training
rows, live steps and outcomes of the challenger agent, attacks and canaries. Here alone is the world's verdict read:
that on explored paths too (:mod:`tasks.evidence.explored`), which is watched and never learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from environments.oracles import known_action, pages
from environments.registry import load_goals, open_world
from environments.types import COMPLETE, Action, End, Episode, Goal, Instance, Kind, World, WorldError
from models.engine import Source
from models.prompts import Context, context_of
from models.roles import Agent, load_reward_model
from tasks import attack
from tasks.acceptance import Bar
from tasks.curriculum import Curriculum
from tasks.demonstrate import demonstrate
from tasks.evidence.canaries import canaries
from tasks.evidence.drift import divergence
from tasks.evidence.explored import judge_explored
from tasks.evidence.ground import Ground
from tasks.evidence.looks import HELD_OUT, Verdict, alike, until_settled
from tasks.evidence.metrics import Judgement, summarise, write_plots
from tasks.files import ROUND, STATE, digest, write_json, write_whole
from tasks.params import Params
from tasks.progress import log
from tasks.records import Origin, Trajectory, write_trajectories
from tasks.reward_data import reward_rows
from tasks.reward_data.rule import agrees
from tasks.search.rollout import greedy
from tasks.stages import scratch
from tasks.variations import variations
from tasks.workers import JSON, TRAJECTORIES, crew, hands, spread
from tasks.workers.serving import engines

TOGETHER = 12  # episodes that a worker plays at a time
CHUNK = 32  # questions that a worker answers at a time
MODELS = {"champion": STATE, "challenger": ROUND}


@dataclass(frozen=True, slots=True)
class Question:
    """An action in a context, whether it is right, and what :class:`Judgement` says of it but the scores."""

    context: Context
    action: Action
    about: dict[str, Any]


def run(params: Params) -> None:
    """Evaluate all four models. Writes ``data/round/evaluation``, ``metrics.json`` and ``plots``."""
    goals = load_goals(Path(params.goals))
    number = Curriculum.read(STATE / "curriculum.json").round
    first = params.evaluate.first_seed + 2 * HELD_OUT * number
    kept = scratch("evaluate")
    adapters = [folder / role for folder in MODELS.values() for role in ("agent", "reward")]
    with engines("evaluate", params, adapters) as source:
        with crew(make_player, (number, source), hands(params)) as players:
            episodes, verdicts = play(players, list(goals.values()), first, params, kept)
        demonstrations, farming = held_out(list(goals.values()), first, params, kept)
        questions = [
            *ask(of_looks(episodes, alike(verdicts)), demonstrations, params),
            *attacks(demonstrations),
            *map(canary, farming),
        ]
        units = [(f"judged-{place}.json", chunk) for place, chunk in enumerate(chunks(questions))]
        with crew(make_judge, (source,), hands(params)) as judges:
            judged = list(spread("evaluate reward models", judges, units, kept, JSON, len))
        drift = divergence(source, params.seed, hands(params), kept)
    explored = {"verdicts": judge_explored(hands(params), kept), "kl": drift}
    _write(episodes, verdicts, judged, explored)


def play(
    players: ProcessPoolExecutor, goals: Sequence[Goal], first_seed: int, params: Params, kept: Path
) -> tuple[list[Trajectory], list[Verdict]]:
    """Look at both agents on more and more instances (:func:`until_settled`).

    Returns:
        The episodes of all looks taken, and the world's verdicts on them.
    """
    episodes: list[Trajectory] = []
    seeds = {goal.id: count(first_seed) for goal in goals}

    def look_at(look: int, added: Mapping[str, int]) -> list[Verdict]:
        instances = [Instance(goal, seed) for goal in goals for seed in islice(seeds[goal.id], added[goal.id])]
        units = [
            (f"{name}-{look}-{first}", (name, instances[first : first + TOGETHER]))
            for name in MODELS
            for first in range(0, len(instances), TOGETHER)
        ]
        played = list(spread("evaluate agents", players, units, kept, TRAJECTORIES, _steps))
        episodes.extend(played)
        return _verdicts(played, look)

    asked = params.evaluate
    return episodes, until_settled(list(seeds), asked.per_goal, asked.looks, params.decide.alpha, look_at)


def of_looks(episodes: Iterable[Trajectory], verdicts: Iterable[Verdict]) -> list[Trajectory]:
    """The episodes of the instances that the verdicts are on."""
    known = {(verdict["goal"], verdict["seed"]) for verdict in verdicts}
    return [one for one in episodes if (one.episode.instance.goal.id, one.episode.instance.seed) in known]


def _steps(unit: tuple[str, Sequence[Instance]]) -> int:
    """How many actions it may take to play a unit."""
    return _steps_of(unit[1])


def _steps_of(instances: Sequence[Instance]) -> int:
    return sum(instance.goal.max_steps for instance in instances)


def make_player(number: int, source: Source) -> Callable[[tuple[str, Sequence[Instance]]], list[Trajectory]]:
    """What plays some held-out instances with one of the two agents."""
    agents = {name: source.engine(folder / "agent") for name, folder in MODELS.items()}
    hashes = {name: digest(folder / "agent") for name, folder in MODELS.items()}

    def play(unit: tuple[str, Sequence[Instance]]) -> list[Trajectory]:
        name, instances = unit
        return [
            Trajectory(
                f"round-{number:04d}/{episode.instance.name}/{name}",
                number,
                Origin.EVALUATION,
                episode,
                agent=hashes[name],
                verdict=verdict,
            )
            for episode, verdict in greedy(Agent(agents[name].fresh()), instances)
        ]

    return play


def chunks(questions: Sequence[Question]) -> list[list[Question]]:
    """The questions in portions of some :data:`CHUNK`, those of one context in the same one."""
    found: list[list[Question]] = [[]]
    for group in _by_context(questions).values():
        if len(found[-1]) >= CHUNK:
            found.append([])
        found[-1] += group
    return found if questions else []


def _by_context(questions: Iterable[Question]) -> dict[Context, list[Question]]:
    grouped: dict[Context, list[Question]] = {}
    for question in questions:
        grouped.setdefault(question.context, []).append(question)
    return grouped


def make_judge(source: Source) -> Callable[[Sequence[Question]], list[dict[str, Any]]]:
    """What scores questions with both reward models."""
    judges = {name: load_reward_model(source, folder / "reward") for name, folder in MODELS.items()}

    def judge(questions: Sequence[Question]) -> list[dict[str, Any]]:
        grouped = _by_context(questions)
        answered = [{**question.about} for group in grouped.values() for question in group]
        actions = [[question.action for question in group] for group in grouped.values()]
        for name, reward in judges.items():
            scores = reward.fresh().score(list(grouped), actions)
            for judgement, score in zip(answered, chain.from_iterable(scores), strict=True):
                judgement[name] = score
        return answered

    return judge


def held_out(
    goals: Sequence[Goal], first_seed: int, params: Params, kept: Path
) -> tuple[list[Trajectory], list[Trajectory]]:
    """Of held-out instances of the goals that have an oracle: demonstrations, and :mod:`tasks.evidence.canaries`.

    The demonstrations are oracle episodes that the world says are right, and these played otherwise. An instance under
    which the world breaks has neither.
    """
    seeds = range(params.evaluate.pairs_per_goal)
    units = [
        (f"held-out-{place}", [Instance(goal, first_seed + HELD_OUT + n) for n in seeds])
        for place, goal in enumerate(goals)
        if goal.page in pages()
    ]
    with crew(make_examples, (), hands(params)) as workers:
        examples = list(spread("demonstrate held out", workers, units, kept, TRAJECTORIES, _steps_of))
    farming = [one for one in examples if one.origin is Origin.EVALUATION]
    return [one for one in examples if one.origin is not Origin.EVALUATION], farming


def make_examples() -> Callable[[Sequence[Instance]], list[Trajectory]]:
    """What demonstrates some instances of a goal and farms them."""

    def demonstrated(world: World, instance: Instance) -> list[Trajectory]:
        episode = demonstrate(world, instance)
        if not (episode.acts and world.verdict()):
            return []
        solved = Trajectory(f"held-out/{instance.name}/0", 0, Origin.DEMONSTRATION, episode)
        return [solved, *variations(world, solved), *_farming(world, episode)]

    def examples(instances: Sequence[Instance]) -> list[Trajectory]:
        found = list[Trajectory]()
        with closing(open_world(instances[0].goal.world)) as world:
            for instance in instances:
                try:
                    found += demonstrated(world, instance)
                except WorldError as error:
                    log.warning("%s: not demonstrated: %s", instance.name, error)
        return found

    return examples


def _farming(world: World, demonstration: Episode) -> Iterator[Trajectory]:
    """The canaries of an instance, each another episode, but for those that reach its goal all the same."""
    instance, seen = demonstration.instance, set[Episode]()
    for name, episode, verdict in canaries(Ground(world, instance), demonstration):
        if not verdict and episode.last.screenshot and episode not in seen:
            seen.add(episode)
            yield Trajectory(f"held-out/{instance.name}/{name}", 0, Origin.EVALUATION, episode, verdict=False)


def canary(trajectory: Trajectory) -> Question:
    """Its end, which is wrong."""
    return _question(trajectory.id, trajectory.episode, len(trajectory.episode.acts), COMPLETE, False, "canary")


def ask(episodes: Sequence[Trajectory], demonstrations: Sequence[Trajectory], params: Params) -> list[Question]:
    """The questions put to both reward models, those of one context side by side."""
    questions = _pairs(demonstrations, params)
    for trajectory in episodes:
        if trajectory.id.endswith("/challenger") and trajectory.episode.end is not End.CRASHED:
            questions += live(trajectory)
    return questions


def attacks(demonstrations: Sequence[Trajectory]) -> list[Question]:
    """At each step of the demonstrations the right action, and those that are tried against it."""
    return [
        _question(f"{one.id}#{step}", one.episode, step, action, place == 0, "attack")
        for one in demonstrations
        if one.origin is Origin.DEMONSTRATION
        for step in range(len(one.episode.acts) + 1)
        for place, action in enumerate(attack.options(one, step))
    ]


def _pairs(demonstrations: Sequence[Trajectory], params: Params) -> list[Question]:
    """Held-out pairs: rows of the demonstrations, made by the generators of training rows."""
    known = {one.id: one.episode for one in demonstrations}
    rows = reward_rows(demonstrations, bar=Bar(0.0), max_negatives=params.filter.max_negatives, seed=params.seed)
    return [
        _question(
            row.id, known[row.trajectory], row.step, Action.parse(row.action), row.label, "pairs", row.instruction
        )
        for row in sorted(rows, key=lambda row: (row.trajectory, row.step, row.instruction))
    ]


def live(trajectory: Trajectory) -> list[Question]:
    """Outcome, by the world's verdict; and steps, by the oracle, up to the first it would not have taken.

    That one is wrong where the episode failed; where it did not, it was another right way, and nothing is asked from
    there on. An oracle that does not know its way, such as on a screen that no script leads to, is asked no further.
    """
    episode = trajectory.episode
    end = len(episode.acts)
    verdict = bool(trajectory.verdict)
    questions = [_question(f"{trajectory.id}#{end}", episode, end, COMPLETE, verdict, "live")]
    if episode.instance.goal.page not in pages():
        return questions
    taken: list[Action] = []
    for place, step in enumerate(episode.acts):
        right = known_action(episode.instance.goal.page, episode.instruction, step.observation, taken)
        if right is None:
            break
        same = agrees(step.action, right, step.observation)
        if verdict and not same:
            break
        questions.append(_question(f"{trajectory.id}#{place}", episode, place, step.action, same, "live"))
        if not same:
            break
        taken.append(step.action)
    return questions


def _question(
    name: str,
    episode: Episode,
    place: int,
    action: Action,
    label: bool,
    source: str,
    instruction: str = "",
) -> Question:
    query = "outcome" if action.kind is Kind.COMPLETE else "step"
    about = {"id": name, "query": query, "source": source, "kind": action.kind.value, "label": label}
    return Question(context_of(episode, place, instruction), action, about)


def _verdicts(episodes: Sequence[Trajectory], look: int) -> list[Verdict]:
    """The world's verdicts on both agents, a line a goal instance; one on which the world broke has none."""
    broken = {one.episode.instance for one in episodes if one.episode.end is End.CRASHED}
    verdicts: dict[str, Verdict] = {}
    for trajectory in (one for one in episodes if one.episode.instance not in broken):
        instance, name = trajectory.episode.instance, trajectory.id.rpartition("/")[2]
        line = {"look": look, "goal": instance.goal.id, "tier": instance.goal.tier, "seed": instance.seed}
        verdicts.setdefault(instance.name, line)[name] = bool(trajectory.verdict)  # type: ignore[arg-type,literal-required]
    return list(verdicts.values())


def _write(
    episodes: Sequence[Trajectory],
    verdicts: Sequence[Verdict],
    judged: Sequence[Judgement],
    explored: Mapping[str, Any],
) -> None:
    judgements, assaults, farming = (
        [one for one in judged if one["source"] in sources] for sources in (("pairs", "live"), ("attack",), ("canary",))
    )

    def store(folder: Path) -> None:
        folder.mkdir()
        write_trajectories(folder, episodes)
        write_json(folder / "episodes.json", verdicts)
        write_json(folder / "judgements.json", judgements)
        write_json(folder / "attacks.json", assaults)
        write_json(folder / "canaries.json", farming)
        write_json(folder / "explored.json", explored)

    write_whole(ROUND / "evaluation", store)
    write_plots(ROUND / "plots", alike(verdicts), judgements)
    write_json(ROUND / "metrics.json", summarise(verdicts, judgements, assaults, farming))
