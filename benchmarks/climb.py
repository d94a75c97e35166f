"""Whether rounds climb, and what of them does it: ``python -m benchmarks.climb --seeds 0``.

UI-Genie's ablation (its table 4) on the embedded default. Twenty goals of four tiers: ten of tier 1, with five
demonstrations each, and ten harder ones, with none, most of which the base solves now and then (docs/benchmarks.md).
Four arms start from the same first models: whole rounds; rounds whose reward model stays as it was; rounds without the
harder half's goals; and, the control, an agent trained on the demonstrations for as long as all rounds of the first arm
took. After each round the champion plays fresh instances of all goals, and after the last also of eight goals that no
arm ever sees; the world is the judge. Each seed has instances of its own, which are the same for all its arms. An agent
that was measured before is not measured again.

The workspaces are clones of the commit that is checked out, its params but for those below: on a processor that
multiplies bfloat16 itself, ``numerics: {isa: native, dtype: bfloat16}``, committed, takes half of the time. What was
measured is kept in ``--results``, and a benchmark that was stopped goes on, on another machine too; delete it and the
folder to begin anew.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml
from scipy.stats import t

from environments.registry import load_goals
from flows.journal import JOURNAL
from tasks.evidence.statistics import wilson
from tasks.files import WORK, digest
from tasks.versions import tag_of

GOALS = (
    "click-button", "click-color", "click-dialog-2", "click-link", "click-shape", "click-tab", "click-widget",
    "count-shape", "focus-text-2", "identify-shape",
    "email-inbox-delete", "email-inbox-star-reply", "click-tab-2", "use-autocomplete", "use-autocomplete-nodelay",
    "copy-paste-2", "use-spinner", "choose-date-easy", "login-user-popup", "click-checkboxes-large",
)  # fmt: skip
UNSEEN = (
    "click-test-transfer", "click-checkboxes-transfer", "enter-text-dynamic", "multi-orderings", "click-tab-2-hard",
    "email-inbox-noscroll", "read-table-2", "choose-date-medium",
)  # fmt: skip
SETS = {"climb": GOALS, "unseen": UNSEEN}  # goal files
COMMON: dict[str, Any] = {
    "goals": "data/goals/climb.yaml",
    "demonstrate": {"per_goal": 5, "hardest_tier": 1},
    "warm_agent": {"updates": 56},
    "warm_reward": {"updates": 60},
    "propose": {"per_goal": 4},
    "filter": {"accept": 0.6},
    "train_reward": {"updates": 144},
    "train_agent": {"updates": 50, "learning_rate": 4e-4},
    "evaluate": {"per_goal": 2, "looks": 8},
}
NOBODY = ("-c", "user.name=Ratchet", "-c", "user.email=ratchet@localhost")  # commits, for git may know nobody
START, FULL, CONTROL = "start", "whole rounds", "demonstrations alone"
ARMS: dict[str, dict[str, Any]] = {
    FULL: {},
    "frozen reward model": {"train_reward": {"frozen": True}},
    "no harder goals": {"propose": {"hardest_tier": 1}},
}
Line = dict[str, Any]  # of the results
# Of live judgements: the query, and its figure.
FIGURES = {"steps": ("step", "f1"), "outcomes": ("outcome", "f1"), "outcome AUC": ("outcome", "auc")}


@dataclass(frozen=True)
class Place:
    """A workspace, and the commands given in it."""

    root: Path

    def run(self, *command: str) -> str:
        """The command's standard output; its errors go to ``climb.log`` beside the workspace."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "PYTHONPATH": str(self.root)}
        with self.root.with_suffix(".log").open("a") as log:
            whole = [sys.executable, "-m", *command]
            done = subprocess.run(
                whole, check=False, cwd=self.root, env=env, text=True, stdout=subprocess.PIPE, stderr=log
            )
            log.write(done.stdout)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}; see {log.name}")
        return done.stdout

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def set(self, changes: Mapping[str, Any]) -> None:
        """Change params and commit them, with what was made since: a round begins on a clean tree."""
        file = self.root / "params.yaml"
        params = yaml.safe_load(file.read_text())
        for name, value in changes.items():
            params[name] = params[name] | value if isinstance(value, dict) else value
        file.write_text(yaml.safe_dump(params, sort_keys=False))
        self.git("add", "--all")
        message = "Set the arm of a benchmark"
        self.git(*NOBODY, "commit", "--quiet", "--allow-empty", "--message", message)

    def copy(self, root: Path) -> Place:
        shutil.copytree(self.root, root, symlinks=True)
        return Place(root)


class Results:
    """What was measured, a JSON line each, kept from call to call."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: list[Line] = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def add(self, line: Line) -> None:
        self.lines.append(line)
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def of(self, arm: str, number: int | None = None, seed: int | None = None) -> list[Line]:
        return [
            line
            for line in self.lines
            if line["arm"] == arm and number in (None, line["round"]) and seed in (None, line["seed"])
        ]


def founded(folder: Path, seed: int) -> Place:
    """The workspace with the first models that all arms start from; made where it is not there."""
    place = Place(folder / "founded")
    if _clock(place).exists():
        return place
    shutil.rmtree(place.root, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(Path.cwd()), str(place.root)], check=True)
    if Path(".ratchet/downloads").exists():
        shutil.copytree(".ratchet/downloads", place.root / ".ratchet/downloads")
    known = load_goals(Path("data/goals"))
    for name, ids in SETS.items():
        goals = [asdict(known[one]) for one in ids]
        (place.root / f"data/goals/{name}.yaml").write_text(yaml.safe_dump(goals))
    place.set({**COMMON, "seed": seed})
    place.run("dvc", "repro", "--quiet", "demonstrate", "rehearse", "warm_reward")
    began = time.time()
    place.run("dvc", "repro", "--quiet", "warm_agent")
    seconds = time.time() - began
    place.run("dvc", "repro", "--quiet", "found")
    _clock(place).write_text(json.dumps({"warm_agent": seconds}))
    return place


def _clock(place: Place) -> Path:
    """How long the first agent took to train: a file beside the workspace, written when all is founded."""
    return place.root.with_suffix(".json")


def measured(place: Place, checkpoint: str, seed: int, results: Results, per_goal: int, sets: Iterable[str]) -> Line:
    """Successes of a checkpoint on fresh instances of some sets of goals, with what tells its bytes from others."""
    agent = digest(place.root / checkpoint)
    known = [line for line in results.lines if (line["seed"], line["agent"]) == (seed, agent)]
    common = ("--per-goal", str(per_goal), "--first", str(per_goal * seed), "--agent", checkpoint)
    found: Line = {"agent": agent}
    for name in sets:
        if before := [line[name] for line in known if name in line]:
            found[name] = before[0]
            continue
        printed = place.run("benchmarks.held_out", "--goals", f"data/goals/{name}.yaml", *common)
        found[name] = json.loads(printed.splitlines()[-1])
    return found


def climb(folder: Path, start: Place, arm: str, seed: int, rounds: int, results: Results, per_goal: int) -> None:
    """An arm's rounds, each followed by its measurement; those of a workspace that was lost are made again."""
    place = Place(folder / arm.replace(" ", "-"))
    if not place.root.exists():
        aside = folder / "begun"
        shutil.rmtree(aside, ignore_errors=True)
        start.copy(aside).set(ARMS[arm])
        aside.rename(place.root)
    for number in range(1, rounds + 1):
        known = results.of(arm, number, seed)
        if known and is_made(place, number):
            continue
        seconds = make_round(place, number)
        if known:
            continue
        metrics, decision, monitors = (
            json.loads(place.git("show", f"{tag_of(number)}:data/round/{name}.json"))
            for name in ("metrics", "decision", "monitors")
        )
        used = "challenger" if decision["reward"]["promoted"] else "champion"
        figures = {name: metrics["reward"][used][query]["live"][key] for name, (query, key) in FIGURES.items()}
        promoted = {model: decision[model]["promoted"] for model in ("agent", "reward")}
        results.add(
            {
                "arm": arm,
                "seed": seed,
                "round": number,
                "seconds": seconds,
                "promoted": promoted,
                "reward": figures,
                "explored": monitors["explored"],
                **measured(place, "data/state/agent", seed, results, per_goal, SETS if number == rounds else ["climb"]),
            }
        )


def is_made(place: Place, number: int) -> bool:
    """Whether a round of a workspace is made to its end."""
    return tag_of(number) in place.git("tag").split() and not (place.root / JOURNAL).exists()


def make_round(place: Place, number: int) -> float:
    """Make a round, or finish the one that was stopped, unless it is made. Returns the seconds that all of it took."""
    clock, journal = place.root / WORK / f"climb-{number}.json", place.root / JOURNAL
    if not clock.exists():
        if is_made(place, number):
            raise SystemExit(
                f"{place.root}: how long round {number} took is lost; delete this folder, to make it again"
            )
        before = json.loads(journal.read_text())["spent_s"] if journal.exists() else 0.0
        began = time.time()
        place.run("flows.cli", "round")
        clock.write_text(json.dumps(before + time.time() - began))
    return float(json.loads(clock.read_text()))


def train_on(folder: Path, start: Place, seed: int, results: Results, per_goal: int) -> None:
    """The control: as many more updates on the demonstrations as fit in the time of the full arm's rounds."""
    full = results.of(FULL, seed=seed)
    if not full:
        raise SystemExit(f"{CONTROL}: takes as long as {FULL!r} did, which seed {seed} has none of; add that to --arms")
    root = folder / "control"
    shutil.rmtree(root, ignore_errors=True)
    place = start.copy(root)
    updates = yaml.safe_load((place.root / "params.yaml").read_text())["warm_agent"]["updates"]
    first = json.loads(_clock(start).read_text())["warm_agent"]
    spent = sum(line["seconds"] for line in full)
    place.set({"warm_agent": {"updates": updates + round(updates * spent / first)}})
    place.run("dvc", "repro", "--quiet", "warm_agent")
    last = max(line["round"] for line in full)
    found = measured(place, "data/seed/agent", seed, results, per_goal, SETS)
    results.add({"arm": CONTROL, "seed": seed, "round": last, "seconds": spent, **found})


def measure(folder: Path, seed: int, asked: argparse.Namespace, results: Results) -> None:
    """What a seed still lacks."""
    lacking = [arm for arm in asked.arms if len(results.of(arm, seed=seed)) < (1 if arm == CONTROL else asked.rounds)]
    if not lacking and results.of(START, seed=seed):
        return
    start = founded(folder, seed)
    if not results.of(START, seed=seed):
        found = measured(start, "data/seed/agent", seed, results, asked.held_out, SETS)
        results.add({"arm": START, "seed": seed, "round": 0, **found})
    for arm in lacking:
        if arm == CONTROL:
            train_on(folder, start, seed, results, asked.held_out)
        else:
            climb(folder, start, arm, seed, asked.rounds, results, asked.held_out)


def rate(line: Mapping[str, Any], goals: str, tiers: Iterable[int] = range(9)) -> float:
    """The share of a line's instances that were solved, of some goals and tiers."""
    counted = [counts for counts in line[goals].values() if counts["tier"] in tiers]
    return float(sum(counts["solved"] for counts in counted) / sum(counts["n"] for counts in counted))


def interval(lines: Sequence[Mapping[str, Any]], goals: str) -> tuple[float, float, float]:
    """Mean and 95 % interval: Wilson's over all instances or Student's t over seeds, whichever reaches further.

    Few seeds may agree by chance, and instances of a seed have their agent in common.
    """
    rates = [rate(line, goals) for line in lines]
    mean, n = fmean(rates), sum(counts["n"] for line in lines for counts in line[goals].values())
    within = wilson(round(mean * n), n) or (0.0, 1.0)
    between = over_seeds(rates)[1:] if len(rates) > 1 else within
    return mean, min(within[0], between[0]), max(within[1], between[1])


def over_seeds(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval of Student's t of two values or more."""
    mean, half = fmean(values), float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def pairs(results: Results, arm: str, rounds: int) -> dict[int, tuple[float, float]]:
    """The success that the full arm ended with, and an arm did, of the seeds for which both were measured."""

    def ends(arm: str, number: int) -> dict[int, float]:
        return {line["seed"]: rate(line, "climb") for line in results.of(arm, number)}

    full, other = ends(FULL, rounds), ends(arm, 0 if arm == START else rounds)
    return {seed: (full[seed], other[seed]) for seed in sorted(full.keys() & other.keys())}


def report(results: Results, rounds: int) -> dict[str, Any]:
    """Print the table, and how much more the full arm ended with than each other; returns the ratios."""
    head = f"{'arm':22} {'round':>5} {'seeds':>5}  {'held-out success':>20}  {'by tier':>23}  {'unseen goals':>20}"
    names = [*(f"{query} {key}" for query, key in FIGURES.values()), "wrong accepted"]
    figures = "  ".join(f"{name:17}" for name in names)
    print(f"{head}  {figures}  minutes  promoted")
    for arm in (START, *ARMS, CONTROL):
        for number in range(rounds + 1):
            if lines := results.of(arm, number):
                print(f"{arm:22} {number:5} {len(lines):5}  {_row(lines)}")
    found = {arm: pairs(results, arm, rounds) for arm in (START, *ARMS, CONTROL) if arm != FULL}
    gains = {arm: [full - other for full, other in seeds.values()] for arm, seeds in found.items() if seeds}
    for arm, more in gains.items():
        print(f"{FULL} less {arm}: {_mean(more, '+.3f')}, seeds {', '.join(map(str, found[arm]))}")
    full, begun = (sum(ends) for ends in zip((0.0, 0.0), *found[START].values(), strict=True))
    least = [fmean(more) for arm, more in gains.items() if arm != START]
    return {
        "seeds": len({line["seed"] for line in results.lines}),
        "success_ratio": full / begun if begun else None,
        "full_minus_best_control": min(least) if least else None,
    }


def _row(lines: Sequence[Mapping[str, Any]]) -> str:
    seen, unseen = (
        "{:.3f} [{:.3f}, {:.3f}]".format(*interval(lines, goals)) if all(goals in line for line in lines) else ""
        for goals in SETS
    )
    tiers = " ".join(f"{fmean(rate(line, 'climb', (tier,)) for line in lines):5.2f}" for tier in (1, 2, 3, 4))
    row = f"{seen}  {tiers}  {unseen:20}"
    if "reward" not in lines[0]:
        return row
    known = [[line["reward"][name] for line in lines if line["reward"][name] is not None] for name in FIGURES]
    wrong = [line["explored"]["accepted_wrong"] for line in lines if line["explored"]["accepted_wrong"] is not None]
    figures = "  ".join(f"{_mean(values):17}" for values in (*known, wrong))
    minutes = fmean(line["seconds"] for line in lines) / 60
    promoted = " ".join(f"{model} {sum(line['promoted'][model] for line in lines)}" for model in ("agent", "reward"))
    return f"{row}  {figures}  {minutes:7.1f}  {promoted}"


def _mean(values: Sequence[float], form: str = ".2f") -> str:
    if len(values) < 2:
        return format(values[0], form) if values else "-"
    mean, low, high = (format(value, form) for value in over_seeds(values))
    return f"{mean} [{low}, {high}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=range(5), help="to run; none: print what is known")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--held-out", type=int, default=10, help="fresh instances of each goal, for each seed")
    parser.add_argument("--arms", nargs="+", choices=[*ARMS, CONTROL], default=[*ARMS, CONTROL])
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/climb"), help="of the workspaces")
    parser.add_argument("--results", type=Path, default=Path(".ratchet/climb/results.jsonl"), help="what was measured")
    asked = parser.parse_args()
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    results = Results(asked.results)
    for seed in asked.seeds:
        measure((asked.folder / f"seed-{seed}").absolute(), seed, asked, results)
    print(json.dumps(report(results, asked.rounds)))


if __name__ == "__main__":
    main()
