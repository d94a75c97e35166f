"""An exercise in the making: its blocks, what is to be done with them, and the moves that do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from environments.pages.blocks import Block, Draft, Thing

SOMEWHERE = ("find {name} and press it", "look for {name} and take it", "press {name}, wherever it is")
_SCROLL_SHARE = 0.8  # of the height that is seen, a scroll moves


@dataclass(frozen=True, slots=True)
class Move:
    """One action of a plan: press the thing of a mark, the option of a text or a key, or type a text.

    Where it is to ``seek`` a text, it scrolls down, for that is not seen yet. Where it only looks for something, what
    is called ``either`` might be pressed as well.
    """

    mark: str = ""
    option: str = ""
    text: str = ""
    key: str = ""
    seek: str = ""
    either: tuple[str, ...] = ()


@dataclass
class Job:
    """An exercise in the making. Where it is ``ordered``, its presses may not be made in another order."""

    draft: Draft
    clauses: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    ordered: bool = False

    def add(self, block: str, wordings: Sequence[str], moves: Sequence[Move], **names: str) -> None:
        """A block, what is to be done with it in one of the wordings, and how."""
        self.blocks.append(block)
        self.clauses.append(self.draft.chooser.choice(wordings).format(**names))
        self.moves += moves

    def made(self, block: Block) -> tuple[str, list[Thing]]:
        """A block's HTML, and the things it has."""
        before = len(self.draft.things)
        html = block(self.draft)
        return html, self.draft.things[before:]

    def press_one(self, block: Block, wordings: Sequence[str]) -> None:
        """A block, one of whose things is pressed."""
        html, things = self.made(block)
        chosen = self.draft.chooser.choice(things)
        self.add(html, wordings, [Move(mark=chosen.mark)], name=chosen.text)


Part = Callable[[Job], None]


def sought(text: str, bottom_px: float, height_px: int) -> list[Move]:
    """The scrolls that bring up a text that ends so far below the beginning of a list that is ``height_px`` high."""
    return [Move(seek=text)] * ceil(max(0.0, bottom_px - height_px) / (_SCROLL_SHARE * height_px))
