"""What the models read: one prompt, image and text interleaved, the same for agent and reward model.

The agent answers it with an action. The reward model judges an action standing in the place of that answer,
by the token that follows: ``<|+|>`` or ``<|-|>``. So all candidates of a step share one prefix, for both models.

What the steps of a trajectory have in common stands first: the goal, then the screenshots with the action taken on
each, the current one last; its elements, which no later step repeats, come after it. So a step's prompt begins with
the one before it, up to and including that one's screenshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.types import Action, Element, Episode, Observation, Step

_FIELDS = ("textbox", "password", "textarea")
_BOXES = ("checkbox", "radio", "switch")


@dataclass(frozen=True, slots=True)
class Context:
    """All that is known before an action: the instruction, (screenshot, action) so far, and the screen now."""

    instruction: str
    history: tuple[tuple[bytes, Action], ...]
    observation: Observation


def context_at(instruction: str, steps: Sequence[Step], observation: Observation) -> Context:
    """The context in which ``observation`` is seen after ``steps``."""
    return Context(instruction, tuple((step.observation.screenshot, step.action) for step in steps), observation)


def context_of(episode: Episode, place: int, instruction: str = "") -> Context:
    """What is known at a step of an episode, or past its last act, in the words of another ``instruction`` if given."""
    screen = episode.acts[place].observation if place < len(episode.acts) else episode.last
    return context_at(instruction or episode.instruction, episode.acts[:place], screen)


def left_out(past: int, screenshots: int) -> int:
    """How many of ``past`` screenshots are not shown: their actions stand in words.

    At most ``screenshots`` are shown. When they are full, half of them (rounded up) go at once, so that the steps of
    a block all begin alike: with 5, nothing is left out up to 5, 3 are from 6 to 8, 6 from 9 to 11.
    """
    if not screenshots:
        return past
    block = (screenshots + 1) // 2
    over = max(0, past - screenshots)
    return -(-over // block) * block


def message(
    context: Context, screenshots: int, captions: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The chat message of a context and its images (PNG) in order, with at most ``screenshots`` past ones.

    ``captions`` say what the screen's elements look like, one for each or none at all. Of several fields to write in,
    each has its number, for nothing else may tell them apart. What is empty or off is said to be: a model of the
    default's size does not miss what is not there (docs/decisions/0028-what-is-empty-is-said.md).
    """
    cut = left_out(len(context.history), screenshots)
    earlier, shown = context.history[:cut], context.history[cut:]
    words = f"Goal: {context.instruction}\n"
    if earlier:
        words += "Earlier: " + "; ".join(str(action) for _, action in earlier) + "\n"
    content: list[dict[str, Any]] = [_text(words)]
    for _, action in shown:
        content += [{"type": "image"}, _text(f"Did: {action}\n")]
    elements = context.observation.elements
    described = zip(captions or [""] * len(elements), _numbers(elements), map(_lack, elements), elements, strict=True)
    lines = "".join(" ".join(filter(None, (*told, element.line))) + "\n" for *told, element in described)
    content += [{"type": "image"}, _text(f"Elements:\n{lines}")]
    images = [screenshot for screenshot, _ in shown] + [context.observation.screenshot]
    return [{"role": "user", "content": content}], images


def opening(context: Context, screenshots: int) -> tuple[str, bytes]:
    """What the prompts of a block of steps begin with: the words before the first screenshot (PNG), and that one."""
    (said,), images = message(context, screenshots)
    return str(said["content"][0]["text"]), images[0]


def _numbers(elements: Sequence[Element]) -> list[str]:
    """``1st``, ``2nd``, ... of the fields among elements, if they are several, and nothing of the others."""
    several = sum(element.kind in _FIELDS for element in elements) > 1
    count, numbers = 0, []
    for element in elements:
        field = several and element.kind in _FIELDS
        count += field
        numbers.append(_ordinal(count) if field else "")
    return numbers


def _lack(element: Element) -> str:
    """``empty`` of a field without a text, ``off`` of a box that is not ticked, and nothing of the others."""
    if element.kind in _FIELDS and not element.text:
        return "empty"
    return "off" if element.kind in _BOXES and "on" not in element.states else ""


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
