"""Attention of vision towers whose tokens see those of their own window only: all windows side by side.

Without flash-attn, transformers computes one window of Qwen2.5-VL's tower after the other: 9 of a picture of 336 x 336,
28 times. On a GPU it is calling for them that takes the time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

SIDE_BY_SIDE = "windows_as_flash"  # a tower hands all of its windows over at once to what has "flash" in its name
_TOWERS = ("qwen2_5_vl",)


def side_by_side(model: Any) -> None:
    """Have the vision tower of a model, if it is one with windows, compute them all at once."""
    if model.config.model_type in _TOWERS:
        model.set_attn_implementation({"vision_config": SIDE_BY_SIDE})


def attention(
    _module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scaling: float,
    cu_seq_lens_q: Tensor,
    max_length_q: int,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention within windows.

    Args:
        query, key, value: (1, heads, tokens, width), window after window.
        cu_seq_lens_q: where each window begins, and the last one ends.
        max_length_q: tokens of the largest window.

    Returns:
        (1, tokens, heads, width), and no weights.
    """
    starts, ends = cu_seq_lens_q[:-1, None], cu_seq_lens_q[1:, None]
    places = starts + torch.arange(max_length_q, device=starts.device)
    inside = places < ends
    rows = places.clamp(max=query.shape[2] - 1)
    queries, keys, values = (found[0][:, rows].transpose(0, 1) for found in (query, key, value))
    seen = functional.scaled_dot_product_attention(queries, keys, values, inside[:, None, None], scale=scaling)
    return seen.transpose(1, 2)[inside][None], None


AttentionInterface.register(SIDE_BY_SIDE, attention)
