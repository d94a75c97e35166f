"""The tower's targets and its training, against hand-made pages and the whole model that it becomes part of."""

from __future__ import annotations

import io
import itertools
import math
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from transformers import Idefics3Config, Idefics3ForConditionalGeneration
from transformers.models.idefics3.modeling_idefics3 import Idefics3Connector

from environments.pages.blocks import Thing
from environments.pages.studio import Shot
from environments.types import Observation
from models.eyes.shape import CELLS, IMAGE_PX, IMAGE_TOKENS, JOINED, PATCH_PX, PATCHES, SHUFFLE, WIDTH, Grid, scaled
from models.eyes.sheets import PAGES, Sheets
from models.eyes.targets import (
    FACTS,
    NOWHERE,
    TOLD,
    nearest_place,
    pixels,
    place_code,
    things,
)
from models.eyes.tower import CONNECTOR, Meanings, Tower, image_processor, joined, things_loss, vision_config
from models.eyes.train import Course, measure, teach

WIDTH_OF_WORDS = 80  # a little more than there are facts


def shot(**boxes: tuple[float, float, float, float]) -> Shot:
    return Shot(Observation(b"", ()), boxes, ())


def test_a_grid_numbers_the_viewport_row_by_row() -> None:
    grid = Grid(20)  # places of 8 by 10.5 pixels
    assert grid.place(0, 0) == 0
    assert grid.place(8, 10.4) == 1
    assert grid.place(7.9, 10.6) == 20
    assert grid.place(159, 209) == 399
    assert grid.place(160, 5) is None
    assert grid.within((8, 0, 16, 11)) == [1, 2]
    assert grid.within((9, 1, 2, 2)) == [1]  # too small to hold a centre


def test_things_go_to_the_cells_that_they_cover_and_are_centred_in() -> None:
    seen = shot(t0=(0.0, 0.0, 32.0, 21.0), t1=(100.0, 100.0, 10.0, 10.0))  # in cells of 16 by 21 pixels
    figure = Thing("t1", "figure", shape="star", colour="blue", size="small", on=True)
    facts, centres = things(seen, [Thing("t0", "box", colour="red"), figure, Thing("t2", "button", "unseen")])
    told = [[FACTS[fact] for fact in cell if fact >= 0] for cell in facts.tolist()]
    assert told[0] == ["red"]  # covered by the box
    assert told[1] == ["red", "box"]  # the box's centre is at 16, 10.5
    assert told[5 * 10 + 6] == ["blue", "star", "figure", "small", "on"]
    assert sum(map(bool, told)) == 3
    assert centres[1].tolist() == [16.0, 10.5]
    assert centres[56].tolist() == [105.0, 105.0]
    assert (centres[:, 0] == NOWHERE).sum() == 98


def test_a_place_can_be_read_from_its_code() -> None:
    points = torch.tensor([[4.0, 6.0], [80.0, 150.0], [158.0, 2.0]])
    code = place_code(points, 64)
    torch.testing.assert_close(code.norm(dim=-1), torch.ones(3))
    assert torch.equal(nearest_place(code), points)
    near, far = place_code(torch.tensor([[8.0, 6.0], [40.0, 90.0]]), 64) @ code[0]
    assert near > far


def meanings() -> Meanings:
    """Facts in directions of their own, of length 2."""
    return Meanings(2 * torch.eye(len(FACTS), WIDTH_OF_WORDS), torch.full((WIDTH_OF_WORDS,), 0.1))


def test_what_cells_are_to_say_is_their_facts_and_the_code_of_their_place() -> None:
    told = torch.tensor([[3, 5, -1], [-1, -1, -1], [7, -1, -1]])
    centres = torch.tensor([[20.0, 30.0], [NOWHERE, NOWHERE], [NOWHERE, NOWHERE]])
    said = meanings().of(told, centres)
    code = 2 * 0.7 * place_code(centres[0], WIDTH_OF_WORDS)
    wanted = torch.zeros(WIDTH_OF_WORDS)
    wanted[[3, 5]] = 2 / math.sqrt(2)
    torch.testing.assert_close(said[0], wanted + code)
    torch.testing.assert_close(said[1], torch.full((WIDTH_OF_WORDS,), 0.1))
    assert said[2].tolist() == [2.0 if fact == 7 else 0.0 for fact in range(WIDTH_OF_WORDS)]


def test_the_loss_of_things_is_least_where_cells_say_what_they_are_to_say() -> None:
    told = torch.tensor([[[3, 5, -1], [-1, -1, -1]]])
    centres = torch.full((1, 2, 2), NOWHERE)
    right = meanings().of(told, centres)
    loss = things_loss(right, told, centres, meanings())
    # Nothing is apart, so what is left is that two facts share the chance.
    chances = meanings().chances(right[0, 0]).log_softmax(-1)
    assert loss.item() == pytest.approx(-(chances[3] + chances[5]).item() / 2, rel=1e-5)
    assert chances[[3, 5]].exp().sum() > 0.9
    assert things_loss(right.flip(1), told, centres, meanings()) > loss


def test_heads_begin_by_looking_beside() -> None:
    torch.manual_seed(0)
    vision = Tower(WIDTH_OF_WORDS).vision_model
    hidden = vision.encoder.layers[0].layer_norm1(vision.embeddings.position_embedding.weight)
    attention = vision.encoder.layers[0].self_attn
    queries, keys = (
        project(hidden).view(-1, 4, 64).transpose(0, 1) for project in (attention.q_proj, attention.k_proj)
    )
    shares = (queries @ keys.transpose(1, 2) / 8).softmax(-1)
    middle = 10 * PATCHES + 10
    for head, beside in enumerate((middle - 1, middle + 1, middle - PATCHES, middle + PATCHES)):
        assert shares[head, middle].argmax() == beside


def test_the_tower_sees_as_the_whole_model_does() -> None:
    torch.manual_seed(0)
    tower = Tower(WIDTH_OF_WORDS).eval()
    text = {"hidden_size": WIDTH_OF_WORDS, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 1,
            "num_key_value_heads": 1, "vocab_size": 50, "pad_token_id": 0, "model_type": "llama"}  # fmt: skip
    config = Idefics3Config(text_config=text, vision_config=vision_config(), scale_factor=SHUFFLE, image_token_id=3)
    whole = Idefics3ForConditionalGeneration(config).eval()
    whole.model.vision_model.load_state_dict(tower.vision_model.state_dict())
    whole.model.connector.load_state_dict(tower.connector.state_dict())
    pixels = torch.rand(2, 3, IMAGE_PX, IMAGE_PX)
    with torch.inference_mode():
        seen = whole.model.get_image_features(pixels[:, None]).pooler_output
        said = tower(pixels, torch.arange(PATCHES**2).expand(2, -1))
    assert said.shape == (2, CELLS**2, WIDTH_OF_WORDS)
    torch.testing.assert_close(torch.stack(list(seen)), said)


def test_a_token_of_the_base_says_the_mean_of_its_cells() -> None:
    torch.manual_seed(0)
    tower = Tower(WIDTH_OF_WORDS).eval()
    config = Idefics3Config(vision_config=vision_config(), scale_factor=SHUFFLE * JOINED)
    config.text_config.hidden_size = WIDTH_OF_WORDS
    connector = Idefics3Connector(config)
    connector.load_state_dict({CONNECTOR.removeprefix("connector."): joined(tower.state_dict()[CONNECTOR])})
    patches = torch.rand(2, PATCHES**2, WIDTH)
    with torch.inference_mode():
        cells, tokens = tower.connector(patches), connector(patches)
    assert tokens.shape == (2, IMAGE_TOKENS, WIDTH_OF_WORDS)
    side = CELLS // JOINED
    blocks = cells.view(2, side, JOINED, side, JOINED, WIDTH_OF_WORDS).mean((2, 4)).flatten(1, 2)
    torch.testing.assert_close(tokens, blocks)


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> Sheets:
    """Pages of black squares on white: a square that begins a cell is its second fact."""
    folder = tmp_path_factory.mktemp("sheets")
    chosen = torch.rand(PAGES, PATCHES, PATCHES, generator=torch.Generator().manual_seed(0)) < 0.3
    pixels = 255 * (~chosen).byte()
    pixels = pixels.repeat_interleave(PATCH_PX, 1).repeat_interleave(PATCH_PX, 2)[:, None].expand(-1, 3, -1, -1)
    facts = torch.full((PAGES, CELLS**2, TOLD), -1, dtype=torch.int8)
    corners = chosen[:, ::SHUFFLE, ::SHUFFLE].flatten(1)
    facts[..., 0][corners] = 1
    centres = torch.full((PAGES, CELLS**2, 2), NOWHERE)
    tensors = {"pixels": pixels.contiguous(), "facts": facts, "centres": centres}
    save_file(tensors, folder / "sheet-000.safetensors")
    return Sheets(folder, 0, 1)


def course(updates: int) -> Course:
    return Course("test", updates, batch=2, side=4, rate=1e-3)


def test_it_learns_to_read(sheets: Sheets, tmp_path: Path) -> None:
    torch.manual_seed(0)
    tower = Tower(WIDTH_OF_WORDS)
    losses = teach(tower, sheets, meanings(), course(60), tmp_path, lambda update, loss: None)
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_an_interrupted_training_ends_with_the_same_bytes(
    sheets: Sheets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.eyes.train.SAVE_EVERY", 2)

    def train(scratch: Path, stop: int | None) -> tuple[dict[str, torch.Tensor], list[float]]:
        torch.manual_seed(0)
        tower = Tower(WIDTH_OF_WORDS)

        def report(update: int, loss: float) -> None:
            if update == stop:
                raise KeyboardInterrupt

        return tower.state_dict(), teach(tower, sheets, meanings(), course(6), scratch, report)

    undisturbed, losses = train(tmp_path / "a", None)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "b", 5)
    resumed, again = train(tmp_path / "b", None)
    assert again == losses
    assert all(torch.equal(undisturbed[name], resumed[name]) for name in undisturbed)


def test_what_is_measured_is_a_share(sheets: Sheets) -> None:
    """A tower whose cells all say the same is right where that fact is told, and nowhere else."""
    tower = Tower(WIDTH_OF_WORDS)
    found = {}
    for fact in (1, 2):
        with torch.no_grad():
            tower.vision_model.post_layernorm.weight.zero_()
            tower.vision_model.post_layernorm.bias.fill_(1.0)
            tower.connector.modality_projection.proj.weight.zero_()
            tower.connector.modality_projection.proj.weight[fact] = 0.01
        found[fact] = measure(tower, sheets, meanings(), pages=2)["colour"]
    assert found == {1: 1.0, 2: 0.0}


def test_parts_are_cut_alike(sheets: Sheets) -> None:
    part = sheets.parts(3, 4, seed=5)
    whole = sheets.whole(range(PAGES))
    rows = part.places[:, 0] // PATCHES * PATCH_PX
    columns = part.places[:, 0] % PATCHES * PATCH_PX
    for number, (row, column) in enumerate(itertools.zip_longest(rows.tolist(), columns.tolist())):
        cut = whole.pixels[:, :, row : row + 4 * PATCH_PX, column : column + 4 * PATCH_PX]
        page = int((cut == part.pixels[number]).flatten(1).all(1).nonzero()[0])
        corner = int(part.places[number, 0])
        cell = corner // PATCHES // SHUFFLE * CELLS + corner % PATCHES // SHUFFLE
        assert torch.equal(whole.facts[page][[cell, cell + 1, cell + CELLS, cell + CELLS + 1]], part.facts[number])


def test_pictures_are_scaled_as_the_processor_scales_them() -> None:
    shown = Image.effect_noise((160, 210), 200).convert("RGB")
    png = io.BytesIO()
    shown.save(png, "PNG")
    processor = image_processor()
    (theirs,) = processor([[shown]], return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(scaled(pixels(png.getvalue())), theirs[0], atol=1e-5, rtol=1e-5)
