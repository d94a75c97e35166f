"""What the models read: one prompt, image and text interleaved, the same for agent and reward model.

The agent answers it with an action. The reward model judges an action standing in the place of that answer,
by the token that follows: ``<|+|>`` or ``<|-|>``. So all candidates of a step share one prefix, for both models.
The order is UI-Genie's: goal, past screenshots with their actions, elements, current screenshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.types import Action, Observation, Step


@dataclass(frozen=True, slots=True)
class Context:
    """All that is known before an action: the instruction, (screenshot, action) so far, and the screen now."""

    instruction: str
    history: tuple[tuple[bytes, Action], ...]
    observation: Observation


def context_at(instruction: str, steps: Sequence[Step], observation: Observation) -> Context:
    """The context in which ``observation`` is seen after ``steps``."""
    return Context(instruction, tuple((step.observation.screenshot, step.action) for step in steps), observation)


def message(context: Context, screenshots: int) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The chat message of a context and its images (PNG) in order, with at most ``screenshots`` past ones."""
    cut = max(0, len(context.history) - screenshots)
    earlier, recent = context.history[:cut], context.history[cut:]
    opening = f"Goal: {context.instruction}\n"
    if earlier:
        opening += "Earlier: " + "; ".join(str(action) for _, action in earlier) + "\n"
    content: list[dict[str, Any]] = [_text(opening)]
    for _, action in recent:
        content += [{"type": "image"}, _text(f"Did: {action}\n")]
    lines = "".join(f"{element.line}\n" for element in context.observation.elements)
    content += [_text(f"Elements:\n{lines}"), {"type": "image"}]
    images = [screenshot for screenshot, _ in recent] + [context.observation.screenshot]
    return [{"role": "user", "content": content}], images


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
