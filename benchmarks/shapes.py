"""Bases for benchmarks: the embedded one, and random weights in the shape of Qwen2.5-VL."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessorPil

from models.base import CHAT, LEARNT, build
from models.network import Network, PicturesOnly, load_base
from models.weights import fetch_text_weights
from tasks.base import BASE, EMBEDDED
from tasks.files import WORK, write_whole

SPECIAL = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>"]
SCREENSHOTS = 5
QWEN: dict[str, dict[str, Any]] = {
    "qwen-3b": {
        "text": {
            "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
            "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        },
        "vision": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048,
            "fullatt_block_indexes": [7, 15, 23, 31],
        },
    },
    "qwen-tiny": {
        "text": {
            "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 12, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 50000, "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]},
        },
        "vision": {
            "depth": 2, "hidden_size": 64, "intermediate_size": 128, "num_heads": 4, "out_hidden_size": 128,
            "fullatt_block_indexes": [1],
        },
    },
}  # fmt: skip


def load(base: str, dtype: str) -> Network:
    """``embedded``, a name of :data:`QWEN`, or a folder or hub name; with room for the verdicts."""
    if base in QWEN:
        return _qwen(QWEN[base], getattr(torch, dtype))
    return load_base(_embedded() if base == "embedded" else base, dtype, SCREENSHOTS)


def _embedded() -> str:
    """This workspace's own, or one built for the benchmark."""
    if (BASE / EMBEDDED).exists():
        return str(BASE / EMBEDDED)
    folder = WORK / "base"
    if not folder.exists():
        write_whole(folder, lambda aside: build(fetch_text_weights(), LEARNT, aside))
    return str(folder)


def _qwen(shape: dict[str, Any], dtype: torch.dtype) -> Network:
    """Random weights; words are read by the embedded base's tokenizer, whose ids are among the first 50,000."""
    tokenizer = load_base(_embedded(), "float32", 0).processor.tokenizer
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL}, False)
    config = Qwen2_5_VLConfig(
        text_config={**shape["text"], "pad_token_id": tokenizer.pad_token_id},
        vision_config=shape["vision"],
        image_token_id=tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
        tie_word_embeddings=shape["text"]["tie_word_embeddings"],
    )
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen2_5_VLForConditionalGeneration(config).eval()
    torch.set_default_dtype(torch.float32)
    chat = CHAT.replace("<image>", "<|vision_start|><|image_pad|><|vision_end|>")
    return Network(
        PicturesOnly(Qwen2VLImageProcessorPil(), tokenizer, chat_template=chat), SCREENSHOTS, None, None, model
    )
