"""The size of the eyes: what the picture is scaled to, the grid of patches and cells over it, and its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from environments.browser.chromium import VIEWPORT_PX

IMAGE_PX, PATCH_PX, SHUFFLE, JOINED = 240, 12, 2, 2
PATCHES = IMAGE_PX // PATCH_PX  # a side
CELLS = PATCHES // SHUFFLE  # a side; a cell is what the tower learns to speak of
IMAGE_TOKENS = (CELLS // JOINED) ** 2  # each shows JOINED cells a side
WIDTH, LAYERS, HEADS, INNER = 256, 6, 4, 768
MEAN, STD = 0.9, 0.3  # of the brightness, which is mostly that of paper


def scaled(shown: Tensor) -> Tensor:
    """Pixels of 0 to 255 as the tower takes them."""
    return (shown.float() / 255 - MEAN) / STD


@dataclass(frozen=True, slots=True)
class Grid:
    """A square grid over the viewport, ``side`` places a side, numbered row by row."""

    side: int

    def place(self, x: float, y: float) -> int | None:
        """The place of a point in CSS pixels; None beside the viewport."""
        width, height = VIEWPORT_PX
        if not (0 <= x < width and 0 <= y < height):
            return None
        return int(y * self.side / height) * self.side + int(x * self.side / width)

    def within(self, box: tuple[float, float, float, float]) -> list[int]:
        """The places whose centres lie in a box (left, top, width, height), or else that of the box's centre."""
        left, top, width, height = box
        cell_x, cell_y = (size / self.side for size in VIEWPORT_PX)
        found = [
            row * self.side + column
            for row in range(self.side)
            for column in range(self.side)
            if left <= (column + 0.5) * cell_x < left + width and top <= (row + 0.5) * cell_y < top + height
        ]
        centre = self.place(left + width / 2, top + height / 2)
        return found or ([] if centre is None else [centre])
