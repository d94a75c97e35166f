"""Many random episodes over every page, to find what hangs, leaks or gets lost: ``python -m benchmarks.soak``.

A world that breaks is given a new browser, and the episode is played again to where it was. Prints what was met, and
last one JSON object. It fails when an episode was lost, or a process, a descriptor or a folder was left over.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

from benchmarks.wander import RandomAgent, goals
from environments.registry import open_world
from environments.types import End, Goal, Instance
from tasks.search.rollout import Attempt
from tasks.workers import JSON, crew, spread

UNIT = 50  # episodes that a worker plays in one world
LOOK_EVERY_S = 2.0
GRACE_S = 10.0  # for the system to let go of what was killed
Found = dict[str, Any]


def make_worker() -> Callable[[list[Instance]], list[Found]]:
    return play


def play(instances: list[Instance]) -> list[Found]:
    """How the episodes went; with the last one, what the world left behind when it was closed."""
    before = leftovers()
    with closing(open_world(instances[0].goal.world)) as world:
        found = [one(Attempt(instance, world)) for instance in instances]
    after = leftovers()
    found[-1]["left"] = {name: after[name] - before[name] for name in before}
    return found


def one(attempt: Attempt) -> Found:
    while attempt.end is None:
        [options] = RandomAgent().propose([attempt.context], 1, 1.0, attempt.instance.name)
        attempt.take(options)
    episode, solved = attempt.finish()
    return {"goal": attempt.instance.goal.id, "seed": attempt.instance.seed, "end": str(episode.end),
            "steps": len(episode.steps), "breaks": attempt.breaks, "solved": solved}  # fmt: skip


def leftovers() -> dict[str, int]:
    """What this process holds: descriptors, and processes it started."""
    process = psutil.Process()
    return {"descriptors": process.num_fds(), "processes": len(process.children(recursive=True))}


class Watch(Thread):
    """Looks at the process tree every few seconds: its memory, and who belongs to it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0.0
        self.seen: set[psutil.Process] = set()
        self._here_before = set(psutil.Process().children())
        self._over = Event()

    def run(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            tree = set(psutil.Process().children(recursive=True)) - self._here_before
            self.seen |= tree
            self.peak_mib = max(self.peak_mib, sum(map(pss, tree)) / 2**20)

    def stop(self) -> None:
        self._over.set()
        self.join()


def pss(process: psutil.Process) -> int:
    """The memory of a process, shared pages divided among those that share them, in bytes."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:  # it has just ended
        return 0


def instances(episodes: int) -> list[Instance]:
    """Every goal with seed 0, then with seed 1, and so on."""
    every: list[Goal] = list(goals().values())
    return [Instance(every[place % len(every)], place // len(every)) for place in range(episodes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    wanted = instances(asked.episodes)
    units = [(str(place), wanted[place : place + UNIT]) for place in range(0, len(wanted), UNIT)]
    resource_tracker.ensure_running()  # Python's own helper of worker processes, which stays
    before, began, watch = leftovers(), time.monotonic(), Watch()
    watch.start()
    with tempfile.TemporaryDirectory(prefix="ratchet-soak-") as home:
        os.environ["TMPDIR"] = home  # of the workers and their browsers
        with crew(make_worker, (), asked.workers) as workers:
            found = list(spread("soak", workers, units, Path(home) / "units", JSON))
        folders = len(list(Path(home).glob("ratchet-chromium-*")))
    watch.stop()
    report(found, wanted, watch, before, folders, time.monotonic() - began)


def report(
    found: list[Found], wanted: list[Instance], watch: Watch, before: dict[str, int], folders: int, seconds: float
) -> None:
    after = leftovers()
    left = {name: after[name] - before[name] for name in before}
    left["worker_descriptors"] = max(item["left"]["descriptors"] for item in found if "left" in item)
    left["worker_processes"] = max(item["left"]["processes"] for item in found if "left" in item)
    left["alive"] = len(psutil.wait_procs(watch.seen, GRACE_S)[1])
    left["folders"] = folders
    broken = [item for item in found if item["breaks"]]
    for item in broken:
        print(f"{item['goal']}/{item['seed']}: the world broke {item['breaks']} times; the episode ended {item['end']}")
    for end, number in sorted(Counter(item["end"] for item in found).items()):
        print(f"{end:12} {number:6}")
    lost = len(wanted) - len(found) + sum(item["end"] == End.CRASHED for item in found)
    result = {
        "episodes": len(found),
        "steps": sum(item["steps"] for item in found),
        "breaks": sum(item["breaks"] for item in found),
        "lost": lost,
        "peak_mib": round(watch.peak_mib),
        "left": left,
        "seconds": round(seconds),
    }
    print(json.dumps(result))
    sys.exit(bool(lost or any(number > 0 for number in left.values())))


if __name__ == "__main__":
    main()
