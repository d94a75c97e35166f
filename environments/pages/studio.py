"""Draws random pages in the real browser, and tells what stands where."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.browser.chromium import Browser, listed
from environments.pages.page import Page
from environments.types import Element, Observation

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Shot:
    """A page as it is seen: CSS pixels of the viewport throughout.

    ``boxes`` are (left, top, width, height) of the page's things whose centre is seen, by their mark; ``lines`` are the
    lines of text that are seen, each with its box; the text of one that the screen's edge cuts is empty.
    """

    observation: Observation
    boxes: dict[str, tuple[float, float, float, float]]
    lines: tuple[tuple[str, tuple[float, float, float, float]], ...]

    def point(self, mark: str) -> tuple[int, int]:
        """The centre of a thing that is seen."""
        left, top, width, height = self.boxes[mark]
        return int(left + width / 2), int(top + height / 2)

    def element(self, mark: str) -> Element | None:
        """The smallest listed element that a thing's centre lies on, else the first whose own lies in the thing's box.

        None where there is neither, or the thing is not seen.
        """
        if mark not in self.boxes:
            return None
        listed, (left, top, width, height) = self.observation.elements, self.boxes[mark]
        here = [element for element in listed if element.contains(self.point(mark))]
        within = (one for one in listed if 0 <= one.point[0] - left <= width and 0 <= one.point[1] - top <= height)
        return min(here, key=lambda element: element.box[2] * element.box[3], default=next(within, None))


class Studio:
    """A browser that draws one page after the other.

    Raises:
        WorldError: from every method, when the browser breaks.
    """

    def __init__(self) -> None:
        self.browser = Browser(_HERE, [_HERE / "read.js", _HERE / "views.js"])
        self.browser.open("blank.html")

    def show(self, page: Page) -> Shot:
        """Draw a page, at its beginning."""
        self.browser.evaluate(f"__ratchet.write({json.dumps(page.html)})")
        return self.shoot()

    def shoot(self) -> Shot:
        """The page as it is now."""
        seen: dict[str, Any] = self.browser.evaluate("__ratchet.read()")
        boxes = {mark: (box[0], box[1], box[2], box[3]) for mark, box in seen["things"]}
        lines = tuple((text, (box[0], box[1], box[2], box[3])) for text, box in seen["lines"])
        return Shot(Observation(self.browser.screenshot(), listed(seen["elements"])), boxes, lines)

    def close(self) -> None:
        """End the browser. A second call has no effect."""
        self.browser.close()
