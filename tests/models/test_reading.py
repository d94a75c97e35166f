"""Prompts as our own reading lays them out, against the processor's and the model's own."""

from __future__ import annotations

import re

import pytest
import torch
from tiny import byte_tokenizer, contexts, journey, pictures_seen, png
from tokenizers.processors import TemplateProcessing
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessorPil,
    Gemma3Processor,
    InternVLConfig,
    InternVLForConditionalGeneration,
)

from models.base import CHAT
from models.engine import EngineError
from models.network import Network
from models.prompts import Context
from models.reading import Album, Prompt, read

TEXT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXT |= {"num_key_value_heads": 1, "pad_token_id": 0}
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


def everything() -> list[Context]:
    return [*contexts(), *journey(9)]


def test_tokens_are_those_of_the_processor(network: Network) -> None:
    for context, prompt in zip(everything(), read(network, everything(), Album()), strict=True):
        assert [token for run in prompt.runs for token in run.ids] == network.tensors(context)["input_ids"][0].tolist()


def test_a_token_that_begins_texts_is_said_once(network: Network) -> None:
    """Of a tokenizer that puts one before every text, as Llama's does."""
    tokenizer, begins = network.processor.tokenizer, "<|im_start|>"
    number = tokenizer.convert_tokens_to_ids(begins)
    with_it = TemplateProcessing(single=f"{begins} $A", special_tokens=[(begins, number)])
    tokenizer.backend_tokenizer.post_processor = with_it
    for context, prompt in zip(everything(), read(network, everything(), Album()), strict=True):
        found = [token for run in prompt.runs for token in run.ids]
        assert found == network.tensors(context)["input_ids"][0].tolist()
        assert found.count(number) == 1 + network.prompt(context)[0].count(begins)


def test_positions_are_those_of_the_model(network: Network) -> None:
    """Qwen2.5-VL's own ``get_rope_index`` for text and images; one after the other for Idefics3."""
    for context, prompt in zip(everything(), read(network, everything(), Album()), strict=True):
        inputs = network.tensors(context)
        found = torch.cat([torch.tensor(run.positions) for run in prompt.runs]).T
        expected = torch.arange(sum(map(len, prompt.runs)))[None]
        if network.axes == 3:
            body = network.model.model
            grids = inputs["image_grid_thw"]
            expected = body.get_rope_index(inputs["input_ids"], inputs["mm_token_type_ids"], grids)[0][:, 0]
            assert (found[1] != found[2]).any()
        assert torch.equal(found, expected)


def test_features_are_those_of_the_model(network: Network) -> None:
    """Pictures seen together and those of a prompt, by the model's own inputs."""
    context = journey(3)[2]
    images = [screenshot for screenshot, _ in context.history] + [context.observation.screenshot]
    inputs = {name: value for name, value in network.tensors(context).items() if name.startswith(("pixel", "image"))}
    with torch.no_grad():
        expected = torch.cat(list(network.model.model.get_image_features(**inputs).pooler_output))
        found, (alone,) = seen(network, images), seen(network, [png(7)])
    torch.testing.assert_close(torch.cat(found), expected)
    torch.testing.assert_close(alone, found[1])


def test_the_album_keeps_what_was_seen(network: Network) -> None:
    album, calls = Album(), pictures_seen(network)
    with torch.no_grad():
        first = dict(album.features(network, shown(read(network, journey(4), album))))
        later = album.features(network, shown(read(network, journey(6), album)))
    assert calls == [4, 2]
    assert len(later) == 6
    assert all(later[name] is features for name, features in first.items())


def test_a_picture_is_seen_when_it_is_asked_for(network: Network) -> None:
    album, calls = Album(), pictures_seen(network)
    names = shown(read(network, journey(4), album))
    with torch.no_grad():
        assert list(album.features(network, names[2:3])) == names[2:3]
        assert album.nbytes > album.features(network, ())[names[2]].nbytes  # the other three are waiting
        album.features(network, names)
    assert calls == [1, 3]


@pytest.fixture
def gemma() -> Network:
    """Gemma 3, whose processor's ``image_token_id`` is the token before a picture and not a patch's."""
    tokenizer = byte_tokenizer(["<boi>", "<eoi>", "<soft>"])
    for name, token in (("boi", "<boi>"), ("eoi", "<eoi>"), ("image", "<soft>")):
        setattr(tokenizer, f"{name}_token", token)
        setattr(tokenizer, f"{name}_token_id", tokenizer.convert_tokens_to_ids(token))
    text = {**TEXT, "head_dim": 16, "vocab_size": len(tokenizer), "layer_types": ["full_attention"]}
    vision = {**VISION, "image_size": 32, "patch_size": 8}
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    images = Gemma3ImageProcessorPil(size={"height": 32, "width": 32})
    chat = CHAT.replace("<image>", "<boi>")
    processor = Gemma3Processor(images, tokenizer, chat_template=chat, image_seq_length=4)
    return Network(processor, 5, None, None, Gemma3ForConditionalGeneration(config).eval())


def test_a_base_whose_features_would_not_all_be_placed_is_refused(gemma: Network) -> None:
    album = Album()
    names = shown(read(gemma, contexts(), album))
    with pytest.raises(
        EngineError, match="Gemma3Model: a screenshot has 4 features, and in its tokens <boi> stands 1 "
    ):
        album.features(gemma, names)


def test_a_placeholder_that_is_no_patch_is_refused(network: Network) -> None:
    """As Aya Vision's chat has it."""
    network.processor.chat_template = network.processor.chat_template.replace(network.placeholder, "<picture>")
    with pytest.raises(
        EngineError, match=f"a prompt has 1 screenshots, and {re.escape(network.placeholder)} .* 0 times"
    ):
        read(network, contexts()[:1], Album())


@pytest.fixture
def tiled() -> Network:
    """InternVL, whose tower gives a row for each tile. Its processor would want torchvision."""
    text = {**TEXT, "model_type": "qwen2", "vocab_size": 50}
    config = InternVLConfig(text_config=text, vision_config={**VISION, "image_size": (32, 32), "patch_size": (8, 8)})
    return Network(None, 0, None, None, InternVLForConditionalGeneration(config).eval())


def test_tiles_are_those_of_their_pictures(tiled: Network) -> None:
    pictures = [{"pixel_values": torch.randn(tiles, 3, 32, 32)} for tiles in (3, 1, 3)]
    with torch.no_grad():
        expected = [tiled.model.model.get_image_features(**one).pooler_output.flatten(0, 1) for one in pictures]
        found = tiled.see(pictures)
    assert [features.shape for features in found] == [(12, 32), (4, 32), (12, 32)]
    for there, here in zip(expected, found, strict=True):
        torch.testing.assert_close(here, there)


def test_rows_that_are_no_pictures_are_refused(tiled: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tiled.model.model.get_image_features

    def one_less(**inputs: torch.Tensor) -> object:
        said = known(**inputs)
        said.pooler_output = said.pooler_output[1:]
        return said

    monkeypatch.setattr(tiled.model.model, "get_image_features", one_less)
    with pytest.raises(EngineError, match="InternVLModel: get_image_features gives 5 rows for 2 screenshots"):
        tiled.see([{"pixel_values": torch.randn(3, 3, 32, 32)}] * 2)


def shown(prompts: list[Prompt]) -> list[str]:
    """The names of the pictures in prompts."""
    return list(dict.fromkeys(run.name for prompt in prompts for run in prompt.trunk))


def seen(network: Network, images: list[bytes]) -> list[torch.Tensor]:
    """Features of pictures by an album of their own."""
    album = Album()
    names = [picture.name for picture in album.pictures(network, images)]
    features = album.features(network, names)
    return [features[name] for name in names]
