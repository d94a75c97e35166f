"""Whether the same actions give the same bytes on every page: ``python -m benchmarks.determinism``.

On each page of the package, random actions are drawn in a fresh browser. The same actions are then played in another
fresh browser, and entered from the longest to the shortest by reset and replay, as a search does. Screenshots and
elements must agree byte for byte. Prints a line a page, and last one JSON object.
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import closing

from benchmarks.wander import RandomAgent, goals
from environments.registry import open_world
from environments.types import Goal, Instance, Observation, Step
from models.prompts import context_at
from tasks.search.walker import Walker

ACTIONS = 6
SEED = 11


def digest(seen: Observation) -> str:
    return hashlib.sha256(seen.screenshot + repr(seen.elements).encode()).hexdigest()


def wander(goal: Goal) -> tuple[list[Step], list[str]]:
    """Steps of random actions in a fresh browser, and the digests of all screens: one more than the steps."""
    with closing(open_world(goal.world)) as world:
        start = world.reset(goal, SEED)
        seen, steps, digests = start.observation, list[Step](), [digest(start.observation)]
        while not world.ended and len(steps) < ACTIONS:
            context = context_at(start.instruction, steps, seen)
            [[option]] = RandomAgent().propose([context], 1, 1.0, goal.id)
            steps.append(Step(seen, option.action))
            seen = world.step(option.action)
            digests.append(digest(seen))
    return steps, digests


def again(goal: Goal, steps: list[Step]) -> tuple[list[str], list[str]]:
    """The digests of the same actions in another browser: one after the other, and each path entered anew."""
    with closing(open_world(goal.world)) as world:
        walker = Walker(world, Instance(goal, SEED))
        first = digest(walker.start.observation)

        def after(place: int) -> str:
            return digest(walker.walk(steps[:place], steps[place].observation, steps[place].action))

        straight = [after(place) for place in range(len(steps))]
        entered = [after(place) for place in reversed(range(len(steps)))]
    return [first, *straight], [first, *reversed(entered)]


def main() -> None:
    results = {}
    print(f"{'goal':32} {'actions':>7}  {'fresh browser':14} reset and replay")
    for goal in goals().values():
        steps, digests = wander(goal)
        fresh, replayed = again(goal, steps)
        results[goal.id] = fresh == digests and replayed == digests
        words = ["same" if found == digests else "DIFFERS" for found in (fresh, replayed)]
        print(f"{goal.id:32} {len(steps):7}  {words[0]:14} {words[1]}", flush=True)
    print(json.dumps({"goals": len(results), "identical": sum(results.values())}))
    sys.exit(not all(results.values()))


if __name__ == "__main__":
    main()
