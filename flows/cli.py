"""The ``ratchet`` command. What is slow to import is imported by the command that needs it."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Annotated

import typer

from environments.types import WorldError
from tasks.errors import BusyError, RatchetError, WorkspaceError
from tasks.files import log_of

NIGHTLY = "0 2 * * *"

app = typer.Typer(
    name="ratchet",
    help="Rounds of self-improvement for vision-language GUI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
evaluate = typer.Typer(help="Measure the models in use.", no_args_is_help=True)
app.add_typer(evaluate, name="evaluate")
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the traceback of an error, and Prefect's own log.")]


def main() -> None:
    """Run the command line.

    Exit status 2: a person must mend what it says; 1: it, or a world, broke; 75: a stage whose inputs were edited while
    it ran; 130: stopped.
    """
    try:
        app()
    except (RatchetError, WorldError) as error:
        if _verbose():
            traceback.print_exc()
        print(f"ratchet: {error}", file=sys.stderr)
        sys.exit(error.status if isinstance(error, RatchetError) else 1)


@app.callback()
def workspace(verbose: Verbose = False) -> None:  # noqa: ARG001 (read from the arguments: main has no context)
    """Work in the checkout around the current directory."""
    from flows.servers import prepare

    here = Path.cwd()
    found = next((folder for folder in (here, *here.parents) if (folder / "dvc.yaml").exists()), None)
    if found is None:
        raise WorkspaceError(f"{here}: no dvc.yaml here or above; run this in a Ratchet checkout")
    os.chdir(found)
    sys.path.append(str(found))  # where a goal file's own world may be
    prepare()


@app.command("round")
def make_round() -> None:
    """Make a round, or finish the one that was stopped."""
    _make_rounds(1)


@app.command()
def improve(rounds: Annotated[int, typer.Option(min=1, help="How many, one after the other.")] = 3) -> None:
    """Make rounds one after the other, and say what came of each. A stopped one is finished first, and counts."""
    from flows.report import progress

    print("\n".join(progress(_make_rounds(rounds))))


def _make_rounds(rounds: int) -> list[int]:
    """Make so many rounds, print the last lines of each, and return their numbers."""
    from flows.journal import BEGAN, Journal
    from flows.servers import prefect_server
    from tasks import versions

    began = time.time()
    versions.refuse_if_busy()
    if not _verbose():
        # Prefect's own words go to its log alone: the terminal has ours.
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    server = prefect_server()
    Journal.open()
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    import tasks.lineage  # noqa: F401  (slow to import: while the server starts)
    from flows.round import run_round

    server.wait()
    # Leaving a flow waits up to a second for its heartbeat, and of a server of our own nobody asks for one.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if server.ours else {}):
        made = []
        for _ in range(rounds):
            BEGAN.set(began)
            report = run_round()
            print("\n".join(report.lines), flush=True)
            made.append(report.number)
            began = time.time()
    return made


@app.command()
def stage(name: str) -> None:
    """Run one stage of dvc.yaml in this process. DVC calls this; `dvc repro -s NAME` also keeps track."""
    from flows.servers import die_with
    from tasks import versions
    from tasks.stages import run

    if "RATCHET_ROUND_PID" in os.environ:
        die_with(int(os.environ["RATCHET_ROUND_PID"]))
    try:
        with versions.stage_lock(name):
            run(name)
    except Exception as error:
        if isinstance(error, BusyError) and "RATCHET_ROUND_PID" not in os.environ:
            raise  # the log may be that of the stage at work
        refused = isinstance(error, RatchetError | WorldError)
        _add_to_log(log_of(name), f"ratchet: {error}\n" if refused else traceback.format_exc())
        raise


@app.command()
def serve(cron: Annotated[str, typer.Option(help="When, in cron's words, in UTC.")] = NIGHTLY) -> None:
    """Make a round every night, for as long as this runs."""
    from flows.servers import prefect_server

    server = prefect_server(lasting=True)
    from flows import round as rounds

    rounds.check_cron(cron)
    server.wait()
    print(f"rounds at {cron!r} UTC; Prefect: {server.page}; ctrl-C ends it", flush=True)
    rounds.serve(cron)


@app.command()
def ui() -> None:
    """Show this workspace in the MLflow and Prefect UIs, until ctrl-C."""
    from flows.servers import mlflow_server, prefect_server

    prefect = prefect_server(lasting=True)  # starts while MLflow is imported
    for name, server in {"MLflow": mlflow_server(), "Prefect": prefect}.items():
        server.wait()
        print(f"{name}: {server.page}", flush=True)
    print("ctrl-C stops both", flush=True)
    signal.pause()


@app.command()
def lineage(x: str) -> None:
    """Print what made X: a model version, an md5, a trajectory, a round or a Prefect flow run."""
    from tasks.ancestry import describe

    print(describe(x))


@app.command()
def report() -> None:
    """Write the page of all rounds: figures, curves, what was newly solved, lineage."""
    from tasks import lineage, page

    last = page.write(page.FILE)
    print(f"{page.FILE}: {page.FILE.absolute().as_uri()}")
    if run := lineage.run_of(last):
        lineage.log_page(run, page.FILE)
        print(f"and among the artifacts of {last} in MLflow (`ratchet ui`)")


@app.command()
def status() -> None:
    """Say which round comes or is unfinished, and how the last one ended."""
    from flows.report import status as lines

    print("\n".join(lines()))


@app.command()
def push() -> None:
    """Copy the data of every round to the DVC remote."""
    from tasks import versions

    print(f"{versions.push(every_round=True)} files sent")


@app.command()
def pull() -> None:
    """Fetch the data of the commit checked out."""
    from tasks import versions

    print(f"{versions.pull()} files fetched")


@app.command()
def reproduce(tag: str) -> None:
    """Make a tagged round again from its code, data and params, and compare every output."""
    from tasks import versions

    made = versions.remake(tag)
    for one in made.outs:
        print(f"{one.stage}: {one.path}: {one.tagged[0]} ({one.tagged[1]} B) -> {one.remade[0]} ({one.remade[1]} B)")
    for metric, (then, now) in made.metrics.items():
        print(f"{metric}: {then} -> {now}")
    print(f"{tag}: " + (f"{len(made.outs)} outputs differ" if made.outs else "every output is the same"))
    if made.outs:
        raise typer.Exit(1)


@evaluate.command("reward")
def evaluate_reward(
    per_goal: Annotated[int, typer.Option(min=1, help="Goal instances of each goal.")] = 2,
    first_seed: Annotated[int | None, typer.Option(min=1, help="The first of their seeds; must be held out.")] = None,
    vision: Annotated[str, typer.Option(help="Judge with this model at OPENAI_BASE_URL too.")] = "",
    of_round: Annotated[
        list[int] | None, typer.Option("--round", min=1, help="Judge with the reward model of this round too.")
    ] = None,
) -> None:
    """Audit the reward model and other judges on live candidates, outcomes, held-out pairs and canaries."""
    from tasks.audit import benchmark

    print("\n".join(benchmark.run(per_goal, first_seed, vision, of_round or ())), flush=True)


def _add_to_log(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log:
        log.write(text)


def _verbose() -> bool:
    return "--verbose" in sys.argv


if __name__ == "__main__":
    main()
