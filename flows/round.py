"""The ``round`` flow: Prefect walks the stages of ``dvc.yaml``; then git, DVC and MLflow keep what they made."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from prefect import flow, get_client, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.schedules import CronSchedule
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run, task_run

from flows import report
from flows.journal import COMMIT, FOUND, Journal
from flows.log import follow, say
from flows.report import Report
from tasks import versions
from tasks.errors import Edited, ParamsError, RatchetError, StageError, WorkspaceError
from tasks.files import ROUND, SEED, STATE, WORK, log_of

PUSH_TRIES, PUSH_AGAIN_S = 2, 10
_LET_NOTHING_WRITE = "let nothing write there while a round runs (docs/your-own-web-app.md)"


def name_of_run() -> str:
    """How Prefect shows this run: the tag that the round will have."""
    journal = Journal.read()
    return versions.tag_of(journal.round if journal else versions.round_number())


@flow(name="round", flow_run_name=name_of_run, persist_result=False)
def run_round(retries: int = 1) -> Report:
    """Make one round, or finish the one that was stopped.

    Args:
        retries: how often a stage is run again that ended in a way it did not foresee.

    Raises:
        BusyError: another round is at work in this workspace.
        WorkspaceError: git, DVC or the remote is not as a round needs it.
        StageError: a stage failed, or what it reads was edited twice; the next round goes on from it.
    """
    with versions.round_lock(flow_run.name):
        if Journal.read():
            versions.mend()
        return _Round(Journal.open(), retries).run()


def check_cron(cron: str) -> None:
    """Find out whether this names times.

    Raises:
        ParamsError: it does not.
    """
    try:
        CronSchedule(cron=cron)
    except ValueError as error:
        raise ParamsError(f"--cron {cron!r}: not a cron expression, such as '0 2 * * *'") from error


def serve(cron: str) -> None:
    """Make a round at each time that ``cron`` names, in UTC, until interrupted.

    Nights missed while nothing served are not made up for.
    """
    tempfile.tempdir = str(WORK.absolute() / "prefect")  # its runner shares one folder of /tmp with all other users
    Path(tempfile.tempdir).mkdir(parents=True, exist_ok=True)
    name = deployment()
    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        client.delete_deployment(client.read_deployment_by_name(f"{run_round.name}/{name}").id)
    run_round.serve(name=name, cron=cron, limit=1, print_starting_message=False)


def deployment() -> str:
    """The name of this checkout's deployment: other checkouts may be served by the same Prefect server."""
    place = f"{socket.gethostname()}{Path.cwd()}"
    name = re.sub(r"[^\w.]+", "-", f"nightly-{place}")
    if re.fullmatch(r"[\w./]+", place):
        return name
    return f"{name}-{sha256(place.encode()).hexdigest()[:8]}"  # without it, /a/b and /a-b would have one name


class _Round:
    """A round under way."""

    def __init__(self, journal: Journal, retries: int) -> None:
        self.journal, self.retries = journal, retries

    def run(self) -> Report:
        from tasks import lineage

        journal = self.journal
        os.environ["RATCHET_ROUND_PID"] = str(os.getpid())  # so that a stage dies with this process
        journal.mlflow_run = lineage.begin_round(journal.round, self._tags(), run_id=journal.mlflow_run)
        journal.save()
        try:
            if journal.founding:
                self._found()
            elif stale := versions.stale(seed=True):
                say(f"{', '.join(stale)}: changed since the seed was made; rounds go on from what they made then")
            self._make_round()
            return self._keep()
        except RatchetError as error:
            try:
                lineage.fail_round(journal.mlflow_run, journal.at, str(error))
            except WorkspaceError as untold:
                say(f"MLflow does not know that the round failed: {untold}")
            raise

    def _found(self) -> None:
        """The seed, once: what no round has made yet is the state of the first."""
        if FOUND in self.journal.done:
            return
        self._make_all(seed=True)
        self._step(FOUND, lambda: _found(self.journal.head))

    def _make_round(self) -> None:
        """The stages of the round. Once they are committed none is looked at again: promotion changes their inputs."""
        if COMMIT not in self.journal.done:
            self._make_all(seed=False)

    def _make_all(self, seed: bool) -> None:
        """Params and goals that are edited meanwhile hold for all stages: the tag has them with what stages made.

        Raises:
            StageError: a stage failed, or what some read was edited again while they were made again.
        """
        self._walk(seed)
        if stale := versions.stale(seed):
            say(f"{', '.join(stale)}: what they read was edited meanwhile, so they are made again")
            self._others()
            self._walk(seed)
        if again := versions.stale(seed):
            what = ", ".join(sorted({path for changed in again.values() for path in changed}))
            raise StageError(
                f"{what}: edited again while stages ({', '.join(again)}) were made again; see `git status`, "
                f"{_LET_NOTHING_WRITE}, then `ratchet round` goes on from here"
            )

    def _walk(self, seed: bool) -> None:
        stages = [stage for stage in versions.stages() if stage.seed is seed]
        for position, stage in enumerate(stages, 1):
            say(f"{versions.tag_of(self.journal.round)}  {stage.name}  ({position} of {len(stages)})")
            self._make(stage.name)

    def _make(self, name: str) -> None:
        from tasks import lineage

        self.journal.begin_step(name)
        seconds = _as_task(name, self.retries)(_reproduce)(name)
        if seconds is not None or name not in self.journal.stages:
            # Up to date and not in the journal: killed before it got there, or nothing it reads has changed.
            lineage.log_stage(
                str(self.journal.mlflow_run),
                versions.stage_record(name),
                seconds or 0.0,
                {"ran": str(seconds is not None)},
            )
            self.journal.stages[name] = self.journal.stages.get(name, 0.0) + (seconds or 0.0)
            self.journal.save()

    def _keep(self) -> Report:
        """The commit and tag, the next state, the remote, and the end of the round in MLflow and Prefect."""
        from tasks import lineage

        number, since, decision = self.journal.round, self.journal.head, report.read_decision()
        message = report.round_message(number, decision)
        commit = self._step(COMMIT, lambda: versions.commit_round(number, message, since))
        self._step("promote", lambda: _promote(ROUND / STATE.name))
        moved = report.promotion_message(number, decision)
        self._step("commit the state", lambda: versions.commit_state(number + 1, moved, since))
        self._step("push", lambda: str(versions.push()), PUSH_TRIES, PUSH_AGAIN_S)
        made = Report(number, commit, decision, self._overhead())
        self._step("page", lambda: str(create_markdown_artifact(made.markdown, key="decision")))
        lineage.end_round(str(self.journal.mlflow_run), number, commit, decision, made.overhead)
        self.journal.close()
        return made

    def _step(self, name: str, action: Callable[[], str], retries: int = 0, delay_s: int = 0) -> str:
        return self.journal.once(name, lambda: str(_as_task(name, retries, delay_s)(action)()))

    def _overhead(self) -> dict[str, float]:
        self.journal.save()
        wall, stages = self.journal.spent_s, sum(self.journal.stages.values())
        return {
            "wall_s": wall,
            "stages_s": stages,
            "overhead_s": wall - stages,
            "overhead_percent": 100 * (wall - stages) / wall,
        }

    def _others(self) -> str:
        """What is not committed and the round does not commit either; says so."""
        others = " ".join(versions.others_dirty())
        if others:
            say(f"not committed, so the tag will not carry it: {others}")
        return others

    def _tags(self) -> dict[str, str]:
        return {
            "git.commit": versions.head(),
            "git.dirty": self._others()[:500],
            "prefect.flow_run_id": flow_run.id or "",
            "host": socket.gethostname(),
        }


def _reproduce(name: str) -> float | None:
    if task_run.run_count > 1:
        say(f"{name}: attempt {task_run.run_count}")
    with follow(log_of(name)):
        try:
            return versions.reproduce(name)
        except Edited as edited:
            say(str(edited))
        try:
            return versions.reproduce(name)
        except Edited as again:
            raise StageError(f"for the second time, {again} once this is mended: {_LET_NOTHING_WRITE}") from again


def _found(since: str) -> str:
    """Promote the seed and commit it, in one step: a seed that is made again in between is the one promoted."""
    versions.promote(SEED / STATE.name)
    return str(versions.commit_state(1, "Found the first state", since))


def _promote(source: Any) -> str:
    versions.promote(source)
    return str(source)


def _as_task(name: str, retries: int, delay_s: int = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return task(
        name=name,
        task_run_name=name,
        retries=retries,
        retry_delay_seconds=delay_s,
        retry_condition_fn=_worth_another_try,
        cache_policy=NO_CACHE,
        persist_result=False,
    )


def _worth_another_try(_task: object, _run: object, state: Any) -> bool:
    """A stage that crashed, or a remote that did not answer; what a person must mend is not tried again."""
    return isinstance(state.data, versions.StageCrash | versions.RemoteError)
