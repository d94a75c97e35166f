"""Prompts as our own reading lays them out, against the processor's and the model's own."""

from __future__ import annotations

import torch
from tiny import contexts, journey, pictures_seen, png
from tokenizers.processors import TemplateProcessing

from models.network import Network
from models.prompts import Context
from models.reading import Album, Prompt, read


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


def shown(prompts: list[Prompt]) -> list[str]:
    """The names of the pictures in prompts."""
    return list(dict.fromkeys(run.name for prompt in prompts for run in prompt.trunk))


def seen(network: Network, images: list[bytes]) -> list[torch.Tensor]:
    """Features of pictures by an album of their own."""
    album = Album()
    names = [picture.name for picture in album.pictures(network, images)]
    features = album.features(network, names)
    return [features[name] for name in names]
