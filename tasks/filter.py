"""The filter stage: agent rows from accepted trajectories, reward rows from everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from environments.types import COMPLETE, Action, End
from tasks.acceptance import Bar, Rejection, judge
from tasks.curriculum.plan import Plan
from tasks.errors import GateError
from tasks.files import ROUND, write_json, write_whole
from tasks.params import Params
from tasks.records import AgentRow, Origin, RewardRow, Trajectory, read_trajectories, write_rows, write_trajectories
from tasks.reward_data import reward_rows
from tasks.reward_data.draft import Situation, situation

_SOURCES = {
    Origin.DEMONSTRATION: "demonstration",
    Origin.EXERCISE: "exercise",
    Origin.SEARCH: "accepted",
    Origin.CONTINUATION: "corrected",  # a failed path that was continued to success
}
_UNFINISHED = (Rejection.CRASHED, Rejection.INVALID, Rejection.PRUNED)


def run(params: Params) -> None:
    """Make ``data/round/rows`` from ``data/round/scored``.

    The folder has the agent and reward rows, the trajectories these refer to, and ``filter.json``: how much
    of what was kept, and why not the rest.

    Raises:
        RecordError: when the scored trajectories cannot be read.
        GateError: when there is no row at all. Without agent rows alone, the stage validate stops the round.
    """
    chosen = Plan.read().applied(params).filter
    bar = chosen.bar
    trajectories = list(read_trajectories(ROUND / "scored"))
    verdicts = judge(trajectories, bar, chosen.max_per_goal)
    accepted = [trajectory for trajectory in trajectories if verdicts[trajectory.id] is None]
    for_agent = agent_rows(accepted, bar)
    for_reward = reward_rows(
        trajectories,
        bar=bar,
        max_negatives=chosen.max_negatives,
        seed=params.seed,
        without=chosen.without,
    )
    if not for_agent and not for_reward:
        raise GateError(_nothing(verdicts, bar))
    used = {row.trajectory for row in for_agent} | {row.trajectory for row in for_reward}

    def write(folder: Path) -> None:
        folder.mkdir()
        write_trajectories(folder, (trajectory for trajectory in trajectories if trajectory.id in used))
        write_rows(folder / "agent_rows.parquet", AgentRow, for_agent)
        write_rows(folder / "reward_rows.parquet", RewardRow, for_reward)
        write_json(folder / "filter.json", _report(trajectories, verdicts, for_agent, for_reward))

    write_whole(ROUND / "rows", write)


def agent_rows(trajectories: Iterable[Trajectory], bar: Bar) -> list[AgentRow]:
    """The steps of the trajectories as things to imitate, and `complete` on the last screen where it was said.

    A world that closed by itself leaves nobody to say it. A second row with the same prompt and action is left out,
    and so is a slip of a failed path, whose continuation made up for it.
    """
    rows = []
    seen: set[tuple[Situation, Action]] = set()
    for trajectory in sorted(trajectories, key=lambda trajectory: trajectory.id):
        episode = trajectory.episode
        actions = [step.action for step in episode.acts]
        if episode.end is End.COMPLETED:
            actions.append(COMPLETE)
        slips = {step for step, one in enumerate(episode.acts) if bar.slip(one)}
        for step, action in enumerate(actions):
            key = situation(trajectory, step, episode.instruction), action
            if key not in seen and step not in slips:
                seen.add(key)
                rows.append(_agent_row(trajectory, step, action))
    return rows


def _agent_row(trajectory: Trajectory, step: int, action: Action) -> AgentRow:
    instance = trajectory.episode.instance
    return AgentRow(
        id=f"{trajectory.id}#{step}",
        trajectory=trajectory.id,
        step=step,
        goal=instance.goal.id,
        seed=instance.seed,
        round=trajectory.round,
        action=str(action),
        source=_SOURCES[trajectory.origin],
        agent=trajectory.agent,
        reward=trajectory.reward,
    )


def _report(
    trajectories: Sequence[Trajectory],
    verdicts: Mapping[str, Rejection | None],
    for_agent: Sequence[AgentRow],
    for_reward: Sequence[RewardRow],
) -> dict[str, Any]:
    """What ``filter.json`` says: of each goal its trajectories, of each generator its rows."""
    by_goal: dict[str, list[Rejection | None]] = {}
    for trajectory in trajectories:
        by_goal.setdefault(trajectory.episode.instance.goal.id, []).append(verdicts[trajectory.id])
    generators: dict[str, dict[str, int]] = {}
    for row in for_reward:
        counts = generators.setdefault(row.generator, {"positive": 0, "negative": 0})
        counts["positive" if row.label else "negative"] += 1
    return {
        "goals": {goal: _counts(reasons) for goal, reasons in by_goal.items()},
        "agent_rows": len(for_agent),
        "reward_rows": generators,
    }


def _counts(reasons: Sequence[Rejection | None]) -> dict[str, Any]:
    dropped = Counter(reason.value for reason in reasons if reason is not None)
    return {
        "tried": len(reasons),
        "finished": sum(reason not in _UNFINISHED for reason in reasons),
        "accepted": sum(reason is None for reason in reasons),
        "dropped": dict(dropped),
    }


def _nothing(verdicts: Mapping[str, Rejection | None], bar: Bar) -> str:
    dropped = Counter(reason.value for reason in verdicts.values() if reason is not None)
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items())) or "there are none"
    return (
        f"{ROUND / 'scored'}: {len(verdicts)} trajectories ({reasons}) give no row; training needs one with "
        f"an outcome of at least filter.accept = {bar.outcome} and steps of at least filter.min_step = {bar.step}; "
        "raise propose.per_goal or explore.candidates in params.yaml and run `dvc repro filter`"
    )
