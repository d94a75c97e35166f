"""Random pages in the real browser: what stands where is told truly, and exercises do what they say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from environments.pages.blocks import BLOCKS, Draft
from environments.pages.page import Page, random_page
from environments.pages.studio import Studio
from environments.pages.words import Words

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    with closing(Studio()) as studio:
        yield studio


def test_a_seed_is_a_page() -> None:
    assert random_page(3, LEXICON) == random_page(3, LEXICON)
    assert random_page(3, LEXICON) != random_page(4, LEXICON)


@pytest.mark.parametrize("block", [block for block, _ in BLOCKS], ids=lambda block: block.__name__)
def test_every_block_shows_what_it_notes(studio: Studio, block) -> None:  # type: ignore[no-untyped-def]
    chooser = random.Random(block.__name__)
    draft = Draft(chooser, Words(LEXICON, chooser))
    html = block(draft)
    assert all(f'data-mark="{thing.mark}"' in html for thing in draft.things)
    shot = studio.show(Page(f"<style>*{{font-size:6px}} body{{margin:0}}</style>{html}", tuple(draft.things)))
    assert shot.boxes.keys() <= {thing.mark for thing in draft.things}
    assert not draft.things or draft.things[0].mark in shot.boxes


def test_a_label_is_given_once() -> None:
    words = Words(LEXICON, random.Random(0))
    labels = [words.label().lower() for _ in range(200)]
    assert len(set(labels)) == 200


def test_some_labels_have_another_one_in_them() -> None:
    words = Words(LEXICON, random.Random(0))
    labels = [words.label(1).lower() for _ in range(40)]
    assert any(one != other and one in other for one in labels for other in labels)


def test_what_is_covered_is_not_seen(studio: Studio) -> None:
    cover = '<div style="position:fixed;left:0;top:0;width:50px;height:50px;background:red"></div>'
    below = '<b data-mark="t0" style="position:fixed;left:5px;top:300px">c</b>'
    shot = studio.show(Page(f'<b data-mark="t1" style="position:fixed;left:5px;top:5px">a</b>{cover}{below}', ()))
    assert shot.boxes == {}
