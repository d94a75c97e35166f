"""What an answer may go on with: what its prompt has after the same words.

Answers name elements and repeat words of the goal, so much of one stands in its prompt. Tokens that are guessed from
there are computed together with the one that is known, and those that are then drawn too need no pass of their own
(inference with reference: Yang et al. 2023, arXiv:2304.04487). What is drawn is what would be drawn without.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

GUESSED = 8
"""Tokens that are guessed at a time."""
MOST = 16
"""Tokens that are guessed in a pass for all answers together. More would cost a CPU what they save in passes."""
_ALIKE = 2  # tokens by which a place in the prompt is found, or one where there are none


def guess(prompt: np.ndarray, said: Sequence[int]) -> list[int]:
    """At most :data:`GUESSED` tokens that followed in the prompt's ids where it last said the last of ``said``."""
    for alike in range(min(_ALIKE, len(said)), 0, -1):
        starts = np.arange(len(prompt) - alike)
        same = np.all([prompt[starts + place] == said[place - alike] for place in range(alike)], axis=0)
        if same.any():
            after = int(starts[same][-1]) + alike
            return [int(token) for token in prompt[after : after + GUESSED]]
    return []
