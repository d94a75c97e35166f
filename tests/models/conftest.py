from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import build_tiny_base, build_tiny_qwen

from models.network import Network, load_base, with_new_adapter


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_base(tmp_path_factory.mktemp("tiny") / "base")


@pytest.fixture(scope="session")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_qwen(tmp_path_factory.mktemp("tiny") / "qwen")


@pytest.fixture(params=["base", "qwen"])
def either(request: pytest.FixtureRequest) -> Path:
    """Each of the two bases."""
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def network(either: Path) -> Network:
    return load_base(str(either), "float32", 5)


@pytest.fixture
def adapted(network: Network) -> Network:
    """With an adapter that does something: LoRA starts at zero."""
    result = with_new_adapter(network, rank=4, alpha=8, skip_layers=1, seed=1)
    for name, weight in result.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return result
