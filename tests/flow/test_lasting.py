"""The commands that last: rounds served to a schedule, and the two user interfaces."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, temporary_settings
from workspace import Workspace

from flows.round import deployment

Found = TypeVar("Found")


@pytest.mark.slow
def test_a_served_deployment_makes_a_round(workspace: Workspace, tmp_path: Path) -> None:
    """Though another checkout is served by the same Prefect server."""
    other = workspace.copy(tmp_path / "other")
    with (
        _lasting(workspace, "serve") as serving,
        _lasting(other, "serve") as beside,
        temporary_settings({PREFECT_API_URL: workspace.env["PREFECT_API_URL"]}),
        get_client(sync_client=True) as client,
    ):
        for process in (serving, beside):
            assert process.stdout is not None
            assert process.stdout.readline().startswith("rounds at '0 2 * * *' UTC; Prefect: ")
        _until(lambda: _nightly(client, other))
        made = client.create_flow_run_from_deployment(_until(lambda: _nightly(client, workspace))).id
        state = _until(lambda: _last_state(client, made, serving))
        assert state.is_completed(), state.message
        for process in (serving, beside):
            process.send_signal(signal.SIGINT)
            assert "Traceback" not in process.communicate(timeout=60)[1]
    assert (workspace.git("tag", "--list"), other.git("tag", "--list")) == ("round-0001", "")
    assert workspace.git("status", "--porcelain") == ""


@pytest.mark.parametrize("end", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_both_user_interfaces_answer_and_end_with_the_command(used: Workspace, end: signal.Signals) -> None:
    own = Workspace(used.root, {key: value for key, value in used.env.items() if key != "PREFECT_API_URL"})
    with _lasting(own, "ui", end) as showing:
        assert showing.stdout is not None
        pages = dict(showing.stdout.readline().strip().split(": ", 1) for _ in range(2))
        assert list(pages) == ["MLflow", "Prefect"]
        for page in pages.values():
            with urllib.request.urlopen(page) as answer:
                assert answer.status == 200
                assert b"<html" in answer.read().lower()
        family = psutil.Process(showing.pid).children(recursive=True)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert len(family) >= 3
    assert not alive


@contextmanager
def _lasting(
    workspace: Workspace, command: str, end: signal.Signals = signal.SIGINT
) -> Iterator[subprocess.Popen[str]]:
    """A command that lasts until it gets a signal."""
    with workspace.start(command) as process:
        try:
            yield process
        finally:
            process.send_signal(end)
            process.wait(60)


def _nightly(client: SyncPrefectClient, workspace: Workspace) -> UUID | None:
    with chdir(workspace.root):
        name = f"round/{deployment()}"
    try:
        return client.read_deployment_by_name(name).id
    except ObjectNotFound:
        return None


def _last_state(client: SyncPrefectClient, run: UUID, serving: subprocess.Popen[str]) -> State[Any] | None:
    assert serving.poll() is None, serving.communicate()[1]
    state = client.read_flow_run(run).state
    return state if state is not None and state.is_final() else None


def _until(look: Callable[[], Found | None]) -> Found:
    deadline = time.monotonic() + 400
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return found
