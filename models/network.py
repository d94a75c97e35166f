"""A network with its processor: loading, adapters, and the inputs of a batch of contexts.

Everything loads through ``AutoModelForImageTextToText`` and ``AutoProcessor``; code from a checkpoint is never run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForImageTextToText, AutoProcessor
from transformers.utils.logging import disable_progress_bar

from models.prompts import Context, message

POSITIVE, NEGATIVE = "<|+|>", "<|-|>"
_PROJECTION = re.compile(r"(?:text_model|language_model)\.layers\.(\d+)\.\w+\.(?:[qkvo]|gate|up|down)_proj$")


@dataclass(frozen=True)
class Network:
    """``model`` is the image-text-to-text module (peft-wrapped while training), ``screenshots`` the past ones shown."""

    model: Any
    processor: Any
    screenshots: int

    def encode(self, contexts: Sequence[Context]) -> dict[str, Tensor]:
        """Inputs of the contexts' prompts, left-padded: ``input_ids`` (batch, tokens), ``attention_mask``, images."""
        texts, images = [], []
        for context in contexts:
            messages, pictures = message(context, self.screenshots)
            texts.append(self.processor.apply_chat_template(messages, add_generation_prompt=True))
            images.append(pictures)
        inputs = self.processor(text=texts, images=images, padding=True, padding_side="left", return_tensors="pt")
        return {name: self._place(value) for name, value in inputs.items()}

    def _place(self, value: Tensor) -> Tensor:
        value = value.to(self.model.device)
        return value.to(self.model.dtype) if value.is_floating_point() else value

    def answer_tokens(self, answer: str) -> list[int]:
        """An answer as it stands after the prompt, with the token that ends the turn."""
        return [*self.processor.tokenizer.encode(answer, add_special_tokens=False), self.end]

    @property
    def end(self) -> int:
        """The token that ends an answer."""
        return int(self.processor.tokenizer.eos_token_id)

    @property
    def verdicts(self) -> tuple[int, int]:
        """The tokens of ``<|+|>`` and ``<|-|>``."""
        positive, negative = self.processor.tokenizer.convert_tokens_to_ids([POSITIVE, NEGATIVE])
        return positive, negative

    def hidden(self, **inputs: Any) -> Any:
        """The last hidden states, without the output head: (batch, tokens, width), and the cache."""
        body = self.model.get_base_model().model if isinstance(self.model, PeftModel) else self.model.model
        return body(**inputs)

    def head(self, hidden: Tensor, among: Sequence[int] = ()) -> Tensor:
        """Logits (..., tokens) in float32 of hidden states (..., width): of the tokens ``among``, or of all."""
        weight = self.model.get_output_embeddings().weight
        return functional.linear(hidden, weight[list(among)] if among else weight).float()


def load_base(base: str, dtype: str, screenshots: int) -> Network:
    """The base by directory or hub name, with the two verdict tokens (added where it lacks them)."""
    disable_progress_bar()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForImageTextToText.from_pretrained(base, dtype=getattr(torch, dtype)).to(device)
    processor = AutoProcessor.from_pretrained(base)
    if processor.tokenizer.add_special_tokens({"additional_special_tokens": [POSITIVE, NEGATIVE]}, False):
        _embed_verdicts(model, processor.tokenizer)
    return Network(model.eval(), processor, screenshots)


@torch.no_grad()
def _embed_verdicts(model: Any, tokenizer: Any) -> None:
    """Give the verdict tokens the rows of Yes and No: rows drawn at random would differ from load to load."""
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    for verdict, word in ((POSITIVE, " Yes"), (NEGATIVE, " No")):
        row, like = tokenizer.convert_tokens_to_ids(verdict), tokenizer.encode(word, add_special_tokens=False)[-1]
        for table in (model.get_input_embeddings().weight, model.get_output_embeddings().weight):
            table[row] = table[like]


def with_new_adapter(network: Network, rank: int, alpha: int, skip_layers: int, seed: int) -> Network:
    """LoRA on the language model's projections above ``skip_layers``; everything else is frozen.

    ``seed`` fixes the random half of it (the other half starts at zero).

    Raises:
        ValueError: when no layer is left to adapt.
    """
    found = {int(hit[1]) for name, _ in network.model.named_modules() if (hit := _PROJECTION.search(name))}
    layers = sorted(layer for layer in found if layer >= skip_layers)
    if not layers:
        raise ValueError(f"adapter.skip_layers = {skip_layers}: the base has {len(found)} layers; skip fewer")
    targets = rf".*(?:text_model|language_model)\.layers\.(?:{'|'.join(map(str, layers))})\.\w+\.\w+_proj"
    config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets)
    torch.manual_seed(seed)
    return Network(get_peft_model(network.model, config), network.processor, network.screenshots)


def with_adapter(network: Network, adapter: Path, trainable: bool = False) -> Network:
    """The network with a stored adapter: to train it further, or merged into the weights to run it."""
    model = PeftModel.from_pretrained(network.model, str(adapter), is_trainable=trainable)
    return Network(model if trainable else model.merge_and_unload().eval(), network.processor, network.screenshots)


def save_adapter(network: Network, folder: Path) -> None:
    """Write the adapter (safetensors and its configuration), the same bytes for the same weights."""
    network.model.save_pretrained(str(folder))
    (folder / "README.md").unlink(missing_ok=True)
