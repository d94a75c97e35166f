"""Stage attack: where the champion reward model is fooled, for its successor to learn from.

REFORM (Pathmanathan et al. 2025): a reward model is searched for what it wrongly likes, and repaired with it. The steps
are those of the seed's demonstrations, of which the world said what is right; at each, actions that rules know to be
wrong are tried on the model, `complete` among them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path

from environments.types import COMPLETE, Action
from models.engine import Source
from models.prompts import context_of
from models.roles import load_reward_model
from tasks.files import KNOWN, ROUND, STATE, digest, write_whole
from tasks.generators import Generator
from tasks.params import Params
from tasks.records import Origin, RewardRow, Trajectory, read_trajectories, write_rows
from tasks.reward_data.draft import Draft
from tasks.reward_data.rule import siblings, wrong_actions
from tasks.stages import scratch
from tasks.workers import JSON, crew, hands, spread
from tasks.workers.serving import engines

MOST = 12  # wrong actions tried on a step
LIKED = 0.5  # p(+) from which a wrong action is liked


@dataclass(frozen=True, slots=True)
class Assault:
    """A step of a demonstration and what was tried on it: the actions, the right one first, and their scores."""

    trajectory: str
    step: int
    actions: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def liked(self) -> list[str]:
        """The wrong actions that score as high as the right one or from :data:`LIKED` on, the best liked first."""
        wrong = sorted(zip(self.scores[1:], self.actions[1:], strict=True), key=lambda pair: (-pair[0], pair[1]))
        return [action for score, action in wrong if score >= min(self.scores[0], LIKED)]


def run(params: Params) -> None:
    """Attack the champion reward model. Writes ``data/round/attacks``: reward rows of trajectories in the corpus."""
    demonstrations = [one for one in read_trajectories(KNOWN) if one.origin is Origin.DEMONSTRATION]
    switched_off = Generator.ATTACK in params.filter.without
    seed = f"{params.seed}/{digest(STATE / 'reward')}"  # other steps, once there is another model to attack
    drawn = draw(demonstrations, 0 if switched_off else params.attack.steps, seed)
    assaults = _tried(params, drawn) if drawn else []
    known = {one.id: one for one in demonstrations}
    rows = [row for assault in assaults for row in rows_of(known[assault.trajectory], assault, params.attack.per_step)]

    def write(folder: Path) -> None:
        folder.mkdir()
        write_rows(folder / "reward_rows.parquet", RewardRow, rows)

    write_whole(ROUND / "attacks", write)


def _tried(params: Params, drawn: Sequence[tuple[Trajectory, list[int]]]) -> list[Assault]:
    units = [(one.id, (one, steps)) for one, steps in drawn]
    with (
        engines("attack", params, [STATE / "reward"]) as source,
        crew(make_worker, (source,), hands(params)) as workers,
    ):
        lines = list(spread("attack", workers, units, scratch("attack"), JSON))
    return [Assault(one["trajectory"], one["step"], *map(tuple, (one["actions"], one["scores"]))) for one in lines]


def draw(demonstrations: Sequence[Trajectory], count: int, seed: str) -> list[tuple[Trajectory, list[int]]]:
    """``count`` steps of the demonstrations, their ends among them: of each trajectory the numbers of its steps."""
    places = [(number, step) for number, one in enumerate(demonstrations) for step in range(len(one.episode.acts) + 1)]
    chosen = sorted(random.Random(seed).sample(places, min(count, len(places))))
    return [
        (demonstrations[number], [step for _, step in group])
        for number, group in groupby(chosen, key=lambda place: place[0])
    ]


def options(trajectory: Trajectory, step: int) -> list[Action]:
    """The right action at a step of a demonstration, and the :data:`MOST` most tempting that are known to be wrong."""
    acts = trajectory.episode.acts
    if step == len(acts):
        last = acts[-1].action
        return [COMPLETE, *islice(chain([last], siblings(trajectory.episode.last, last)), MOST)]
    return [acts[step].action, *islice(chain([COMPLETE], wrong_actions(trajectory, step)), MOST)]


def make_worker(source: Source) -> Callable[[tuple[Trajectory, Sequence[int]]], list[dict[str, object]]]:
    """What tries everything at some steps of a demonstration."""
    reward = load_reward_model(source, STATE / "reward")

    def attack(unit: tuple[Trajectory, Sequence[int]]) -> list[dict[str, object]]:
        trajectory, steps = unit
        tried = [options(trajectory, step) for step in steps]
        scores = reward.fresh().score([context_of(trajectory.episode, step) for step in steps], tried)
        return [
            {"trajectory": trajectory.id, "step": step, "actions": [str(one) for one in actions], "scores": row}
            for step, actions, row in zip(steps, tried, scores, strict=True)
        ]

    return attack


def rows_of(trajectory: Trajectory, assault: Assault, per_step: int) -> Iterable[RewardRow]:
    """The right action, and the ``per_step`` best liked of the wrong ones; nothing where none was liked."""
    liked = assault.liked[:per_step]
    for number, action in enumerate([assault.actions[0], *liked] if liked else []):
        draft = Draft(trajectory, assault.step, Action.parse(action), Generator.ATTACK, number == 0, 0.0)
        yield draft.row(number)
