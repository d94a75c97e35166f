"""Windows computed side by side must give what they give one by one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import torch
from tiny import build_tiny_qwen, contexts
from torch.nn import functional

from models.network import Network, load_base
from models.reading import Album, read
from models.windows import SIDE_BY_SIDE, attention


def features(network: Network) -> torch.Tensor:
    album = Album()
    names = dict.fromkeys(run.name for prompt in read(network, contexts(), album) for run in prompt.trunk)
    with torch.no_grad():
        return torch.cat(list(album.features(network, names).values()))


def test_attention_is_that_within_each_window() -> None:
    """Windows of 5, 1 and 4 of ten tokens, two heads."""
    query, key, value = torch.randn(3, 1, 2, 10, 8, generator=torch.Generator().manual_seed(0))
    bounds = [0, 5, 6, 10]
    found, _ = attention(
        torch.nn.Identity(), query, key, value, scaling=0.3, cu_seq_lens_q=torch.tensor(bounds), max_length_q=5
    )
    windows = [slice(*pair) for pair in pairwise(bounds)]
    expected = [
        functional.scaled_dot_product_attention(query[:, :, at], key[:, :, at], value[:, :, at], scale=0.3)
        for at in windows
    ]
    torch.testing.assert_close(found, torch.cat(expected, dim=2).transpose(1, 2))


def test_a_tower_with_windows_sees_the_same(tmp_path: Path) -> None:
    """The tower of Qwen2.5-VL as it is loaded, and as transformers would load it."""
    network = load_base(str(build_tiny_qwen(tmp_path / "qwen")), "float32", 2)
    config = network.model.model.visual.blocks[0].attn.config
    assert config._attn_implementation == SIDE_BY_SIDE
    ours = features(network)
    network.model.set_attn_implementation({"vision_config": "sdpa"})
    assert config._attn_implementation == "sdpa"
    torch.testing.assert_close(ours, features(network))
