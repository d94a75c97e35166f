"""What the audit asks about: held-out pairs, those of unseen goals, live candidates, live outcomes and canaries.

All labels are the world's. A pair is a row of reward data from an oracle's episode that the world judged a success.
A live candidate is right when it brings the goal nearer (:meth:`tasks.evidence.ground.Ground.right`). An outcome is
right when the world says so where the episode ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from environments.oracles import pages
from environments.registry import load_goals, open_world
from environments.types import Action, End, Episode, Goal, Instance, World, WorldError
from models.prompts import context_at
from tasks.acceptance import Bar
from tasks.audit.cases import Case, Labelled, Part, outcome_case, pair_case, step_cases, trajectory_of
from tasks.audit.judges import Chance
from tasks.demonstrate import demonstrate
from tasks.evidence.canaries import canaries
from tasks.evidence.ground import Ground, Steps
from tasks.params import Explore, Params
from tasks.progress import log
from tasks.reward_data import reward_rows
from tasks.search import Proposer, Search, rollouts

ROLLOUTS = 8  # of an agent in an instance: the N of best-of-N among outcomes
HEAT = 2.0  # how much hotter than in exploration the weak agent samples


@dataclass(frozen=True, slots=True)
class Players:
    """The agents that act live: ``weak`` samples hot, ``middling`` is the champion as it explores."""

    weak: Proposer
    middling: Proposer


def instances_of(params: Params, per_goal: int, first_seed: int) -> list[tuple[Part, Instance]]:
    """The goal instances of the audit: those of the training goals, and of unseen ones that have an oracle.

    Unseen are the goals of the other files beside ``params.goals``, where that is a file: as many as there are
    training goals at the most, spread evenly over those files.
    """
    seen = load_goals(Path(params.goals))
    beside = load_goals(Path(params.goals).parent) if Path(params.goals).is_file() else {}
    unseen = [goal for goal in beside.values() if goal.id not in seen and goal.page in pages()]
    stride = max(1, -(-len(unseen) // len(seen)))
    parts: list[tuple[Part, Goal]] = [("held-out", goal) for goal in seen.values()]
    parts += [("unseen", goal) for goal in unseen[::stride]]
    return [(part, Instance(goal, first_seed + n)) for part, goal in parts for n in range(per_goal)]


def gather(part: Part, instance: Instance, players: Players, settings: Explore, seed: str) -> list[Labelled]:
    """The trajectories of one instance with their cases; of an unseen goal, the demonstration alone.

    Pairs are made later (:func:`with_pairs`), from all demonstrations together. A world that breaks leaves out what
    it broke.
    """
    found: list[Labelled] = []
    with closing(open_world(instance.goal.world)) as world:
        try:
            found += _demonstrated(world, instance, part)
            if part == "held-out":
                solved = next((item.trajectory.episode for item in found), None)
                found += _canaries(world, instance, solved)
                found += _rolled_out(world, instance, players.weak, "weak", _hotter(settings), seed)
                found += _rolled_out(world, instance, players.middling, "middling", settings, seed)
                found += _walked(world, instance, players.middling, settings, seed) if solved else []
        except WorldError as error:
            log.warning("%s: the world broke, and the audit goes on without the rest: %s", instance.name, error)
    return found


def with_pairs(found: Sequence[Labelled], unseen: Iterable[str], max_negatives: int, seed: int) -> list[Labelled]:
    """The same, the demonstrations with a case for each row that the generators of reward data make of them.

    ``unseen`` are the ids of goals that no model was trained on.
    """
    demonstrations = [item.trajectory for item in found if item.trajectory.id.endswith("/strong")]
    known = {trajectory.id: trajectory for trajectory in demonstrations}
    apart = set(unseen)
    rows: dict[str, list[Case]] = {}
    for row in reward_rows(demonstrations, bar=Bar(0.0), max_negatives=max_negatives, seed=seed):
        part: Part = "unseen" if row.goal in apart else "held-out"
        case = pair_case(
            known[row.trajectory], row.step, row.instruction, Action.parse(row.action), row.label, part, row.generator
        )
        rows.setdefault(row.trajectory, []).append(case)
    return [replace(item, cases=(*item.cases, *rows.get(item.trajectory.id, ()))) for item in found]


def _demonstrated(world: World, instance: Instance, part: Part) -> Iterator[Labelled]:
    """The oracle's episode where it succeeds: the strong agent's outcome, where the weaker ones play too."""
    if instance.goal.page in pages():
        episode = demonstrate(world, instance)
        if episode.acts and world.verdict():
            trajectory = trajectory_of("strong", episode, verdict=True)
            yield Labelled(trajectory, (outcome_case(trajectory, "live", "strong"),) if part == "held-out" else ())


def _canaries(world: World, instance: Instance, solved: Episode | None) -> Iterator[Labelled]:
    for name, episode, verdict in canaries(Ground(world, instance), solved):
        if not verdict:
            trajectory = trajectory_of(name, episode, verdict=False)
            yield Labelled(trajectory, (outcome_case(trajectory, "canary", name),))


def _rolled_out(
    world: World, instance: Instance, agent: Proposer, name: str, settings: Explore, seed: str
) -> Iterator[Labelled]:
    """The different ones among :data:`ROLLOUTS` sampled episodes, judged by the world where each ended."""
    search = Search(world, agent, Chance(), instance, settings, f"{seed}/{name}")
    (paths,) = rollouts(search, [replace(search.root, count=ROLLOUTS)])
    ground = Ground(world, instance)
    for place, path in enumerate(path for path in paths if path.end is not End.CRASHED):
        episode = search.episode(path)
        trajectory = trajectory_of(f"{name}-{place}", episode, ground.verdict(episode))
        yield Labelled(trajectory, (outcome_case(trajectory, "live", name, path.count),))


def _walked(world: World, instance: Instance, agent: Proposer, settings: Explore, seed: str) -> Iterator[Labelled]:
    """The agent's candidates at the steps of a walk that stays where the goal is in reach.

    The walk goes on by the most frequent candidate that is right, else by the most frequent after which the goal is
    still in reach; where there is none it ends.
    """
    ground = Ground(world, instance)
    steps, screen, end = Steps(()), ground.start.observation, None
    judged = []
    while end is None:
        context = context_at(ground.start.instruction, steps, screen)
        draw = f"{seed}/walk/{len(steps)}"
        (options,) = agent.propose([context], settings.candidates, settings.temperature, draw, likeliest=True)
        labelled = ground.right(steps, screen, options)
        judged.append([(option, right) for option, right, _ in labelled])
        going = [option for option, right, _ in labelled if right]
        going += [option for option, _, in_reach in labelled if in_reach]
        if not going:
            end = End.PRUNED
            break
        steps, screen, end = ground.take(steps, screen, going[0].action)
    trajectory = trajectory_of("walk", Episode(instance, ground.start.instruction, steps, screen, end))
    cases = [case for place, row in enumerate(judged) for case in step_cases(trajectory, place, "middling", row)]
    yield Labelled(trajectory, tuple(cases))


def _hotter(settings: Explore) -> Explore:
    return settings.model_copy(update={"temperature": HEAT * settings.temperature})


def goals_apart(instances: Iterable[tuple[Part, Instance]]) -> list[str]:
    """The ids of the unseen goals."""
    return sorted({instance.goal.id for part, instance in instances if part == "unseen"})
