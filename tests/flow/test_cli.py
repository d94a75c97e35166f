"""The command line around the rounds, and the deployment file."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from workspace import CHECKOUT, Workspace

SLOW = {"torch", "mlflow", "prefect", "dvc", "transformers"}


def test_help_is_quick() -> None:
    code = (
        "import sys; sys.argv = ['ratchet', '--help']\n"
        "from flows.cli import main\n"
        "try: main()\n"
        f"finally: print(sorted({SLOW!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    models = ("round", "improve", "stage", "evaluate", "reproduce")
    commands = (*models, "serve", "lineage", "ui", "status", "push", "pull")
    assert all(command in done.stdout for command in commands)


def test_outside_a_checkout(tmp_path: Path, env: dict[str, str]) -> None:
    refused = Workspace(tmp_path, env).ratchet("status")
    assert refused.returncode == 2
    assert refused.stderr == f"ratchet: {tmp_path}: no dvc.yaml here or above; run this in a Ratchet checkout\n"


def test_an_error_is_a_line_and_with_verbose_a_traceback(fresh: Workspace) -> None:
    assert fresh.ratchet("reproduce", "round-0009").stderr.startswith("ratchet: round-0009: names no commit here")
    assert "Traceback" in fresh.ratchet("--verbose", "reproduce", "round-0009").stderr


def test_status_before_and_after(fresh: Workspace, two_rounds: Workspace) -> None:
    assert fresh.ratchet("status").stdout == "round-0001: to come; start it with `ratchet round`\n"
    assert two_rounds.ratchet("status").stdout.splitlines() == [
        "round-0003: to come; start it with `ratchet round`",
        "last: agent: 0.250 -> 0.500, promoted: better",
        "last: reward: not promoted: no better",
    ]


def test_a_stage_that_refuses_says_so_in_its_log(workspace: Workspace) -> None:
    refused = workspace.ratchet("stage", "no-such-stage")
    assert refused.returncode == 2
    assert refused.stderr == workspace.text(".ratchet/logs/no-such-stage.log")


@pytest.fixture
def shop(tmp_path: Path, env: dict[str, str]) -> Workspace:
    """The real stages and params in a workspace whose one goal is of a world of its own, still to be written."""
    workspace = Workspace(tmp_path / "shop", env)
    for name in ("dvc.yaml", "params.yaml"):
        workspace.write(name, (CHECKOUT / name).read_text().replace("data/goals/starter.yaml", "data/goals/shop.yaml"))
    goal = '- {id: buy, world: "my_worlds.shop:Shop", page: click-button, tier: 1, max_steps: 3}\n'
    workspace.write("data/goals/shop.yaml", goal)
    return workspace


SHOP = """
from environments.types import WorldError


class Shop:
    def reset(self, goal, seed):
        raise WorldError(f"{goal.page} is closed")

    def close(self):
        pass
"""
# Its first customer is never served, and the next ones find it closed.
SLOW_SHOP = """
import signal
from pathlib import Path

from environments.types import WorldError


class Shop:
    def reset(self, goal, seed):
        if Path("served").exists():
            raise WorldError(f"{goal.page} is closed")
        Path("served").touch()
        print("at work", flush=True)
        signal.pause()

    def close(self):
        pass
"""


def test_a_world_may_be_a_module_of_the_checkout(shop: Workspace) -> None:
    """The command as it is installed, which does not look for modules where it runs."""
    shop.write("my_worlds/shop.py", SHOP)
    installed = Path(sys.executable).with_name("ratchet")
    done = shop.run(str(installed), "stage", "demonstrate", PYTHONPATH="")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ratchet: click-button is closed")


def test_two_stages_are_not_run_at_a_time(shop: Workspace) -> None:
    with _at_work(shop) as process:
        refused = shop.ratchet("stage", "demonstrate")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"ratchet: stage demonstrate (process {process.pid} on ")


def test_a_stage_ends_with_the_round_that_it_is_of(shop: Workspace) -> None:
    """However the round ends, and though the stage is not its child."""
    with (
        subprocess.Popen(["cat"], stdin=subprocess.PIPE) as made,
        _at_work(shop, RATCHET_ROUND_PID=str(made.pid)) as it,
    ):
        made.kill()
        assert it.wait(timeout=20) == -signal.SIGTERM


@contextmanager
def _at_work(shop: Workspace, **env: str) -> Iterator[subprocess.Popen[str]]:
    """A stage that is in the midst of its work for as long as the block lasts."""
    shop.write("my_worlds/shop.py", SLOW_SHOP)
    with shop.start("stage", "demonstrate", **env) as process:
        try:
            assert process.stdout.readline() == "at work\n"
            yield process
        finally:
            process.kill()


def test_lineage_reads_the_tags(two_rounds: Workspace) -> None:
    assert two_rounds.ratchet("lineage", "round-0001").stdout.startswith("round-0001  commit ")


def test_a_prefect_server_that_does_not_answer(fresh: Workspace) -> None:
    refused = fresh.ratchet("round", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert refused.returncode == 2
    assert refused.stderr == (
        "ratchet: http://127.0.0.1:9/api: the server does not answer; start it, or unset the variable that names it\n"
    )


def test_the_flow_can_be_sent_to_the_process_that_runs_it() -> None:
    """``ratchet serve`` starts a process a round and pickles the flow for it."""
    from prefect.utilities.callables import cloudpickle_wrapped_call

    from flows.round import run_round

    assert callable(cloudpickle_wrapped_call(run_round, retries=1))


def test_the_deployment_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.flows import load_flow_from_entrypoint

    monkeypatch.chdir(CHECKOUT)
    (deployment,) = yaml.safe_load((CHECKOUT / "infra/prefect.yaml").read_text())["deployments"]
    assert load_flow_from_entrypoint(deployment["entrypoint"]).name == "round"
    assert [schedule["cron"] for schedule in deployment["schedules"]] == ["0 2 * * *"]
    assert deployment["concurrency_limit"]["limit"] == 1
