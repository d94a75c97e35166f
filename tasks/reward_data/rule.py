"""Rule-verified rows: the actions of a solved path against what was proposed, and against near misses.

UI-Genie 3.3 and D.1: a candidate is right when it has the kind of the known action and clicks inside the box
of its element, or types the same text. Hard negatives are the wrong ones that the reward model liked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from environments.types import OPPOSITE, Action, Candidate, Element, Kind, Observation, Step
from tasks.acceptance import Bar
from tasks.generators import Generator
from tasks.quoted import quoted
from tasks.records import Origin, Trajectory
from tasks.reward_data.draft import MADE_UP, Draft, unsure

_LIKED = 0.5  # p(+) from which a wrong candidate is a hard negative
_TICKED = ("checkbox", "radio", "switch", "option")  # kinds of which several are set in any order


def agrees(action: Action, right: Action, observation: Observation) -> bool:
    """Whether an action does what ``right`` does on this screen: same kind, element, and text, key or direction.

    Where ``right`` is on no element, a point near it that is on none either is the same.
    """
    if action.kind is not right.kind or _plain(action.text) != _plain(right.text):
        return False
    if action.point is None or right.point is None:
        return True
    element = clicked(right, observation)
    if element is not None:
        return element.contains(action.point)
    return clicked(action, observation) is None and observation.near(action.point, right.point)


def clicked(action: Action, observation: Observation) -> Element | None:
    """The element a click, long press or swipe hits: of those under the point the one it names, else the smallest."""
    if action.point is None:
        return None
    point = action.point
    under = [element for element in observation.elements if element.contains(point)]
    named = [element for element in under if (element.kind, element.text) == action.target]
    return min(named or under, key=lambda element: element.box[2] * element.box[3], default=None)


def executed(trajectory: Trajectory, bar: Bar, max_negatives: int) -> Iterator[Draft]:
    """What a solved path did at each step is right, near misses of it are wrong; a slip, made up for later, neither."""
    for index, step in enumerate(trajectory.episode.acts):
        if bar.slip(step):
            continue
        yield Draft(trajectory, index, step.action, Generator.EXECUTED, True, unsure(step.score))
        for rank, (action, generator) in enumerate(islice(wrong_actions(trajectory, index).items(), max_negatives)):
            yield Draft(trajectory, index, action, generator, False, MADE_UP + rank)


def wrong_actions(trajectory: Trajectory, index: int) -> dict[Action, Generator]:
    """Actions that are wrong at a step of a solved path, and what makes each: the most tempting first."""
    misses: dict[Action, Generator] = {}
    for generator, action in _near_misses(trajectory, index):
        if not _comes_later(trajectory, index, action):
            misses.setdefault(action, generator)
    return misses


def proposed(trajectory: Trajectory, bar: Bar) -> Iterator[Draft]:
    """The other candidates at the steps of a solved path, against what it did there, unless that was a slip."""
    for index, step in enumerate(trajectory.episode.steps):
        for candidate in () if bar.slip(step) else step.candidates:
            item = _compare(trajectory, index, step, candidate)
            told = item.label or not _comes_later(trajectory, index, candidate.action)
            if candidate.action != step.action and told:
                yield item


def siblings(observation: Observation, right: Action) -> Iterator[Action]:
    """The right action on other elements (clicks, where it has no point): its kind first, then the nearest."""
    element = clicked(right, observation) or _focused(observation)

    def distance(other: Element) -> tuple[bool, int]:
        if element is None:
            return False, 0
        (x, y), (across, down) = element.point, other.point
        return other.kind != element.kind, (x - across) ** 2 + (y - down) ** 2

    for other in sorted(observation.elements, key=distance):
        elsewhere = Action.click(other) if right.point is None else right.on(other)
        if not agrees(elsewhere, right, observation):
            yield elsewhere


def _compare(trajectory: Trajectory, index: int, step: Step, candidate: Candidate) -> Draft:
    score = unsure(candidate.score)
    if agrees(candidate.action, step.action, step.observation):
        return Draft(trajectory, index, candidate.action, Generator.RULE_POSITIVE, True, score)
    liked = candidate.score is not None and candidate.score >= _LIKED
    generator = Generator.HARD_NEGATIVE if liked else Generator.RULE
    return Draft(trajectory, index, candidate.action, generator, False, 1 - score)


def _near_misses(trajectory: Trajectory, index: int) -> Iterator[tuple[Generator, Action]]:
    """Wrong actions that nobody proposed, the most tempting first."""
    steps = trajectory.episode.steps
    observation, right = steps[index].observation, steps[index].action
    instruction = trajectory.episode.instruction
    if right.kind in (Kind.SCROLL, Kind.SWIPE):
        yield Generator.WRONG_TEXT, replace(right, text=OPPOSITE[right.text])
    elif right.kind is Kind.TYPE:
        texts = (text for text in _typings(instruction, right.text) if not agrees(text, right, observation))
        yield from ((Generator.WRONG_TEXT, text) for text in islice(texts, 1))
    if right.kind in (Kind.LONG_PRESS, Kind.SWIPE):
        yield Generator.SWAPPED_KIND, Action(Kind.CLICK, right.point, right.target)
    last = trajectory.episode.acts[-1].action
    shortest = trajectory.origin is Origin.DEMONSTRATION  # on other paths what lies before it may be needless
    if shortest and last.kind is Kind.CLICK and not agrees(last, right, observation):
        yield Generator.TOO_SOON, last
    if index and not agrees(steps[index - 1].action, right, observation):
        yield Generator.REPEAT, steps[index - 1].action
    yield from ((Generator.SIBLING, action) for action in siblings(observation, right))
    if right.target is not None:
        yield from ((Generator.SWAPPED_KIND, text) for text in _typings(instruction, right.target[1]))


def _comes_later(trajectory: Trajectory, index: int, action: Action) -> bool:
    """Whether a path clicks after a step what ``action`` is on, its last action apart unless that ticks something.

    Two boxes can be ticked in either order, so such a click is not wrong; what ends the work (Submit) is. What has no
    text is told by its place.
    """
    if action.target is None:
        return False
    observation = trajectory.episode.steps[index].observation
    element, has_text = clicked(action, observation), bool(action.target[1])
    later = [step.action for step in trajectory.episode.acts[index + 1 :]]
    if later and (later[-1].target is None or later[-1].target[0] not in _TICKED):
        later.pop()
    return any(one.target == action.target and (has_text or clicked(one, observation) == element) for one in later)


def _typings(instruction: str, like: str) -> list[Action]:
    """Typing the quoted parts of the instruction, then its words: the nearest in length to ``like`` first."""
    first = quoted(instruction)
    texts = list(dict.fromkeys([*first, *re.findall(r"\w+", instruction)]))
    texts.sort(key=lambda text: (text not in first, abs(len(text) - len(like))))
    return [Action(Kind.TYPE, text=text) for text in texts]


def _focused(observation: Observation) -> Element | None:
    return next((element for element in observation.elements if "focus" in element.states), None)


def _plain(text: str) -> str:
    """Text by which typings are compared: a line break at its end presses Enter and counts, other space does not.

    Case counts: it may be all that is wrong.
    """
    return " ".join(text.split()) + "\n" * text.endswith("\n")
