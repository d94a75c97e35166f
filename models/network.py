"""A network with its processor: loading, adapters, and the inputs of a batch of contexts.

Everything loads through ``AutoModelForImageTextToText`` and ``AutoProcessor``; code from a checkpoint is never run.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from PIL import Image
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForImageTextToText, AutoProcessor
from transformers.utils.logging import disable_progress_bar

from models.prompts import Context, message

POSITIVE, NEGATIVE = "<|+|>", "<|-|>"
_PROJECTION = re.compile(r"(?:text_model|language_model)\.layers\.(\d+)\.\w+\.(?:[qkvo]|gate|up|down)_proj$")


@dataclass(frozen=True)
class Reader:
    """How contexts and answers become tokens; ``screenshots`` past ones are shown."""

    processor: Any
    screenshots: int

    def prompt(self, context: Context) -> tuple[str, list[bytes]]:
        """The text of a prompt, with a placeholder for each image, and the images (PNG)."""
        messages, images = message(context, self.screenshots)
        return str(self.processor.apply_chat_template(messages, add_generation_prompt=True)), images

    def tensors(self, contexts: Sequence[Context]) -> dict[str, Tensor]:
        """Inputs of the contexts' prompts, left-padded: ``input_ids`` (batch, tokens), ``attention_mask``, images."""
        texts, images = [], []
        for context in contexts:
            text, pictures = self.prompt(context)
            texts.append(text)
            images.append([Image.open(io.BytesIO(png)).convert("RGB") for png in pictures])
        inputs = self.processor(text=texts, images=images, padding=True, padding_side="left", return_tensors="pt")
        return dict(inputs)

    def answer_tokens(self, answer: str) -> list[int]:
        """An answer as it stands after the prompt, with the token that ends the turn."""
        return [*self.processor.tokenizer.encode(answer, add_special_tokens=False), self.end]

    def text(self, tokens: Sequence[int]) -> str:
        """The answer that tokens spell."""
        return str(self.processor.tokenizer.decode(tokens, skip_special_tokens=True))

    @property
    def end(self) -> int:
        """The token that ends an answer."""
        return int(self.processor.tokenizer.eos_token_id)

    @property
    def verdicts(self) -> tuple[int, int]:
        """The tokens of ``<|+|>`` and ``<|-|>``."""
        positive, negative = self.processor.tokenizer.convert_tokens_to_ids([POSITIVE, NEGATIVE])
        return positive, negative


@dataclass(frozen=True)
class Network(Reader):
    """``model`` is the image-text-to-text module, peft-wrapped while training."""

    model: Any

    def encode(self, contexts: Sequence[Context]) -> dict[str, Tensor]:
        """:meth:`Reader.tensors` where the model is, and of its type."""
        return {name: self._place(value) for name, value in self.tensors(contexts).items()}

    def _place(self, value: Tensor) -> Tensor:
        value = value.to(self.model.device)
        return value.to(self.model.dtype) if value.is_floating_point() else value

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
    processor, added = _processor(base)
    if added:
        _embed_verdicts(model, processor.tokenizer)
    return Network(processor, screenshots, model.eval())


def load_reader(base: str, screenshots: int) -> Reader:
    """What reads prompts as the base's network does, without its weights."""
    return Reader(_processor(base)[0], screenshots)


def has_verdicts(base: str) -> bool:
    """Whether the base has the verdict tokens as it is stored."""
    return not _processor(base)[1]


def save(network: Network, folder: Path) -> None:
    """Write the whole network and its processor, as other engines load them."""
    network.model.save_pretrained(str(folder))
    network.processor.save_pretrained(str(folder))


def _processor(base: str) -> tuple[Any, int]:
    """The processor of the base, and how many of the verdict tokens it lacked."""
    processor = AutoProcessor.from_pretrained(base)
    tokens = {"additional_special_tokens": [POSITIVE, NEGATIVE]}
    return processor, processor.tokenizer.add_special_tokens(tokens, False)


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
    return replace(network, model=get_peft_model(network.model, config))


def with_adapter(network: Network, adapter: Path, trainable: bool = False) -> Network:
    """The network with a stored adapter: to train it further, or merged into the weights to run it."""
    model = PeftModel.from_pretrained(network.model, str(adapter), is_trainable=trainable)
    return replace(network, model=model if trainable else model.merge_and_unload().eval())


def save_adapter(network: Network, folder: Path) -> None:
    """Write the adapter (safetensors and its configuration), the same bytes for the same weights."""
    network.model.save_pretrained(str(folder))
    (folder / "README.md").unlink(missing_ok=True)
