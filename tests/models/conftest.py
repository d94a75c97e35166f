from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import build_tiny_base

from models.network import Network, load_base, with_new_adapter


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_base(tmp_path_factory.mktemp("tiny") / "base")


@pytest.fixture
def network(base: Path) -> Network:
    return load_base(str(base), "float32", 5)


@pytest.fixture
def adapted(network: Network) -> Network:
    """With an adapter that does something: LoRA starts at zero."""
    result = with_new_adapter(network, rank=4, alpha=8, skip_layers=1, seed=1)
    for name, weight in result.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return result
