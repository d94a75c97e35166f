"""Stage ``decide``: agent and reward model, each promoted by a paired test; the next state.

Both are judged on the same cases, champion against challenger, so that how hard a case is cancels out. The agents'
test is sequential, over the looks that evaluate took at them (:mod:`tasks.evidence.looks`). The monitors must not
raise an alarm, and nothing else may speak against a reward model (:mod:`tasks.evidence.objections`). A champion under
which the first round after its promotion raises an alarm is rolled back: the state keeps the one that it replaced in
``before`` for as long.
The reward model's judgements of one trajectory are related, and the test counts each as a case of its own: its
p-value is somewhat too small where judgements of the same trajectory agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from environments.types import End
from tasks.acceptance import Bar, best, sureness
from tasks.curriculum import Attempt, Curriculum
from tasks.curriculum.balance import Setting, rebalanced
from tasks.curriculum.plan import Plan
from tasks.errors import RecordError
from tasks.evidence.looks import ALIKE, Verdict, pairs_by_look
from tasks.evidence.metrics import Judgement, correct, success
from tasks.evidence.monitors import in_doubt, raised, watch
from tasks.evidence.objections import objections
from tasks.evidence.statistics import SequentialTest, sequential_test
from tasks.files import ROUND, STATE, copy, read_json, write_json, write_whole
from tasks.params import Params
from tasks.propose import setting_of
from tasks.records import Origin, Trajectory, read_trajectories


def run(params: Params) -> None:
    """Write ``data/round/state/`` (the state of the next round), ``decision.json`` and ``monitors.json``.

    Raises:
        RecordError: when the corpus already has this round, or a record cannot be read.
    """
    evaluation = ROUND / "evaluation"
    episodes, judgements, attacks, canaries = (
        read_json(evaluation / f"{name}.json") for name in ("episodes", "judgements", "attacks", "canaries")
    )
    history = _history()
    found_out = read_json(evaluation / "explored.json")
    plan = Plan.read()
    bar = plan.applied(params).filter.bar
    monitors = watch(read_trajectories(ROUND / "scored"), found_out["verdicts"], judgements, bar, history)
    monitors["agent"] = {"kl": found_out["kl"]}
    alarms = raised(monitors, params.decide.limits)
    alarms["reward"] += objections(judgements, attacks, canaries, params.decide.alpha)
    decision = decide(episodes, judgements, params.decide.alpha, params.evaluate.looks, alarms)
    _roll_back(decision, in_doubt(monitors, params.decide.limits))
    found = Curriculum.read(STATE / "curriculum.json")
    setting = _rebalance(plan, Setting(setting_of(found, params).temperature, bar.outcome), params, monitors)
    curriculum = found.next(attempts(read_trajectories(ROUND / "scored"), bar), setting)
    used = monitors["challenger" if decision["reward"]["promoted"] else "champion"]["accepted_wrong"]
    history += [] if used is None or decision["reward"]["rolled_back"] else [used]
    write_whole(ROUND / "state", lambda aside: _write_state(aside, decision, found.round, curriculum, history))
    write_json(ROUND / "decision.json", decision)
    write_json(ROUND / "monitors.json", monitors)


def _rebalance(plan: Plan, now: Setting, params: Params, monitors: dict[str, Any]) -> Setting | None:
    """How the next round is to explore, where that is left to what this one found; the monitors say it too."""
    wanted = params.explore.balance
    if wanted is None or plan.accept is None:
        return None
    temperatures = {f"{one.goal}/{one.seed}": one.temperature or now.temperature for one in plan.instances}
    explored = read_trajectories(ROUND / "scored")
    setting, score = rebalanced(explored, temperatures, now, wanted, params.filter.bar)
    monitors["next"] = {**asdict(setting), "balance": score}
    return setting


def decide(
    episodes: Sequence[Verdict],
    judgements: Sequence[Judgement],
    alpha: float,
    looks: int,
    alarms: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The content of ``decision.json``: for each model whether it is promoted, why, and the figures.

    ``alarms`` are what stops the promotion of each model, in words.

    Raises:
        ValueError: when the episodes are of more looks than planned.
    """
    agents = pairs_by_look(episodes)
    rewards = [[(correct(judgement, "champion"), correct(judgement, "challenger")) for judgement in judgements]]
    return {
        "agent": _promote(agents, looks, alpha, "held-out goal instances solved", alarms["agent"]),
        "reward": _promote(rewards, 1, alpha, "judgements right", alarms["reward"]),
    }


def attempts(trajectories: Iterable[Trajectory], bar: Bar) -> list[Attempt]:
    """Each goal instance tried, solved when some path counts as solved, and how sure the agent was of the best such.

    It was not of a continuation, whose steps were drawn once each, because its search had failed. An instance without
    a scored path (its world crashed) says nothing about the agent and is left out.
    """
    tried = list(trajectories)
    solved = {
        one.episode.instance: sureness(one.episode) if one.origin is Origin.SEARCH else 0.0 for one in best(tried, bar)
    }
    told = (one.episode for one in tried if one.episode.outcome is not None and one.episode.end is not End.CRASHED)
    instances = dict.fromkeys(episode.instance for episode in told)
    return [Attempt(one.goal.id, one in solved, solved.get(one, 0.0)) for one in instances]


def _promote(
    pairs: Sequence[Sequence[tuple[bool, bool]]], looks: int, alpha: float, what: str, objections: Sequence[str]
) -> dict[str, Any]:
    test = sequential_test(pairs, looks, alpha)
    counted = test.so_far
    promoted = test.better and not objections
    champion, challenger = (success([pair[side] for added in pairs[:ALIKE] for pair in added]) for side in (0, 1))
    reason = f"{'promoted' if promoted else 'not promoted'}: {_figures(test, champion, challenger, what, alpha)}"
    return {
        "promoted": promoted,
        "rolled_back": False,
        "reason": "; ".join([reason, *objections]),
        "champion": champion,
        "challenger": challenger,
        "wins": counted.wins,
        "losses": counted.losses,
        "ties": counted.ties,
        "p_value": counted.p_value,
        "look": test.look,
        "level": test.level,
        "alpha": alpha,
    }


def _figures(
    test: SequentialTest, champion: Mapping[str, Any], challenger: Mapping[str, Any], what: str, alpha: float
) -> str:
    """What was counted, and what it had to reach, in words."""
    counted = test.so_far
    pairs = f"{counted.wins} won, {counted.losses} lost, {counted.ties} tied"
    shown, paired = "", f" ({pairs})"
    if test.look > ALIKE:
        shown, paired = f" in the first {ALIKE} looks", f"; in all {test.look} looks {pairs}"
    bar = f"{test.level:.3g}, what look {test.look} of {test.looks} may use of " if test.looks > 1 else ""
    return (
        f"{challenger['solved']} of {challenger['n']} {what}{shown}, the champion {champion['solved']}{paired}; "
        f"p = {counted.p_value:.3g} is {'at most' if test.better else 'above'} {bar}alpha = {alpha}"
    )


def _roll_back(decision: dict[str, Any], doubts: Mapping[str, Sequence[str]]) -> None:
    """Give up a champion that raised an alarm in the first round after its promotion, for the one it replaced."""
    for model, alarms in doubts.items():
        verdict = decision[model]
        if alarms and not verdict["promoted"] and (STATE / "before" / model).exists():
            verdict["rolled_back"] = True
            verdict["reason"] += "; the champion goes, and the one that it replaced comes back"


def _history() -> list[float]:
    """``accepted_wrong`` of the reward models that earlier rounds left in use; the first state has none."""
    path = STATE / "monitors.json"
    return list(read_json(path)["accepted_wrong"]) if path.exists() else []


def _write_state(
    folder: Path, decision: dict[str, Any], number: int, curriculum: Curriculum, history: Sequence[float]
) -> None:
    folder.mkdir()
    for model in ("agent", "reward"):
        if decision[model]["promoted"]:
            copy(ROUND / model, folder / model)
            copy(STATE / model, folder / "before" / model)
        else:
            copy((STATE / "before" if decision[model]["rolled_back"] else STATE) / model, folder / model)
    copy(STATE / "corpus", folder / "corpus")
    rows = f"round-{number:04d}"
    if (folder / "corpus" / rows).exists():
        raise RecordError(f"{STATE / 'corpus' / rows}: already there, and round {number} adds it; run `dvc checkout`")
    copy(ROUND / "rows", folder / "corpus" / rows)
    curriculum.write(folder / "curriculum.json")
    write_json(folder / "monitors.json", {"accepted_wrong": history})
