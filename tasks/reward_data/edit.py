"""The goal swapped by minimal edit: a solved path under an instruction that differs in one word or name.

What the path named in an instruction, an element it pressed or a text it typed, is put in another's place: so the same
action on the same screen is wrong, the other is right, and the end is not what was asked for. Nothing but reading the
instruction tells these apart (UI-Genie 3.3 swaps whole goals; counterfactual pairs: Crome, Srivastava et al. 2025).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from environments.types import COMPLETE, Action, Kind, Observation
from tasks.acceptance import Bar
from tasks.generators import Generator
from tasks.records import Trajectory
from tasks.reward_data.draft import MADE_UP, Draft
from tasks.reward_data.rule import clicked

_EASE = MADE_UP + 0.5  # of steps: after the most tempting of the others


class Edit(NamedTuple):
    """Another instruction, and the step at which it asks for another action than was taken: ``instead``."""

    step: int
    instruction: str
    instead: Action


def edits(trajectory: Trajectory, seed: int | str, bar: Bar) -> Iterator[Edit]:
    """One edit for each name of the instruction that the path acted on, slips apart."""
    episode, named = trajectory.episode, set[str]()
    for index, step in enumerate(episode.acts):
        name = _name(step.action, step.observation)
        if bar.slip(step) or name in named or len(_found(name, episode.instruction)) != 1:
            continue
        named.add(name)
        chooser = random.Random(f"{seed}/{trajectory.id}/{index}")
        if other := _other(step.action, step.observation, episode.instruction, chooser):
            yield Edit(index, _swapped(episode.instruction, name, _name(other, step.observation)), other)


def edited(trajectory: Trajectory, seed: int | str, bar: Bar) -> Iterator[Draft]:
    """The rows of a solved path under edited instructions."""
    acts = trajectory.episode.acts
    for index, instruction, instead in edits(trajectory, seed, bar):
        yield Draft(trajectory, index, acts[index].action, Generator.EDITED, False, _EASE, instruction)
        yield Draft(trajectory, index, instead, Generator.EDITED, True, _EASE, instruction)
        yield Draft(trajectory, len(acts), COMPLETE, Generator.EDITED, False, MADE_UP, instruction)


def _name(action: Action, observation: Observation) -> str:
    """What an instruction may call it by: the text typed, or that of the element pressed."""
    if action.kind is Kind.TYPE:
        return action.text
    element = clicked(action, observation)
    return element.text if element else ""


def _found(name: str, instruction: str) -> list[re.Match[str]]:
    """Where a name stands in an instruction, not within a longer word."""
    return list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", instruction)) if name else []


def _swapped(instruction: str, name: str, other: str) -> str:
    (place,) = _found(name, instruction)
    return instruction[: place.start()] + other + instruction[place.end() :]


def _other(action: Action, observation: Observation, instruction: str, chooser: random.Random) -> Action | None:
    """The action that an edit asks for instead: on another element of the kind, alone in its name; another text."""
    if action.kind is Kind.TYPE:
        backwards = action.text[::-1]
        return None if backwards == action.text else replace(action, text=backwards)
    element = clicked(action, observation)
    texts = [one.text for one in observation.elements]
    others = [
        one
        for one in observation.elements
        if element and one.kind == element.kind and texts.count(one.text) == 1 and not _found(one.text, instruction)
        if one.text and one.text != element.text
    ]
    return action.on(chooser.choice(others)) if others else None
