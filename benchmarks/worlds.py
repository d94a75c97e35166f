"""Our MiniWoB++ world beside the package's own and BrowserGym's: ``python -m benchmarks.worlds [rounds]``.

In a round all play the same page, one after the other for a few seconds, alone and with as many processes as
fill two cores, so that whatever else the machine does hits all alike. A step is the same work for each
(``benchmarks/contenders.py``), and so are the pages, seeds and clicks. Figures are medians over rounds. The last
line is one JSON object. ``make peers`` sets the others up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
BROWSERGYM_PYTHON = ROOT / ".ratchet/browsergym/bin/python"
PAGES = (
    "click-test-2", "click-button", "click-link", "click-dialog-2", "click-tab",
    "focus-text-2", "click-option", "click-checkboxes", "enter-text", "login-user",
)  # fmt: skip


class Turn(NamedTuple):
    """What is played in a round: a contender, how many processes at a time, and for how long."""

    contender: str
    processes: int
    seconds: float


TURNS = (
    Turn("ours", 1, 2.0), Turn("bare", 1, 1.0), Turn("parts", 1, 2.0), Turn("stock", 1, 4.0),
    Turn("browsergym", 1, 10.0), Turn("browsergym-at-once", 1, 5.0),
    Turn("ours", 2, 3.0), Turn("ours", 3, 3.0), Turn("stock", 4, 5.0), Turn("browsergym", 2, 10.0),
)  # fmt: skip

Answer = dict[str, Any]


class Player:
    """A process that plays one contender."""

    def __init__(self, contender: str, place: int) -> None:
        python = str(BROWSERGYM_PYTHON) if contender.startswith("browsergym") else sys.executable
        environment = os.environ | {"PYTHONPATH": str(ROOT), "MINIWOB_CHROMEDRIVER": found("chromedriver")}
        environment["MINIWOB_CHROME_BINARY"] = found("chromium")
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.contenders", contender, str(place)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def tell(self, request: Answer) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Answer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r}: ended; run it by hand to see why")
        found: Answer = json.loads(line)
        return found

    def close(self) -> None:
        self._process.communicate()


def found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SystemExit(f"{program} is not on PATH; run `make peers`")
    return path


def together(players: Sequence[Player], request: Answer) -> list[Answer]:
    for player in players:
        player.tell(request)
    return [player.answer() for player in players]


def play(rounds: int) -> dict[Turn, list[list[Answer]]]:
    """The answers of each process by turn and round."""
    most: Counter[str] = Counter()
    for turn in TURNS:
        most[turn.contender] = max(most[turn.contender], turn.processes)
    players = {name: [Player(name, place) for place in range(count)] for name, count in most.items()}
    answers: dict[Turn, list[list[Answer]]] = {turn: [] for turn in TURNS}
    for number in range(rounds):
        for each in players.values():
            together(each, {"page": PAGES[number % len(PAGES)]})
        for turn in TURNS:
            answers[turn].append(together(players[turn.contender][: turn.processes], {"seconds": turn.seconds}))
        print(f"round {number + 1} of {rounds}: {PAGES[number % len(PAGES)]}", file=sys.stderr)
    for each in players.values():
        for player in each:
            player.close()
    return answers


def stepping(answers: list[Answer]) -> float:
    """Steps a second while stepping, summed over processes."""
    return float(sum(each["steps"] / each["step_s"] for each in answers))


def with_resets(answers: list[Answer]) -> float:
    """Steps a second of all the time, resets included, summed over processes."""
    return float(sum(each["steps"] / each["wall_s"] for each in answers))


def mean(part: str, whole: str, scale: float) -> Callable[[list[Answer]], float]:
    """``part`` for each ``whole``, of all processes together."""
    return lambda answers: scale * sum(each[part] for each in answers) / sum(each[whole] for each in answers)


def memory(answers: list[Answer]) -> float:
    return float(sum(each["memory_mib"] for each in answers))


FIGURES: dict[str, Callable[[list[Answer]], float]] = {
    "steps/s": stepping,
    "with resets": with_resets,
    "CPU ms/step": mean("step_cpu_s", "steps", 1000),
    "reset ms": mean("reset_s", "resets", 1000),
    "reset CPU ms": mean("reset_cpu_s", "resets", 1000),
    "MiB": memory,
}


def spread(values: Sequence[float]) -> str:
    """Median and range, to three figures."""
    middle, low, high = (
        f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in (median(values), min(values), max(values))
    )
    return f"{middle} ({low}-{high})"


def print_table(answers: dict[Turn, list[list[Answer]]]) -> None:
    rows = [["contender, processes", *FIGURES]]
    for turn, of_rounds in answers.items():
        figures = [spread([figure(each) for each in of_rounds]) for figure in FIGURES.values()]
        rows.append([f"{turn.contender}, {turn.processes}", *figures])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def parts_of_a_step(answers: list[list[Answer]]) -> dict[str, float]:
    """Median milliseconds of each part of our step, over all steps of all rounds."""
    names = answers[0][0]["parts"]
    of = {name: 1000 * median(each for (answer,) in answers for each in answer["parts"][name]) for name in names}
    whole = of.pop("all")
    of.pop("is it a scrollbar", None)  # a part of the mouse events, on pages that have one
    of["the rest, in Python"] = whole - sum(of.values())
    return dict(sorted(of.items(), key=lambda part: -part[1])) | {"all": whole}


def ratios(answers: dict[Turn, list[list[Answer]]]) -> dict[str, float]:
    """Medians over rounds of one turn's figure over another's in the same round."""
    of = {(turn.contender, turn.processes): each for turn, each in answers.items()}

    def over(figure: Callable[[list[Answer]], float], one: tuple[str, int], other: tuple[str, int]) -> float:
        return round(median(figure(a) / figure(b) for a, b in zip(of[one], of[other], strict=True)), 3)

    ours, stock, gym, at_once = ("ours", 1), ("stock", 1), ("browsergym", 1), ("browsergym-at-once", 1)
    cpu, reset = FIGURES["CPU ms/step"], FIGURES["reset ms"]
    best = max((("ours", 2), ("ours", 3)), key=lambda turn: median(map(stepping, of[turn])))
    return {
        "aggregate_over_stock_miniwob": over(stepping, best, ("stock", 4)),
        "aggregate_over_stock_miniwob_with_resets": over(with_resets, best, ("stock", 4)),
        "aggregate_over_browsergym": over(stepping, best, ("browsergym", 2)),
        "our_processes": best[1],
        "step_over_stock_miniwob": over(stepping, ours, stock),
        "step_over_browsergym": over(stepping, ours, gym),
        "step_over_browsergym_without_delays": over(stepping, ours, at_once),
        "share_of_bare_loop": over(stepping, ours, ("bare", 1)),
        "share_of_bare_loop_by_cpu": over(cpu, ("bare", 1), ours),
        "step_cpu_over_stock_miniwob": over(cpu, stock, ours),
        "step_cpu_over_browsergym": over(cpu, gym, ours),
        "reset_over_stock_miniwob": over(reset, stock, ours),
        "reset_over_browsergym": over(reset, gym, ours),
    }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else len(PAGES)
    answers = play(rounds)
    print_table(answers)
    print("\nour step, in ms:")
    of_parts = next(each for turn, each in answers.items() if turn.contender == "parts")
    for name, ms in parts_of_a_step(of_parts).items():
        print(f"{ms:8.2f}  {name}")
    print(json.dumps({"rounds": rounds, "cores": os.cpu_count(), **ratios(answers)}))


if __name__ == "__main__":
    main()
