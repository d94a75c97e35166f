"""Projections that keep their weights in float16: how an engine on a CPU holds a network that is in float32.

Every token that is generated reads all weights once. In float16, packed once for FBGEMM's kernels, that takes a half to
a third of the time; what goes in, what comes out and the sums stay in float32 (docs/decisions/0051-half-weights.md).
"""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from models.network import Network

_LAYERS = re.compile(r"(?:text_model|language_model)\.layers\.")


class HalfLinear(nn.Module):
    """What ``linear`` does, its weights rounded to float16. ``weight`` is the unrounded one, where it is kept."""

    def __init__(self, linear: nn.Linear, keep: bool = False) -> None:
        super().__init__()
        self.weight = linear.weight if keep else None
        bias = None if linear.bias is None else linear.bias.detach()
        self._packed = torch.ops.quantized.linear_prepack_fp16(linear.weight.detach(), bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in) to (..., out), float32."""
        found: Tensor = torch.ops.quantized.linear_dynamic_fp16(inputs, self._packed)
        return found


def halved(network: Network) -> Network:
    """The network with the language model's projections and output head in float16, in place.

    One that is not in float32, is not on a CPU, or runs where torch has no FBGEMM (other than x86-64) stays as it is.
    """
    model = network.model
    known = model.device.type == "cpu" and model.dtype == torch.float32
    if not known or torch.backends.quantized.engine not in ("x86", "fbgemm"):
        return network
    found = [name for name, module in model.named_modules() if type(module) is nn.Linear and _LAYERS.search(name)]
    for name in found:
        model.set_submodule(name, HalfLinear(model.get_submodule(name)))
    model.set_output_embeddings(HalfLinear(model.get_output_embeddings(), keep=True))
    return network
