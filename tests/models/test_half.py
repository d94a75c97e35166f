from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import contexts
from torch import nn

from models.half import HalfLinear, halved
from models.inference import TorchEngine
from models.network import Network, load_base

ACTIONS = [["wait", "complete", 'type "a longer one"'], ["complete"], ["scroll up", "wait"]]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [(1,), (3, 7), (2, 130)])
def test_a_product_is_that_of_weights_rounded_to_float16(bias: bool, rows: tuple[int, ...]) -> None:
    """Against numpy in float64: the weights alone are rounded, what goes in is not."""
    torch.manual_seed(0)
    linear, inputs = nn.Linear(96, 48, bias=bias), torch.randn(*rows, 96)
    rounded = linear.weight.detach().numpy().astype(np.float16).astype(np.float64)
    expected = inputs.numpy().astype(np.float64) @ rounded.T + (linear.bias.detach().numpy() if bias else 0)
    found = HalfLinear(linear)(inputs)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-6)


def test_an_engine_on_halves_says_what_one_on_floats_says(network: Network) -> None:
    whole = TorchEngine(network)
    scores, answers = whole.score(contexts(), ACTIONS), whole.sample(contexts(), 1, 0.0)
    halves = TorchEngine(halved(network))
    for row, expected in zip(halves.score(contexts(), ACTIONS), scores, strict=True):
        assert row == pytest.approx(expected, abs=2e-3)
    assert halves.sample(contexts(), 1, 0.0) == answers
    assert halves.score(contexts(), ACTIONS) != scores  # so they are halves


def test_all_projections_of_the_language_model_and_its_head_are_halved(either: Path) -> None:
    whole, network = load_base(str(either), "float32", 0).model, halved(load_base(str(either), "float32", 0)).model
    kinds = {name: type(module) for name, module in network.named_modules()}
    projections = [name for name in kinds if name.endswith("_proj") and ".layers." in name and "vision" not in name]
    projections = [name for name in projections if "visual" not in name]
    assert len(projections) == 7 * whole.config.get_text_config().num_hidden_layers
    assert {kinds[name] for name in [*projections, "lm_head"]} == {HalfLinear}
    assert sum(kind is HalfLinear for kind in kinds.values()) == len(projections) + 1
    assert torch.equal(network.get_output_embeddings().weight, whole.get_output_embeddings().weight)


def test_what_is_in_bfloat16_stays_as_it_is(either: Path) -> None:
    network = halved(load_base(str(either), "bfloat16", 0))
    assert not any(isinstance(module, HalfLinear) for module in network.model.modules())
