from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import build_tiny_base, build_tiny_qwen

from models.network import Network, load_base
from models.tuning import Method, Tuning, tunable


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


@pytest.fixture(params=["lora", "full"])
def method(request: pytest.FixtureRequest) -> Method:
    """Each of the two ways to train."""
    found: Method = request.param
    return found


@pytest.fixture
def tuned(network: Network, method: Method) -> Network:
    """Trainable, with a LoRA that does something: it starts at zero."""
    result = tunable(network, Tuning(method, rank=4, alpha=8, skip_layers=1), seed=1)
    for name, weight in result.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return result
