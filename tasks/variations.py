"""Demonstrations played otherwise, and what the world says of them: failures like successes, successes unlike them.

A reward model that knows demonstrations alone takes whatever looks like their ends for one, and whatever they did not
do for wrong. The world is asked about demonstrations: here a failure is known to be one, and a detour to be harmless.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from environments.types import Action, End, Episode, Kind, Step, World
from tasks.records import VARIED, Origin, Trajectory
from tasks.reward_data.rule import clicked

_SLIPS = 3  # tried of a demonstration


def variations(world: World, solved: Trajectory) -> list[Trajectory]:
    """The demonstration spoiled, reordered and with a slip before it, as far as each can be.

    Of the ways to do each, in an order that the id draws, the first of which the world says what it should.
    """
    found = []
    for origin, ways in zip(VARIED, (_spoiled, _exchanged, _with_a_slip), strict=True):
        for actions in ways(solved.episode, random.Random(f"{solved.id}/{origin}")):
            episode = _replayed(world, solved.episode, actions)
            if episode and world.verdict() is (origin is not Origin.SPOILED):
                found.append(replace(solved, id=f"{solved.id}-{origin}", origin=origin, episode=episode))
                break
    return found


def _moves(episode: Episode) -> list[list[Action]]:
    """The actions, what is typed together with the click before it."""
    moves: list[list[Action]] = []
    for step in episode.acts:
        hangs = step.action.kind is Kind.TYPE and moves and moves[-1][-1].kind is not Kind.TYPE
        moves = [*moves[:-1], [*moves[-1], step.action]] if hangs else [*moves, [step.action]]
    return moves


def _spoiled(episode: Episode, chooser: random.Random) -> Iterator[Sequence[Action]]:
    """With one thing left out, taken back or typed otherwise before the last move, which ends the work."""
    ways = [*_shorter(_moves(episode)), *_taken_back(episode), *_mistyped(episode, chooser)]
    yield from chooser.sample(ways, len(ways))


def _shorter(moves: Sequence[Sequence[Action]]) -> Iterator[Sequence[Action]]:
    for place in range(len(moves) - 1):
        yield [*chain(*moves[:place], *moves[place + 1 :])]


def _taken_back(episode: Episode) -> Iterator[Sequence[Action]]:
    *before, last = (step.action for step in episode.acts)
    for action in before:
        if action.target and action.target[0] == "checkbox":
            yield [*before, action, last]


def _mistyped(episode: Episode, chooser: random.Random) -> Iterator[Sequence[Action]]:
    """Each text once in other letters, less its last one, or begun only."""
    actions = [step.action for step in episode.acts]
    for place, action in enumerate(actions):
        text = action.text
        wrong = sorted({text.upper(), text.lower(), text[:-1], text.split(" ")[0]} - {text, ""})
        if action.kind is Kind.TYPE and wrong:
            yield [*actions[:place], replace(action, text=chooser.choice(wrong)), *actions[place + 1 :]]


def _exchanged(episode: Episode, chooser: random.Random) -> Iterator[Sequence[Action]]:
    """With two neighbours of the moves before the last exchanged."""
    moves = _moves(episode)
    for place in _shuffled(len(moves) - 2, chooser):
        yield [*chain(*moves[:place], moves[place + 1], moves[place], *moves[place + 2 :])]


def _with_a_slip(episode: Episode, chooser: random.Random) -> Iterator[Sequence[Action]]:
    """After a click on what the demonstration leaves alone."""
    actions = [step.action for step in episode.acts]
    clicks = [Action.click(element) for element in episode.steps[0].observation.elements]
    others = [click for click in clicks if click not in actions]
    for slip in chooser.sample(others, min(_SLIPS, len(others))):
        yield [slip, *actions]


def _shuffled(count: int, chooser: random.Random) -> list[int]:
    return chooser.sample(range(count), count) if count > 0 else []


def _replayed(world: World, solved: Episode, actions: Sequence[Action]) -> Episode | None:
    """An episode of these actions; None where what one names is not there."""
    start = world.reset(solved.instance.goal, solved.instance.seed)
    screen, steps = start.observation, list[Step]()
    for action in actions:
        at = clicked(action, screen)
        if world.ended or (action.target and (at is None or (at.kind, at.text) != action.target)):
            return None
        steps.append(Step(screen, action))
        screen = world.step(action)
    return replace(solved, steps=tuple(steps), last=screen, end=End.WORLD if world.ended else End.COMPLETED)
