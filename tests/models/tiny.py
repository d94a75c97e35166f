"""A base of some ten thousand weights, of the real classes: byte-level tokenizer, Idefics3 network and processor."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    PreTrainedTokenizerFast,
)

from environments.types import Action, Element, Observation
from models.base import CHAT
from models.prompts import Context

SPECIAL = [
    "<|im_start|>",
    "<|im_end|>",
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
    "<end_of_utterance>",
]


def build_tiny_base(folder: Path, width: int = 32) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": SPECIAL})
    text = {
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": len(fast),
        "initializer_range": 0.2,  # or an adapter could not make any answer likely
        "pad_token_id": fast.pad_token_id,
    }
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
    }
    image = fast.convert_tokens_to_ids("<image>")
    config = Idefics3Config(text_config=text, vision_config=vision, scale_factor=2, image_token_id=image)
    torch.manual_seed(0)
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    edge = {"longest_edge": 32}
    images = Idefics3ImageProcessorPil(do_image_splitting=False, size=edge, max_image_size=edge)
    Idefics3Processor(images, fast, image_seq_len=4, chat_template=CHAT).save_pretrained(folder)
    return folder


def png(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 52), (shade, 2 * shade % 256, 255 - shade)).save(stream, "PNG")
    return stream.getvalue()


def elements(count: int) -> tuple[Element, ...]:
    return tuple(Element("button", f"b{place}", (5, 12 * place, 30, 10)) for place in range(count))


def contexts() -> list[Context]:
    """Three contexts of different lengths and numbers of screenshots."""
    return [
        Context(
            f"Click b{past}",
            tuple((png(past * 10 + place), Action.click(elements(4)[place])) for place in range(past)),
            Observation(png(200 + past), elements(2 + past)),
        )
        for past in range(3)
    ]


def journey(steps: int) -> list[Context]:
    """The contexts of the steps of one trajectory: other screens, elements and actions at each."""
    acts = [(png(7 * place), Action.click(elements(place + 1)[place])) for place in range(steps)]
    return [
        Context("Go on", tuple(acts[:place]), Observation(acts[place][0], elements(1 + place % 4)))
        for place in range(steps)
    ]
