"""What of a network is trained and stored: LoRA on the upper layers of its language model, or those layers whole.

What is trained is kept, and stored, in float32 whatever the base is in: an update is often smaller than what bfloat16
tells apart (docs/decisions/0014-whole-layers-or-lora.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.network import Network

WHOLE, LORA = "tuned.safetensors", "adapter_config.json"
Method = Literal["lora", "full"]

_LANGUAGE = r"(?:text_model|language_model)"
_LAYER = re.compile(rf"{_LANGUAGE}\.layers\.(\d+)\.")
_ABOVE = re.compile(rf"{_LANGUAGE}\.norm\.|lm_head\.")
_CONNECTOR = re.compile(r"\.(?:connector|multi_modal_projector|visual\.merger)\.")


@dataclass(frozen=True, slots=True)
class Tuning:
    """What is trained above ``skip_layers`` lower layers of the language model.

    ``lora``: a low-rank update of their projections, scaled by ``alpha / rank`` (Hu et al. 2021). ``full``: all that is
    above, and the connector from the vision tower; with no layer skipped, the embeddings too.
    """

    method: Method
    rank: int
    alpha: int
    skip_layers: int


def tunable(network: Network, tuning: Tuning, seed: int) -> Network:
    """The network with what is trained marked and everything else frozen.

    ``seed`` fixes the random half of LoRA (the other half starts at zero).

    Raises:
        ValueError: when no layer is left to train.
    """
    names = [name for name, _ in network.model.named_parameters()]
    found = _layers(names)
    layers = sorted(layer for layer in found if layer >= tuning.skip_layers)
    if not layers:
        raise ValueError(f"tune.skip_layers = {tuning.skip_layers}: the base has {len(found)} layers; skip fewer")
    if tuning.method == "full":
        _train(network.model, {name for name in names if _is_above(name, tuning.skip_layers)})
        return network
    targets = rf".*{_LANGUAGE}\.layers\.(?:{'|'.join(map(str, layers))})\.\w+\.(?:[qkvo]|gate|up|down)_proj"
    torch.manual_seed(seed)
    config = LoraConfig(r=tuning.rank, lora_alpha=tuning.alpha, target_modules=targets)
    return replace(network, model=get_peft_model(network.model, config))


def trained(network: Network) -> dict[str, Tensor]:
    """The weights that are trained, by name."""
    return {name: weight for name, weight in network.model.named_parameters() if weight.requires_grad}


def save_tuned(network: Network, folder: Path) -> None:
    """Write what was trained (safetensors), the same bytes for the same weights."""
    if isinstance(network.model, PeftModel):
        network.model.save_pretrained(str(folder))
        (folder / "README.md").unlink(missing_ok=True)
    else:
        save_file({name: weight.detach() for name, weight in trained(network).items()}, folder / WHOLE)


def with_tuned(network: Network, folder: Path, trainable: bool = False) -> Network:
    """The base's network with what :func:`save_tuned` wrote: to train it further, or as plain weights to run it."""
    if method_of(folder) == "full":
        _put(network.model, load_file(folder / WHOLE), trainable)
        return network
    model = PeftModel.from_pretrained(network.model, str(folder), is_trainable=trainable)
    return replace(network, model=model if trainable else model.merge_and_unload().eval())


def method_of(folder: Path) -> Method:
    """How a stored checkpoint was trained."""
    return "full" if (folder / WHOLE).exists() else "lora"


def tuned_as(folder: Path) -> dict[str, str | int]:
    """The fields of :class:`Tuning` that a stored checkpoint tells: of whole layers there is no rank."""
    method = method_of(folder)
    with safe_open(folder / (WHOLE if method == "full" else "adapter_model.safetensors"), framework="pt") as file:
        found: dict[str, str | int] = {"method": method, "skip_layers": min(_layers(file.keys()))}
    if method == "lora":
        config = json.loads((folder / LORA).read_text())
        found |= {"rank": config["r"], "alpha": config["lora_alpha"]}
    return found


def _layers(names: Iterable[str]) -> set[int]:
    """The layers of the language model that weights are of."""
    return {int(layer[1]) for name in names if (layer := _LAYER.search(name))}


def _is_above(name: str, skip_layers: int) -> bool:
    if layer := _LAYER.search(name):
        return int(layer[1]) >= skip_layers
    if name.endswith("embed_tokens.weight"):
        return not skip_layers
    return bool(_ABOVE.search(name) or _CONNECTOR.search(name))


def _train(model: Any, names: set[str]) -> None:
    for name, weight in model.named_parameters():
        weight.requires_grad_(name in names)
        if name in names:
            weight.data = weight.data.float()


def _put(model: Any, stored: Mapping[str, Tensor], trainable: bool) -> None:
    if trainable:
        _train(model, set(stored))
    weights = dict(model.named_parameters())
    for name, weight in stored.items():
        weights[name].data.copy_(weight)
