"""Captions: what is cut out, what is true of it, what is said, and where it stands in a prompt."""

from __future__ import annotations

import io
import shutil
from contextlib import closing
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageDraw

from environments.pages.page import random_page
from environments.pages.studio import Studio
from environments.types import Element, Observation
from models.base import LEARNT
from models.captions import CAPTIONS, SIDE_PX, Captioner, crop, describable, load_captioner
from models.eyes import crops
from models.eyes.drawn import HELD_SEED
from models.eyes.small import Pace
from models.network import load_reader
from models.prompts import Context

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")


def drawing(*boxes: tuple[str, tuple[int, int, int, int]]) -> Observation:
    """A white screen with boxes of colours on it, each an element without a name."""
    screen, shown = Image.new("RGB", (160, 210), "white"), io.BytesIO()
    for colour, (left, top, width, height) in boxes:
        ImageDraw.Draw(screen).rectangle((left, top, left + width - 1, top + height - 1), fill=colour)
    screen.save(shown, "PNG")
    return Observation(shown.getvalue(), tuple(Element("image", "", box) for _, box in boxes))


def test_what_is_captioned() -> None:
    box = (0, 0, 9, 9)
    assert [
        describable(Element(kind, text, box))
        for kind, text in (("image", "cart"), ("image", ""), ("text", "b"), ("text", "be"), ("textbox", ""))
    ] == [True, True, True, False, False]


def test_a_crop_is_the_box_in_the_middle_with_some_of_what_is_around() -> None:
    screen = Image.open(io.BytesIO(drawing(("red", (40, 60, 20, 20))).screenshot)).convert("RGB")
    seen = crop(screen, (40, 60, 20, 20))
    assert seen.shape == (3, SIDE_PX, SIDE_PX)
    # 20 px, and 10 % and 2 px more on each side, are scaled to 32: the box is 20 / 28 of it, from 4.6 to 27.4
    red = (seen[0] > 200) & (seen[1] < 60)
    assert red[6:26, 6:26].all()
    red[4:28, 4:28] = False
    assert not red.any()
    assert (crop(screen, (0, 0, 10, 10))[:, :3, :3] == 0).all()  # beyond the screen


def test_labels_are_what_the_page_has_drawn() -> None:
    seen: list[set[str]] = []
    with closing(Studio()) as studio:
        for seed in range(12):
            page = random_page(seed, LEXICON, boards=1.0)
            shot = studio.show(page)
            for element, numbers in crops.labelled(shot, page.things):
                told = {
                    group[number - 1] for group, number in zip(crops.GROUPS.values(), numbers, strict=True) if number
                }
                here = [thing for thing in page.things if shot.element(thing.mark) == element]
                if not here:
                    assert told == set()
                    continue
                thing = here[-1]
                colour = "aqua" if thing.colour == "cyan" else thing.colour
                look = f"{thing.shape} icon" if thing.sort == "icon" else thing.shape
                assert told == {thing.size, colour, look} - {""}
                seen.append(told)
    assert len(seen) > 100
    assert {len(told) for told in seen} == {1, 2, 3}


def test_what_is_shipped_tells_what_pages_it_has_not_seen_show(tmp_path: Path) -> None:
    captioner = load_captioner(str(LEARNT))
    assert captioner is not None
    held = crops.cut(tmp_path / "crops.safetensors", HELD_SEED + 10**6, 600, LEXICON)
    found = crops.measure(captioner, held)
    assert found["size"] > 0.8
    assert found["colour"] > 0.9
    assert found["look"] > 0.8


def test_captions_stand_before_the_lines_of_what_is_drawn() -> None:
    captioner = load_captioner(str(LEARNT))
    assert captioner is not None
    seen = drawing(("#e00000", (10, 10, 40, 40)), ("#0000e0", (90, 90, 40, 40)))
    mixed = Observation(seen.screenshot, (Element("button", "Go", (0, 190, 30, 15)), *seen.elements))
    nothing, first, second = captioner.captions(mixed)
    assert nothing == ""
    assert "red" in first.split()
    assert "blue" in second.split()
    assert captioner.captions(mixed) == (nothing, first, second)


def test_a_prompt_holds_the_captions_of_its_base(base: Path) -> None:
    context = Context("Press it", (), drawing(("#e00000", (10, 10, 40, 40))))
    plain = load_reader(str(base), 0)
    assert plain.captioner is None
    assert '\nimage "" 30,30\n' in plain.prompt(context)[0]
    torch.manual_seed(0)
    captioner = Captioner({"colour": ("red", "blue")})
    with torch.no_grad():
        captioner.heads["colour"].weight.zero_()
        captioner.heads["colour"].bias.copy_(torch.tensor([0.0, 9.0, 0.0]))
    captioner.save(base)
    try:
        assert '\nred image "" 30,30\n' in load_reader(str(base), 0).prompt(context)[0]
    finally:
        shutil.rmtree(base / CAPTIONS)


def test_what_was_saved_says_the_same(tmp_path: Path) -> None:
    torch.manual_seed(1)
    captioner = Captioner(crops.GROUPS).eval()
    captioner.save(tmp_path)
    loaded = load_captioner(str(tmp_path))
    assert loaded is not None
    assert loaded.groups == captioner.groups
    pixels, sizes = torch.randint(0, 256, (3, 3, SIDE_PX, SIDE_PX)), torch.tensor([[9.0, 9.0]] * 3)
    for name, logits in captioner(pixels, sizes).items():
        torch.testing.assert_close(loaded(pixels, sizes)[name], logits, atol=2e-2, rtol=2e-2)
    assert load_captioner(str(tmp_path / "elsewhere")) is None


def test_a_captioner_learns(tmp_path: Path) -> None:
    """Two colours, told apart after some updates."""
    pixels = torch.zeros(64, 3, SIDE_PX, SIDE_PX, dtype=torch.uint8)
    pixels[::2, 0], pixels[1::2, 2] = 220, 220
    words = torch.tensor([[1], [2]] * 32)
    given = crops.Crops(pixels, torch.full((64, 2), 12.0), words)
    torch.manual_seed(0)
    captioner = Captioner({"colour": ("red", "blue")})
    history = crops.teach(captioner, given, Pace(60, 16, 2e-3), tmp_path, lambda *_: None)
    assert history[-1] < 0.2 * history[0]
    assert crops.measure(captioner, given) == {"colour": pytest.approx(1.0)}
