"""Prompts as our own reading lays them out, against the processor's and the model's own."""

from __future__ import annotations

import torch
from tiny import contexts, journey, png

from models.network import Network
from models.prompts import Context
from models.reading import look, read


def everything() -> list[Context]:
    return [*contexts(), *journey(9)]


def test_tokens_are_those_of_the_processor(network: Network) -> None:
    for context, prompt in zip(everything(), read(network, everything(), {}), strict=True):
        assert [token.id for token in prompt.tokens] == network.tensors(context)["input_ids"][0].tolist()


def test_positions_are_those_of_the_model(network: Network) -> None:
    """Qwen2.5-VL's own ``get_rope_index`` for text and images; one after the other for Idefics3."""
    for context, prompt in zip(everything(), read(network, everything(), {}), strict=True):
        inputs = network.tensors(context)
        found = torch.tensor([token.position for token in prompt.tokens]).T
        expected = torch.arange(len(prompt.tokens))[None]
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
        found = [picture.features for picture in look(network, images)]
        (alone,) = look(network, [png(7)])
    torch.testing.assert_close(torch.cat(found), expected)
    torch.testing.assert_close(alone.features, found[1])


def test_the_album_keeps_what_was_seen(network: Network) -> None:
    album: dict = {}
    read(network, journey(4), album)
    kept = dict(album)
    read(network, journey(6), album)
    assert len(kept) == 4
    assert len(album) == 6
    assert all(album[image] is picture for image, picture in kept.items())
