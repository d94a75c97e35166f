"""The tower's targets and its training, against hand-made pages and the whole model that it becomes part of."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from transformers import Idefics3Config, Idefics3ForConditionalGeneration

from environments.pages.blocks import Thing
from environments.pages.studio import Shot
from environments.types import Observation
from models.eyes.shape import CELLS, IMAGE_PX, IMAGE_TOKENS, PATCH_PX, PATCHES, SHUFFLE, Grid, scaled
from models.eyes.sheets import PAGES, Sheets
from models.eyes.targets import BLANK, LETTERS, SLOTS, WORDS, letters, pixels, words
from models.eyes.tower import Tower, image_processor, vision_config, words_loss
from models.eyes.train import Course, Words, measure, teach

WIDTH_OF_WORDS = 24


class Pairs:
    """A vocabulary whose tokens are pairs of letters, numbered by the first."""

    def pieces(self, text: str) -> list[tuple[int, int, int]]:
        return [(ord(text[at]), at, min(at + 2, len(text))) for at in range(0, len(text), 2)]

    def token(self, word: str) -> int:
        return ord(word.strip()[0]) + 1000


def shot(*texts: tuple[str, tuple[tuple[float, float] | None, ...]], **boxes: tuple[float, ...]) -> Shot:
    return Shot(Observation(b"", ()), texts, boxes)  # type: ignore[arg-type]


def test_a_grid_numbers_the_viewport_row_by_row() -> None:
    grid = Grid(20)  # places of 8 by 10.5 pixels
    assert grid.place(0, 0) == 0
    assert grid.place(8, 10.4) == 1
    assert grid.place(7.9, 10.6) == 20
    assert grid.place(159, 209) == 399
    assert grid.place(160, 5) is None
    assert grid.within((8, 0, 16, 11)) == [1, 2]
    assert grid.within((9, 1, 2, 2)) == [1]  # too small to hold a centre


def test_letters_go_to_the_patches_that_their_centres_lie_in() -> None:
    seen = shot(("aB ~", ((1.0, 2.0), (9.0, 2.0), None, (10.0, 3.0))), ("é", ((159.0, 209.0),)))
    table = letters(seen)
    assert table[0].tolist() == [LETTERS.index("a") + 1, BLANK, BLANK]
    assert table[1].tolist() == [LETTERS.index("B") + 1, LETTERS.index("~") + 1, BLANK]
    assert table[399].tolist() == [len(LETTERS) + 1, BLANK, BLANK]
    assert (table != BLANK).sum() == 4


def test_words_go_to_the_cells_that_they_are_centred_in() -> None:
    seen = shot(("abc", ((2.0, 5.0), (30.0, 5.0), (31.0, 5.0))), t0=(0.0, 0.0, 32.0, 21.0))
    table = words(seen, [Thing("t0", "box", colour="red"), Thing("t1", "button", "unseen")], Pairs())  # type: ignore[arg-type]
    centre_of_ab, centre_of_c = 1, 1  # (2 + 30) / 2 = 16 and 31, in cells of 16 by 21 pixels
    assert table[centre_of_ab].tolist()[:4] == [ord("a"), ord("c"), ord("r") + 1000, ord("b") + 1000]
    assert table[0].tolist() == [ord("r") + 1000, -1, -1, -1, -1, -1]
    assert centre_of_ab == centre_of_c
    assert (table >= 0).sum() == 5


def test_the_loss_of_words_is_least_where_cells_say_their_mean() -> None:
    table = torch.eye(8) * 2
    wanted = torch.tensor([[[3, 5, -1], [-1, -1, -1]]])
    said = torch.stack([(table[3] + table[5]) / 2, table[0]])[None].requires_grad_()
    loss = words_loss(said, wanted, table, 0, torch.Generator().manual_seed(0))
    # Two words of eight share the chance: logits 16 * (1/2) for each, 0 for the six others; nothing else is apart.
    assert loss.item() == pytest.approx(-torch.tensor([8.0, 8.0, *[0.0] * 6]).log_softmax(-1)[0].item(), rel=1e-5)
    worse = words_loss(said.flip(1), wanted, table, 0, torch.Generator().manual_seed(0))
    assert worse > loss


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
    text = {"hidden_size": WIDTH_OF_WORDS, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 2, "vocab_size": 50, "pad_token_id": 0, "model_type": "llama"}  # fmt: skip
    config = Idefics3Config(text_config=text, vision_config=vision_config(), scale_factor=SHUFFLE, image_token_id=3)
    whole = Idefics3ForConditionalGeneration(config).eval()
    whole.model.vision_model.load_state_dict(tower.vision_model.state_dict())
    whole.model.connector.load_state_dict(tower.connector.state_dict())
    pixels = torch.rand(2, 3, IMAGE_PX, IMAGE_PX)
    with torch.inference_mode():
        seen = whole.model.get_image_features(pixels[:, None]).pooler_output
        _, said = tower(pixels, torch.arange(PATCHES**2).expand(2, -1))
    assert said.shape == (2, IMAGE_TOKENS, WIDTH_OF_WORDS)
    torch.testing.assert_close(torch.stack(list(seen)), said)


@pytest.fixture(scope="module")
def sheets(tmp_path_factory: pytest.TempPathFactory) -> Sheets:
    """Pages of black squares on white: a square is the letter A and the word 1."""
    folder = tmp_path_factory.mktemp("sheets")
    chosen = torch.rand(PAGES, PATCHES, PATCHES, generator=torch.Generator().manual_seed(0)) < 0.3
    pixels = 255 * (~chosen).byte()
    pixels = pixels.repeat_interleave(PATCH_PX, 1).repeat_interleave(PATCH_PX, 2)[:, None].expand(-1, 3, -1, -1)
    named = torch.zeros(PAGES, PATCHES**2, SLOTS, dtype=torch.uint8)
    named[..., 0] = chosen.flatten(1) * (LETTERS.index("A") + 1)
    said = torch.full((PAGES, CELLS**2, WORDS), -1, dtype=torch.int32)
    corners = chosen[:, ::SHUFFLE, ::SHUFFLE].flatten(1)
    said[..., 0][corners] = 1
    tensors = {"pixels": pixels.contiguous(), "letters": named, "words": said}
    save_file(tensors, folder / "sheet-000.safetensors")
    return Sheets(folder, 0, 1)


def course(updates: int) -> Course:
    return Course("test", updates, batch=2, side=4, layers=2, words=1.0, rate=1e-3)


def vocabulary() -> Words:
    return Words(torch.randn(30, WIDTH_OF_WORDS, generator=torch.Generator().manual_seed(1)), 0)


def test_it_learns_to_read(sheets: Sheets, tmp_path: Path) -> None:
    torch.manual_seed(0)
    tower = Tower(WIDTH_OF_WORDS)
    losses = teach(tower, sheets, vocabulary(), course(60), tmp_path, lambda update, loss: None)
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

        return tower.state_dict(), teach(tower, sheets, vocabulary(), course(6), scratch, report)

    undisturbed, losses = train(tmp_path / "a", None)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "b", 5)
    resumed, again = train(tmp_path / "b", None)
    assert again == losses
    assert all(torch.equal(undisturbed[name], resumed[name]) for name in undisturbed)


def test_what_is_measured_is_a_share(sheets: Sheets) -> None:
    """A tower that names nothing and says nothing is right nowhere."""
    tower = Tower(WIDTH_OF_WORDS)
    with torch.no_grad():
        tower.letters.weight.zero_()
        tower.letters.bias.zero_()
        tower.letters.bias.view(SLOTS, -1)[:, LETTERS.index("A") + 1] = 1
    few = sheets.whole(range(2))
    assert few.pixels.shape == (2, 3, IMAGE_PX, IMAGE_PX)
    found = measure(tower, sheets, vocabulary(), pages=2)
    assert found["letters"] == 1.0  # every letter there is an A
    assert found["patches"] == 0.0  # but no patch shows three


def test_parts_are_cut_alike(sheets: Sheets) -> None:
    part = sheets.parts(3, 4, seed=5)
    whole = sheets.whole(range(PAGES))
    rows = part.places[:, 0] // PATCHES * PATCH_PX
    columns = part.places[:, 0] % PATCHES * PATCH_PX
    for number, (row, column) in enumerate(itertools.zip_longest(rows.tolist(), columns.tolist())):
        cut = whole.pixels[:, :, row : row + 4 * PATCH_PX, column : column + 4 * PATCH_PX]
        page = int((cut == part.pixels[number]).flatten(1).all(1).nonzero()[0])
        assert torch.equal(whole.letters[page][part.places[number]], part.letters[number])


def test_pictures_are_scaled_as_the_processor_scales_them() -> None:
    shown = Image.effect_noise((160, 210), 200).convert("RGB")
    png = io.BytesIO()
    shown.save(png, "PNG")
    processor = image_processor()
    (theirs,) = processor([[shown]], return_tensors="pt")["pixel_values"]
    torch.testing.assert_close(scaled(pixels(png.getvalue())), theirs[0], atol=1e-5, rtol=1e-5)
