"""The embedded base as it is shipped: built from the text weights, the eyes and the alignment, and it sees."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import closing
from pathlib import Path
from statistics import fmean

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from environments.pages.page import random_page
from environments.pages.studio import Studio
from models.base import ADAPTER, LEARNT, build
from models.eyes.__main__ import text_side
from models.eyes.drawn import HELD_SEED
from models.eyes.shape import CELLS, IMAGE_TOKENS, JOINED
from models.eyes.targets import FACTS, GROUPS, things
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


def test_the_card_has_the_hashes_of_what_is_shipped() -> None:
    told = re.findall(r"([0-9a-f]{64})  (\S+)", (LEARNT / "README.md").read_text())
    files = {str(file.relative_to(LEARNT)): file for file in LEARNT.rglob("*.safetensors")}
    assert {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()} == {
        name: digest for digest, name in told
    }


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_screenshot_is_twenty_five_tokens(network: Network) -> None:
    with closing(Studio()) as studio:
        picture = network.picture(studio.show(random_page(HELD_SEED, ("river",))).observation.screenshot)
    assert (picture["input_ids"] == network.patch).sum() == IMAGE_TOKENS == 25
    assert [features.shape for features in network.see([picture])] == [(IMAGE_TOKENS, 576)]


@pytest.mark.slow
def test_the_picture_tells_the_colours_of_pages_it_has_not_seen(network: Network) -> None:
    """A token says one that is on its part of the screen much more often than by chance."""
    meanings, words = text_side(fetch_text_weights())
    first, count = FACTS.index(GROUPS["colour"][0]), len(GROUPS["colour"])
    side = CELLS // JOINED
    hits, chances = [], []
    with closing(Studio()) as studio:
        for seed in range(HELD_SEED, HELD_SEED + PAGES):
            page = random_page(seed, words, boards=1.0)
            shot = studio.show(page)
            facts, _ = things(shot, page.things)
            facts = facts.view(side, JOINED, side, JOINED, -1).transpose(1, 2).reshape(side**2, -1)
            (said,) = network.see([network.picture(shot.observation.screenshot)])
            told = (facts >= first) & (facts < first + count)
            best = first + meanings.chances(said)[:, first : first + count].argmax(-1, keepdim=True)
            hits += ((facts == best) & told).any(-1)[told.any(-1)].tolist()
            chances += [
                len(set(some[here].tolist())) / count for some, here in zip(facts, told, strict=True) if here.any()
            ]
    assert fmean(hits) > 3 * fmean(chances)
