"""Pages are drawn ahead as they would be drawn at once; an alignment that was cut short ends on the same weights."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch

from environments.pages.studio import Studio
from models.eyes import align as aligning
from models.eyes.align import Alignment, align, alignable
from models.eyes.drawn import Drawer, Drawn, Worksheet, draw
from models.training import Report
from models.tuning import trained

LEXICON = ("river", "stone", "candle", "window", "garden", "silver", "market", "thunder", "pencil", "basket", "mirror")
ALIGNMENT = Alignment(updates=6, lessons=2, trials=3, rank=4, rate=1e-2)


@pytest.fixture(scope="module")
def pages() -> list[Drawn]:
    """What the updates learn from, drawn one after the other."""
    with closing(Studio()) as studio:
        return [draw(Worksheet(studio, LEXICON), update, 2, 3) for update in range(ALIGNMENT.updates)]


def test_each_update_has_pages_of_its_own(pages: list[Drawn]) -> None:
    assert [(len(one.lessons), len(one.trials)) for one in pages] == [(2, 3)] * len(pages)
    screens = {one.context.observation.screenshot for drawn in pages for one in drawn.lessons}
    assert len(screens) == 2 * len(pages)


def test_what_is_drawn_ahead_is_what_is_drawn_at_once(pages: list[Drawn]) -> None:
    """From the first update on, or from a later one, where an alignment was cut short."""
    for first in (0, 4):
        with closing(Drawer(LEXICON, 2, 3, ALIGNMENT.updates, browsers=2)) as drawer:
            assert [drawer(update) for update in range(first, ALIGNMENT.updates)] == pages[first:]


def silent(done: int, value: float) -> None:
    pass


def taught(
    base: Path, drawn: Callable[[int], Drawn], scratch: Path, report: Report = silent
) -> tuple[list[float], dict[str, torch.Tensor]]:
    scratch.mkdir(exist_ok=True)
    network = alignable(str(base), ALIGNMENT)
    history = align(network, drawn, ALIGNMENT, scratch, report)
    return history, trained(network)


def test_an_alignment_that_was_cut_short_goes_on(
    base: Path, pages: list[Drawn], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut short in the fourth update, it goes on with the third: it was kept after every second."""
    whole, expected = taught(base, pages.__getitem__, tmp_path / "whole")

    monkeypatch.setattr(aligning, "_SAVE_EVERY", 2)

    def ends(update: int) -> Drawn:
        if update == 3:
            raise KeyboardInterrupt
        return pages[update]

    with pytest.raises(KeyboardInterrupt):
        taught(base, ends, tmp_path / "cut")
    asked, reported = list[int](), list[int]()

    def goes_on(update: int) -> Drawn:
        asked.append(update)
        return pages[update]

    history, found = taught(base, goes_on, tmp_path / "cut", lambda done, value: reported.append(done))
    assert asked == [2, 3, 4, 5]
    assert reported == [3, 4, 5, 6]
    assert history == whole
    assert all(torch.equal(weight, expected[name]) for name, weight in found.items())


def test_what_is_shown_is_learnt(base: Path, pages: list[Drawn], tmp_path: Path) -> None:
    history, _ = taught(base, lambda _: pages[0], tmp_path / "same")
    assert history[-1] < 0.9 * history[0]
