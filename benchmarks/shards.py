"""Bytes of trajectory shards beside one PNG file per screenshot: ``python -m benchmarks.shards``.

The trajectories are real MiniWoB++ episodes: of the oracles, of a random policy, and trees of random paths that
branch off one another as those of a search do. The shards hold everything a trajectory has, elements and candidates
too; the PNG files beside them hold the pictures alone. The last line is one JSON object.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from environments.registry import load_goals, open_world
from environments.types import Action, Candidate, End, Episode, Goal, Instance, Kind, Observation, Step, World
from tasks.demonstrate import demonstrate
from tasks.records import Origin, Trajectory, read_trajectories, shards, write_trajectories

GOALS = Path("data/goals/starter.yaml")
SEEDS = range(12)  # of each goal: an oracle episode and a random one each, and a tree for every second
PATHS = 10  # of a tree: a search's five and five continuations
CANDIDATES = 4
COPIES = 3, 30  # times over for the two measurements of memory: some 12,000 rows fill a shard


def collect(goals: Sequence[Goal]) -> dict[str, list[Trajectory]]:
    """Trajectories by how they came about."""
    found: dict[str, list[Trajectory]] = {"oracle": [], "random": [], "tree": []}
    for goal in goals:
        with closing(open_world(goal.world)) as world:
            for instance in (Instance(goal, seed) for seed in SEEDS):
                found["oracle"].append(_record("oracle", 0, demonstrate(world, instance)))
                found["random"].append(_record("random", 0, wander(world, instance, [], random.Random(instance.name))))
                if instance.seed % 2 == 0:
                    found["tree"] += tree(world, instance)
    return found


def tree(world: World, instance: Instance) -> Iterator[Trajectory]:
    """Paths that each leave an earlier one at some step; the way there is walked again, as a search does."""
    chance = random.Random(instance.name)
    paths = [wander(world, instance, [], chance)]
    while len(paths) < PATHS:
        left = chance.choice(paths)
        paths.append(wander(world, instance, left.steps[: chance.randrange(len(left.steps))], chance))
    return (_record("tree", place, path) for place, path in enumerate(paths))


def wander(world: World, instance: Instance, before: Sequence[Step], chance: random.Random) -> Episode:
    """The steps ``before`` once more, then random ones, each with the candidates it was drawn from."""
    start = world.reset(instance.goal, instance.seed)
    screen, steps = start.observation, list[Step]()
    for step in before:
        steps.append(Step(screen, step.action, step.candidates, step.score))
        screen = world.step(step.action)
    while not world.ended and len(steps) < instance.goal.max_steps:
        options = tuple(Candidate(_draw(screen, chance), 1, chance.random()) for _ in range(CANDIDATES))
        steps.append(Step(screen, options[0].action, options, options[0].score))
        screen = world.step(options[0].action)
    end = End.WORLD if world.ended else End.STEP_LIMIT
    return Episode(instance, start.instruction, tuple(steps), screen, end, chance.random())


def _draw(screen: Observation, chance: random.Random) -> Action:
    if chance.random() < 0.2:
        return Action(Kind.TYPE, text=chance.choice(["Ann", "Bob", "42"]))
    return Action.click(chance.choice(screen.elements))


def _record(how: str, place: int, episode: Episode) -> Trajectory:
    return Trajectory(f"{how}/{episode.instance.name}/{place}", 1, Origin.SEARCH, episode, "a" * 12, "b" * 12)


def screens(trajectories: Sequence[Trajectory]) -> list[bytes]:
    """The PNG of every screen, repeated as often as it was seen."""
    episodes = [trajectory.episode for trajectory in trajectories]
    return [png for e in episodes for png in (*(step.observation.screenshot for step in e.steps), e.last.screenshot)]


def measure(trajectories: Sequence[Trajectory], folder: Path) -> dict[str, float]:
    """Bytes a screen, and the speeds in MB of pictures a second."""
    pngs = screens(trajectories)
    files = folder / "pngs"
    files.mkdir(parents=True)
    for place, png in enumerate(pngs):
        (files / f"{place}.png").write_bytes(png)
    packed = folder / "shards"
    packed.mkdir()
    writing = _seconds(lambda: write_trajectories(packed, trajectories))
    reading = _seconds(lambda: [None for _ in read_trajectories(packed)])
    size = sum(map(len, pngs))
    return {
        "trajectories": len(trajectories),
        "screens": len(pngs),
        "distinct": len(set(pngs)),
        "png": size / len(pngs),
        "png_blocks": _blocks(files) / len(pngs),
        "distinct_png": sum(map(len, set(pngs))) / len(pngs),
        "shards": sum(file.stat().st_size for file in shards(packed)) / len(pngs),
        "shards_blocks": _blocks(packed) / len(pngs),
        "pictures_in_shards": sum(map(_pictures, shards(packed))) / len(pngs),
        "write_mb_s": size / writing / 1e6,
        "read_mb_s": size / reading / 1e6,
        "write_screens_s": len(pngs) / writing,
        "read_screens_s": len(pngs) / reading,
    }


def _seconds(do: Callable[[], Any]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def _blocks(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


def _pictures(shard: Path) -> int:
    group = pq.read_metadata(shard).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    return sum(column.total_compressed_size for column in columns if column.path_in_schema == "screenshot.bytes")


def peak(source: Path, folder: Path, times: int) -> float:
    """MB of memory at most, in a process of its own that reads a dataset and writes it anew, ``times`` over."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_copy, (source, folder, times)))


def _copy(source: Path, folder: Path, times: int) -> float:
    folder.mkdir()
    write_trajectories(folder, chain.from_iterable(map(read_trajectories, repeat(source, times))))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def encodings(pngs: Sequence[bytes], folder: Path) -> dict[str, tuple[float, float]]:
    """Other ways to store the same pixels: bytes a picture in a Parquet dictionary, and ms to encode one."""
    pictures = [Image.open(io.BytesIO(png)).convert("RGB") for png in pngs]
    ways: dict[str, Callable[[Image.Image], bytes]] = {
        "PNG, smallest of Pillow's": lambda picture: _save(picture, "PNG", optimize=True),
        "PNG with a palette (256 colours or fewer)": _with_palette,
        "WebP, lossless": lambda picture: _save(picture, "WEBP", lossless=True, quality=50),
        "PNG not deflated": lambda picture: _save(picture, "PNG", compress_level=0),
    }
    found = {"PNG as the browser made it": (_zstd(pngs, folder), 0.0)}
    for name, encode in ways.items():
        began = time.perf_counter()
        made = [encode(picture) for picture in pictures]
        seconds = time.perf_counter() - began
        for before, after in zip(pictures, made, strict=True):
            assert Image.open(io.BytesIO(after)).convert("RGB").tobytes() == before.tobytes(), name
        found[name] = _zstd(made, folder), 1000 * seconds / len(made)
    return found


def _with_palette(picture: Image.Image) -> bytes:
    colours, places = np.unique(np.asarray(picture).reshape(-1, 3), axis=0, return_inverse=True)
    if len(colours) > 256:
        return _save(picture, "PNG", optimize=True)
    indexed = Image.frombytes("P", picture.size, places.astype(np.uint8).tobytes())
    indexed.putpalette(colours.tobytes())
    return _save(indexed, "PNG", optimize=True)


def _save(picture: Image.Image, kind: str, **how: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **how)
    return file.getvalue()


def _zstd(pictures: Sequence[bytes], folder: Path) -> float:
    path = folder / "pictures.parquet"
    table = pa.table({"bytes": pa.array(list(pictures), pa.binary())})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    return path.stat().st_size / len(pictures)


def main() -> None:
    goals = list(load_goals(GOALS).values())
    found = collect(goals)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        measured = {how: measure(trajectories, folder / how) for how, trajectories in found.items()}
        everything = list(chain.from_iterable(found.values()))
        measured["all"] = measure(everything, folder / "all")
        memory = {times: peak(folder / "all/shards", folder / f"copy-{times}", times) for times in COPIES}
        tried = encodings(list(dict.fromkeys(screens(everything))), folder)
    print(f"{'':24}" + "".join(f"{how:>10}" for how in measured))
    for name in measured["all"]:
        print(f"{name:24}" + "".join(f"{figures[name]:10.0f}" for figures in measured.values()))
    few, many = (round(megabytes) for megabytes in memory.values())
    print(f"peak memory of copying all this {COPIES[0]} times over: {few} MB; {COPIES[1]} times over: {many} MB")
    for name, (size, ms) in tried.items():
        print(f"{size:8.0f} bytes a picture under zstd, {ms:6.2f} ms: {name}")
    ratios = {how: round(figures["shards"] / figures["png"], 3) for how, figures in measured.items()}
    blocks = {how: round(figures["shards_blocks"] / figures["png_blocks"], 3) for how, figures in measured.items()}
    stored = round(measured["all"]["pictures_in_shards"] / measured["all"]["distinct_png"], 3)
    print(
        json.dumps(
            {
                "bytes_over_png_per_step": ratios,
                "disk_blocks_over_png_per_step": blocks,
                "pictures_over_distinct_png": stored,
                "write_mb_s": round(measured["all"]["write_mb_s"], 1),
                "read_mb_s": round(measured["all"]["read_mb_s"], 1),
                "peak_mb": few,
                "peak_mb_ten_times": many,
            }
        )
    )


if __name__ == "__main__":
    main()
