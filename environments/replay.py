"""Checks a goal file: does the same episode show the same screens again, in this world and in another one?

Run ``python -m environments.replay FILE``. It clicks at random, the same way each time, replays what it clicked,
and names the elements that were not the same: times and counters of a server, mostly, to be frozen or hidden.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

from environments.registry import load_goals, open_world
from environments.types import Action, Element, Goal, GoalError, Kind, Observation, World, WorldError

SEED, EPISODES, STEPS = 0, 3, 8


def main() -> int:
    """Check the goals of the file that the command line names; the exit status is 1 when one does not replay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a goal file")
    file = parser.parse_args().file
    try:
        goals = load_goals(file).values()
        found = {goal.id: differences(goal) for goal in goals}
    except (GoalError, WorldError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, lines in found.items():
        print(f"{name}: {'replays' if not lines else 'does not replay'}", *lines, sep="\n  ")
    return int(any(found.values()))


def differences(goal: Goal) -> list[str]:
    """What is not the same when episodes of random clicks are replayed, and whether the goal is reached from the start.

    Raises:
        WorldError: when a world breaks.
    """
    with closing(open_world(goal.world)) as world, closing(open_world(goal.world)) as other:
        for seed in range(SEED, SEED + EPISODES):
            actions, seen = _wander(world, goal, seed)
            if not actions:
                return [f"seed {seed}: the goal is reached before anything is done"]
            for again in (world, other):
                if found := _first_difference(seen, _screens(again, goal, seed, actions), actions):
                    return [f"seed {seed}, {found[0]}", *found[1:]]
    return []


def _wander(world: World, goal: Goal, seed: int) -> tuple[list[Action], list[Observation]]:
    """Random clicks and every screen; none when the goal is reached already."""
    chooser = random.Random(f"{goal.id}/{seed}")
    seen = [world.reset(goal, seed).observation]
    actions: list[Action] = []
    while not world.ended and len(actions) < STEPS and (actions or not world.verdict()):
        elements = seen[-1].elements
        actions.append(Action.click(chooser.choice(elements)) if elements else Action(Kind.WAIT))
        seen.append(world.step(actions[-1]))
    return actions, seen


def _screens(world: World, goal: Goal, seed: int, actions: list[Action]) -> Iterator[Observation]:
    """The screens of the actions, as far as the world goes on."""
    yield world.reset(goal, seed).observation
    for action in actions:
        if world.ended:
            return
        yield world.step(action)


def _first_difference(
    seen: Sequence[Observation], screens: Iterable[Observation], actions: Sequence[Action]
) -> list[str]:
    """After what a screen is first not as it was seen, and how; nothing where all are the same."""
    for step, (before, now) in enumerate(zip_longest(seen, screens)):
        if before != now:
            done = " | ".join(map(str, actions[:step])) or "the reset"
            return [f"after {done}:", *_changed(before, now)]
    return []


def _changed(before: Observation, now: Observation | None) -> list[str]:
    if now is None:
        return ["the world has ended by then, as it had not before"]

    def line(element: Element) -> str:
        left, top, width, height = element.box
        return f"{element.line} (box {left},{top} {width}x{height})"

    old, new = list(map(line, before.elements)), list(map(line, now.elements))
    lines = [f"- {each}" for each in old if each not in new] + [f"+ {each}" for each in new if each not in old]
    return lines or ["the elements are the same; the pictures are not"]


if __name__ == "__main__":
    sys.exit(main())
