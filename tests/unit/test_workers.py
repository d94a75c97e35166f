from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from checkout import CHECKOUT
from hand_built import NAME, click, trajectory

from tasks.errors import RecordError
from tasks.files import remove
from tasks.params import load_params
from tasks.records import Trajectory, shards
from tasks.workers import JSON, TRAJECTORIES, crew, hands, spread

UNITS = [(f"unit-{number}.json", number) for number in range(5)]


def squarer(diary: str) -> Callable[[int], list[int]]:
    """Squares, and notes in a diary which units were really done."""

    def square(number: int) -> list[int]:
        with Path(diary).open("a") as lines:
            lines.write(f"{number}\n")
        return [number, number * number]

    return square


def napper(diary: str) -> Callable[[int], list[int]]:
    """Says who it is, and never finishes."""

    def nap(number: int) -> list[int]:
        with Path(diary).open("a") as lines:
            lines.write(f"{os.getpid()}\n")
        signal.pause()
        return [number]

    return nap


EXPECTED = [0, 0, 1, 1, 2, 4, 3, 9, 4, 16]


@pytest.mark.parametrize("processes", [1, 3])
def test_results_come_in_the_order_of_the_units(tmp_path: Path, processes: int) -> None:
    with crew(squarer, (str(tmp_path / "diary"),), processes) as workers:
        assert list(spread("squares", workers, UNITS, tmp_path / "scratch", JSON)) == EXPECTED


def counter() -> Callable[[int], list[int]]:
    """Says which process it is, and how many units that process has done."""
    done = count(1)
    return lambda number: [number, os.getpid(), next(done)]


def test_one_crew_does_several_spreads(tmp_path: Path) -> None:
    with crew(counter, (), 1) as workers:
        first = list(spread("first", workers, [("a", 1), ("b", 2)], tmp_path, JSON))
        assert list(spread("then", workers, [("c", 3)], tmp_path, JSON)) == [3, first[1], 3]
    assert not Path(f"/proc/{first[1]}").exists()


@pytest.mark.parametrize(
    ("cores", "free_gib", "engine", "base", "processes"),
    [
        (8, 64, {}, {}, 8),
        (8, 16, {}, {}, 5),  # 3 GiB each
        (8, 2, {}, {}, 1),
        (8, 64, {"workers": 20}, {}, 20),
        (8, 64, {}, {"agent": "some/model"}, 2),  # of whatever size
        (1, 64, {}, {"agent": "some/model"}, 1),
        (8, 64, {"kind": "vllm"}, {"agent": "some/model"}, 8),  # the server holds it
    ],
)
def test_there_is_a_worker_for_each_core_that_has_the_memory(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    free_gib: int,
    engine: dict[str, Any],
    base: dict[str, str],
    processes: int,
) -> None:
    monkeypatch.setattr("tasks.workers.cpu_count", lambda: cores)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free_gib * 2**30))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    params = load_params(CHECKOUT / "params.yaml")
    asked = {
        "engine": params.engine.model_copy(update=engine),
        "base": params.base.model_copy(update=base),
    }
    assert hands(params.model_copy(update=asked)) == processes


def test_of_workers_on_a_gpu_there_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.workers.cpu_count", lambda: 8)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=64 * 2**30))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert hands(load_params(CHECKOUT / "params.yaml")) == 2


def thread_counter() -> Callable[[int], list[int]]:
    """Says how many threads torch has in its process."""
    return lambda _: [torch.get_num_threads()]


def test_a_worker_computes_in_one_thread(tmp_path: Path) -> None:
    """Whatever the threads of a process that is alone."""
    with crew(thread_counter, (), 1) as workers:
        assert list(spread("threads", workers, [("a", 1)], tmp_path, JSON)) == [1]


def test_finished_units_are_not_done_again_and_broken_ones_are(tmp_path: Path) -> None:
    scratch, diary = tmp_path / "scratch", tmp_path / "diary"
    with crew(squarer, (str(diary),), 1) as workers:
        spread("squares", workers, UNITS, scratch, JSON)
        diary.unlink()
        (scratch / "unit-1.json").write_text("[1,")
        (scratch / "unit-3.json").unlink()
        assert list(spread("squares", workers, UNITS, scratch, JSON)) == EXPECTED
    assert sorted(diary.read_text().split()) == ["1", "3"]
    assert (scratch / "unit-1.json.broken").read_text() == "[1,"


def failing(diary: str, unfit: int) -> Callable[[int], list[int]]:
    """Refuses one unit, and does the others."""

    def work(number: int) -> list[int]:
        if number == unfit:
            raise RecordError(f"unit {number} is not fit")
        return squarer(diary)(number)

    return work


def test_an_error_in_a_unit_ends_the_work_and_what_is_not_begun_is_left(tmp_path: Path) -> None:
    units, diary = [(f"unit-{number}.json", number) for number in range(1000)], tmp_path / "diary"
    with pytest.raises(RecordError, match="unit 0 is not fit"), crew(failing, (str(diary), 0), 1) as workers:
        spread("squares", workers, units, tmp_path / "scratch", JSON)
    assert not diary.exists() or len(diary.read_text().split()) < 999
    with crew(squarer, (str(diary),), 1) as workers:
        assert list(spread("squares", workers, units[:5], tmp_path / "scratch", JSON)) == EXPECTED


def unfounded(folder: str) -> Callable[[int], list[int]]:
    raise RecordError(f"{folder}: no model is here")


def test_an_error_of_what_makes_a_worker_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="agent: no model is here"), crew(unfounded, ("agent",), 2) as workers:
        spread("squares", workers, UNITS, tmp_path / "scratch", JSON)


def walker(diary: str) -> Callable[[int], list[Trajectory]]:
    """Trajectories, as a worker makes them."""
    return lambda seed: [trajectory(click(NAME), seed=seed, place=place) for place in range(2)]


def test_trajectories_of_units_are_merged_as_a_stream(tmp_path: Path) -> None:
    units = [(f"unit-{seed}", seed) for seed in range(3)]
    with crew(walker, ("",), 2) as workers:
        found = spread("walk", workers, units, tmp_path / "scratch", TRAJECTORIES)
    first = next(found)
    remove(tmp_path / "scratch/unit-2")  # has not been read yet: it is opened when its turn comes
    expected = [path for _, seed in units for path in walker("")(seed)]
    assert [first, *islice(found, 3)] == expected[:4]
    with pytest.raises(RecordError, match="unit-2"):
        next(found)


def test_a_broken_unit_is_set_aside(tmp_path: Path) -> None:
    units, scratch = [("unit-0", 0), ("unit-1", 1)], tmp_path / "scratch"
    with crew(walker, ("",), 1) as workers:
        before = list(spread("walk", workers, units, scratch, TRAJECTORIES))
        (shard,) = shards(scratch / "unit-1")
        shard.write_bytes(shard.read_bytes()[:-9])
        assert list(spread("walk", workers, units, scratch, TRAJECTORIES)) == before
    assert (scratch / "unit-1.broken" / shard.name).exists()


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    program = (
        "from tasks.workers import JSON, crew, spread; from test_workers import napper; from pathlib import Path\n"
        f"if __name__ == '__main__': spread('naps', crew(napper, ({str(diary)!r},), 2), [('a', 1), ('b', 2)], "
        f"Path({str(tmp_path)!r}), JSON)"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    path = os.pathsep.join(map(str, [Path(__file__).parent, *Path(__file__).parents[1:3]]))
    with subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path}) as parent:
        while not diary.exists() or len(diary.read_text().split()) < 2:
            assert parent.poll() is None
        workers = [psutil.Process(int(pid)) for pid in diary.read_text().split()]
        parent.kill()
    gone, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
    assert len(gone) == 2
