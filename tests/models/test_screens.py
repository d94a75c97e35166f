"""Screens read off their screenshots: what a page truly shows, what cells tell of it, and how lines are spelt."""

from __future__ import annotations

import io
import itertools
import math
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from environments.pages.page import Page
from environments.pages.studio import Shot, Studio
from environments.types import Element, Observation
from models.base import LEARNT
from models.captions import CAPTIONS
from models.eyes import spotting
from models.eyes.drawn import HELD_SEED
from models.eyes.small import Pace
from models.network import load_reader
from models.prompts import Context
from models.screens import (
    KINDS,
    LINE_PX,
    SIGNS,
    STATES,
    ScreenParser,
    Speller,
    Spot,
    Spotter,
    boxed,
    found_in,
    in_rows,
    ink,
    joined,
    load_parser,
    side_by_side,
)

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")
ROWS, COLUMNS = 56, 40  # of the viewport's cells, whole coarse ones


@pytest.fixture(scope="module")
def page() -> Shot:
    """A page by hand: every line and control of it is known."""
    html = (
        "<style>body{margin:0;font:10px Arial;line-height:14px}</style>"
        '<div style="width:60px">river stone candle</div><a href="#">garden</a>'
        '<div><label><input type="checkbox" checked>silver</label></div>'
        '<input type="text" value="market"><br><input type="password" value="secret"><br>'
        "<button>thunder</button>"
        '<div style="white-space:nowrap;margin-left:140px">pencil basket mirror</div>'
    )
    with closing(Studio()) as studio:
        return studio.show(Page(html, ()))


def test_a_page_tells_its_lines_of_text(page: Shot) -> None:
    texts = [text for text, _ in page.lines]
    # the block is too narrow for three words, the last line is cut by the screen's edge, secrets are not shown
    assert texts == ["river stone", "candle", "garden", "silver", "thunder", "", "market"]
    (first, second), market = page.lines[:2], page.lines[-1]
    assert first[1][:2] == pytest.approx((0, 1), abs=1.5)
    assert second[1][1] - first[1][1] == 14  # the height of a line
    (field,) = (element for element in page.observation.elements if element.kind == "textbox")
    assert Spot("textbox", field.box).holds(Spot("text", market[1]))


def test_the_lines_of_a_page_are_of_the_kind_of_their_elements(page: Shot) -> None:
    spots = spotting.true_spots(page)
    assert [(line.kind, line.text) for line in spots["lines"]] == [
        ("text", "river stone"), ("text", "candle"), ("link", "garden"), ("text", "silver"), ("text", "thunder"),
        ("text", ""), ("text", "market"),
    ]  # fmt: skip
    assert [(control.kind, control.states) for control in spots["controls"]] == [
        ("checkbox", ("on",)), ("textbox", ()), ("password", ()), ("button", ()),
    ]  # fmt: skip


def test_what_truly_stands_on_a_page_makes_its_list(page: Shot) -> None:
    """Controls have the text on them, boxes their label; a text that is broken stands in its lines."""
    spots = spotting.true_spots(page)
    told = [(one.kind, one.text) for one in joined(spots["controls"], spots["lines"])]
    listed = [(one.kind, one.text) for one in page.observation.elements]
    assert told[:2] == [("text", "river stone"), ("text", "candle")]
    assert told[2:5] == listed[1:4] == [("link", "garden"), ("checkbox", "silver"), ("textbox", "market")]
    assert told[5:7] == [("password", ""), ("button", "thunder")]


def spot(kind: str, *box: float, text: str = "") -> Spot:
    left, top, width, height = box
    return Spot(kind, (left, top, width, height), text=text)


def test_what_is_joined() -> None:
    box, button = spot("checkbox", 10, 10, 12, 12), spot("button", 5, 40, 90, 30)
    label, far = spot("text", 25, 10, 40, 12, text="a label"), spot("text", 80, 10, 40, 12, text="far off")
    two = [spot("text", 10, 55, 50, 12, text="there"), spot("text", 10, 42, 50, 12, text="press")]
    assert [(one.kind, one.text) for one in joined([button, box], [far, label, *two])] == [
        ("checkbox", "a label"), ("text", "far off"), ("button", "press there"),
    ]  # fmt: skip


def test_rows_are_read_from_left_to_right() -> None:
    spots = [spot("text", 50, 12, 10, 10), spot("text", 0, 14, 10, 10), spot("text", 20, 30, 10, 10)]
    assert in_rows(spots) == [spots[1], spots[0], spots[2]]


def apart(spots: Sequence[Spot]) -> bool:
    """Whether no cell of one's middle is one of another's."""
    pairs = itertools.combinations(spots, 2)
    return all(max(abs(a.centre[0] - b.centre[0]), abs(a.centre[1] - b.centre[1])) > 12 for a, b in pairs)


@given(
    st.lists(
        st.builds(
            Spot,
            st.sampled_from(KINDS["controls"]),
            st.tuples(*[st.floats(0, 130) for _ in range(2)], *[st.floats(5, 30) for _ in range(2)]),
            st.sampled_from(((), STATES[:1], STATES[1:], STATES)),
        ),
        max_size=5,
    ).filter(apart)
)
def test_what_cells_are_taught_is_what_is_read_off_them(spots: list[Spot]) -> None:
    kinds, told = spotting.targets("controls", spots, ROWS, COLUMNS)
    count = len(KINDS["controls"])
    logits = torch.full((count, ROWS, COLUMNS), -9.0)
    for row, column in (kinds >= 0).nonzero().tolist():
        logits[kinds[row, column], row, column] = 9.0
    said = torch.cat([logits, told[:4], told[4:] * 18 - 9])
    read = {found.kind: found for found in found_in(KINDS["controls"], said)}
    assert len(found_in(KINDS["controls"], said)) == len(spots)
    for true in spots:
        same = [one for one in found_in(KINDS["controls"], said) if one.box == pytest.approx(true.box, abs=1e-2)]
        assert [(one.kind, one.states) for one in same] == [(true.kind, true.states)]
    assert set(read) == {true.kind for true in spots}


def test_a_cell_tells_its_box_from_its_own_centre() -> None:
    told = torch.zeros(4, 3, 5)
    told[:, 1, 2] = torch.tensor([0.5, -0.25, math.log(4), math.log(2)])
    # the cell's centre is at 10, 6 pixels; the box's 2 px to the right and 1 px above
    assert boxed(told)[:, 1, 2].tolist() == pytest.approx([12 - 8, 5 - 4, 16, 8])


def written(text: str, ground: str, colour: str) -> Image.Image:
    screen = Image.new("RGB", (80, 20), ground)
    ImageDraw.Draw(screen).text((4, 4), text, fill=colour)
    return screen


def test_ink_is_the_same_whatever_the_colours() -> None:
    box = (2.0, 3.0, 60.0, 13.0)
    black, white = ink(written("river", "white", "black"), box), ink(written("river", "#000090", "white"), box)
    assert black.shape == (LINE_PX, round(64 * LINE_PX / 15))
    assert black.max() == 1
    assert (black - white).abs().mean() < 0.02
    assert ink(Image.new("RGB", (80, 20), "#123456"), box).abs().max() == 0  # nothing is written


def test_the_loss_of_a_spelling_is_that_of_all_the_ways_to_say_it() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 4, 1 + len(SIGNS))
    chances = logits.softmax(-1)[0]
    total, wanted = 0.0, [1 + SIGNS.index(sign) for sign in "ab"]
    for said in itertools.product((0, *wanted), repeat=4):
        heard = [sign for sign, _ in itertools.groupby(said) if sign]
        if heard == wanted:
            total += math.prod(float(chances[step, sign]) for step, sign in enumerate(said))
    assert float(spotting.spelling_loss(logits, ["ab"])) == pytest.approx(-math.log(total) / 2, rel=1e-5)


def test_a_line_is_read_as_it_is_alone_whatever_stands_beside_it() -> None:
    torch.manual_seed(0)
    speller = Speller()
    lines = [torch.rand(LINE_PX, width) for width in (20, 48, 300)]
    assert speller.texts(lines) == [speller.texts([line])[0] for line in lines]


def test_a_sign_said_again_is_one_sign() -> None:
    speller = Speller()
    said = [0, 1, 1, 0, 1, 2, 2, 0]  # of SIGNS: space, space, "!"
    logits = torch.nn.functional.one_hot(torch.tensor([said]), 1 + len(SIGNS)).float()
    speller.forward = lambda _: logits  # type: ignore[method-assign]
    assert speller.texts([torch.zeros(LINE_PX, 16)]) == ["!"]
    assert speller.texts([]) == []
    assert side_by_side([torch.ones(LINE_PX, 4), torch.ones(LINE_PX, 6)])[0, 0].tolist() == [1, 1, 1, 1, 0, 0]


def test_a_prompt_lists_what_its_base_reads_off_a_screen_without_a_list(base: Path) -> None:
    shown = io.BytesIO()
    Image.new("RGB", (160, 210), "white").save(shown, "PNG")
    silent, listed = (
        Observation(shown.getvalue(), ()),
        Observation(shown.getvalue(), (Element("text", "own", (0, 0, 9, 9)),)),
    )
    assert load_reader(str(base), 0).parser is None
    assert load_reader(str(base), 0).prompt(Context("Press it", (), silent))[0].count("\ntext") == 0
    spotter, speller = Spotter(), Speller()
    with torch.no_grad():  # one line, in the middle of the screen, that says "A"
        for head in spotter.heads.values():
            head[-1].weight.zero_()
            head[-1].bias.fill_(-9)
        told = spotter.heads["lines"][-1].bias
        told[0], told[5:9] = 9.0, torch.tensor([0.0, 0.0, math.log(60.0), math.log(60.0)])
        speller.along[-1].weight.zero_()
        speller.along[-1].bias.copy_(torch.nn.functional.one_hot(torch.tensor(1 + SIGNS.index("A")), 1 + len(SIGNS)))
    ScreenParser(spotter, speller).save(base)
    try:
        reader = load_reader(str(base), 0)
        assert 'text "A" ' in reader.prompt(Context("Press it", (), silent))[0]
        own = reader.prompt(Context("Press it", (), listed))[0]
        assert 'text "own" 4,4' in own
        assert '"A"' not in own
    finally:
        shutil.rmtree(base / CAPTIONS)


def pixels(shot: Shot) -> torch.Tensor:
    screen = Image.open(io.BytesIO(shot.observation.screenshot)).convert("RGB")
    return torch.from_numpy(np.array(screen)).permute(2, 0, 1)


def test_both_learn_what_a_page_shows(page: Shot, tmp_path: Path) -> None:
    screens = spotting.Screens(torch.stack([pixels(page)] * 2), [spotting.true_spots(page)] * 2)
    torch.manual_seed(0)
    spotter, speller = Spotter(), Speller()
    (tmp_path / "spotter").mkdir()
    (tmp_path / "speller").mkdir()
    spots = spotting.teach_spotter(spotter, screens, Pace(30, 2, 2e-3), tmp_path / "spotter", lambda *_: None)
    lines = spotting.teach_speller(speller, screens, Pace(30, 4, 2e-3), tmp_path / "speller", lambda *_: None)
    assert spots[-1] < 0.5 * spots[0]
    assert lines[-1] < 0.5 * lines[0]


def test_what_is_shipped_reads_screens_it_has_not_seen(tmp_path: Path) -> None:
    parser = load_parser(str(LEARNT))
    assert parser is not None
    held = spotting.draw(tmp_path, HELD_SEED + 10**6, 1, LEXICON, lambda _: None)
    some = spotting.Screens(held.pixels[:60], held.spots[:60])
    found = spotting.measure(parser.spotter, parser.speller, some)
    shares = {name: sum(hits) / len(hits) for name, hits in found.items()}
    assert all(share > 0.85 for share in shares.values()), shares
