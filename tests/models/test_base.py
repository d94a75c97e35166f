"""The embedded base as it is shipped: built from the text weights, the eyes and the alignment, and it sees."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from environments.pages.page import random_page
from environments.pages.studio import Studio
from models.base import ADAPTER, EYES, LEARNT, build
from models.eyes.__main__ import text_side
from models.eyes.align import HELD_SEED
from models.eyes.shape import IMAGE_TOKENS, PATCHES, scaled
from models.eyes.targets import FACTS, GROUPS, pixels, things
from models.eyes.tower import Tower
from models.network import Network, load_base
from models.weights import fetch_text_weights

PAGES = 12


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "base"
    build(fetch_text_weights(), LEARNT, folder)
    return folder


@pytest.fixture(scope="module")
def network(base: Path) -> Network:
    return load_base(str(base), "float32", 0)


def test_what_is_shipped_is_small() -> None:
    assert sum(file.stat().st_size for file in LEARNT.rglob("*") if file.is_file()) <= 40e6


def test_the_alignment_is_merged_into_the_text_weights(network: Network) -> None:
    gguf = fetch_text_weights()
    text = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    learnt = load_file(LEARNT / ADAPTER / "adapter_model.safetensors")
    scale = (config := json.loads((LEARNT / ADAPTER / "adapter_config.json").read_text()))["lora_alpha"] / config["r"]
    name = "base_model.model.model.text_model.layers.12.mlp.up_proj"
    a, b = (learnt[f"{name}.lora_{half}.weight"].float() for half in "AB")
    merged = network.model.model.text_model.layers[12].mlp.up_proj.weight
    torch.testing.assert_close(merged, text.model.layers[12].mlp.up_proj.weight + scale * b @ a, atol=2e-3, rtol=1e-2)
    assert (scale * b @ a).abs().max() > 1e-3


def test_a_screenshot_is_a_hundred_tokens(network: Network) -> None:
    with closing(Studio()) as studio:
        picture = network.picture(studio.show(random_page(HELD_SEED, ("river",))).observation.screenshot)
    assert (picture["input_ids"] == network.patch).sum() == IMAGE_TOKENS == 100
    assert [features.shape for features in network.see([picture])] == [(IMAGE_TOKENS, 576)]


def test_the_tower_tells_the_colours_of_pages_it_has_not_seen() -> None:
    """By its own connector's words: of some twenty colours, chance is one in twenty."""
    meanings, words = text_side(fetch_text_weights())
    tower = Tower(meanings.facts.shape[1])
    tower.load_state_dict({name: weight.float() for name, weight in load_file(LEARNT / EYES).items()})
    first = FACTS.index(GROUPS["colour"][0])
    hits = []
    with closing(Studio()) as studio, torch.inference_mode():
        for seed in range(HELD_SEED, HELD_SEED + PAGES):
            page = random_page(seed, words, boards=1.0)
            shot = studio.show(page)
            facts, _ = things(shot, page.things)
            said = tower(scaled(pixels(shot.observation.screenshot))[None], torch.arange(PATCHES**2)[None])[0]
            told = (facts >= first) & (facts < first + len(GROUPS["colour"]))
            best = first + meanings.chances(said)[:, first : first + len(GROUPS["colour"])].argmax(-1, keepdim=True)
            hits.append(((facts == best) & told).any(-1)[told.any(-1)])
    assert torch.cat(hits).float().mean() > 0.6
