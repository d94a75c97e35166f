"""Small random bases of the real classes, with a byte-level tokenizer: Idefics3, some ten thousand weights, and
Qwen2.5-VL, about a million."""

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
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
)

from environments.types import Action, Element, Observation
from models.base import CHAT
from models.network import Network, PicturesOnly
from models.prompts import Context

IDEFICS3 = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"]
QWEN = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
HEADS = 4
SERVABLE = 32 * HEADS  # a width: vLLM's attention on CPU has no heads narrower than 32


def byte_tokenizer(special: list[str]) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>", *special]})
    return fast


def build_tiny_base(folder: Path, width: int = 32) -> Path:
    fast = byte_tokenizer(IDEFICS3)
    text = {
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": HEADS,
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


def build_tiny_qwen(folder: Path) -> Path:
    fast = byte_tokenizer(QWEN)
    ids = {name: fast.convert_tokens_to_ids(f"<|{name}|>") for name in ("image_pad", "vision_start", "vision_end")}
    text = {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": len(fast),
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 6, 6]},
        "initializer_range": 0.2,
        "pad_token_id": fast.pad_token_id,
        "bos_token_id": None,
        "eos_token_id": fast.eos_token_id,
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 4,
        "out_hidden_size": 128,
        "window_size": 56,
        "fullatt_block_indexes": [1],
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["image_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    images = Qwen2VLImageProcessorPil(size={"shortest_edge": 56 * 56, "longest_edge": 112 * 112})
    chat = CHAT.replace("<image>", "<|vision_start|><|image_pad|><|vision_end|>")
    PicturesOnly(images, fast, chat_template=chat).save_pretrained(folder)
    return folder


def png(shade: int) -> bytes:
    """40 x 52 pixels: one colour, with a square of another."""
    stream = io.BytesIO()
    image = Image.new("RGB", (40, 52), (shade, 2 * shade % 256, 255 - shade))
    image.paste((255 - shade, shade, shade), (shade % 20, shade % 30, shade % 20 + 16, shade % 30 + 16))
    image.save(stream, "PNG")
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


def pictures_seen(network: Network) -> list[int]:
    """A list that gets the number of pictures whenever the vision tower runs."""
    seen: list[int] = []
    name, of = ("visual", "grid_thw") if network.axes == 3 else ("vision_model", "pixel_values")
    (tower,) = [module for path, module in network.model.named_modules() if path.split(".")[-1] == name]
    tower.register_forward_pre_hook(lambda _, __, inputs: seen.append(len(inputs[of])), with_kwargs=True)
    return seen
