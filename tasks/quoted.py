"""What an instruction quotes, which a path that does what it says has typed or seen.

A reward model may like an end at which the reply was sent and nothing written in it. UI-Genie verifies actions by
rules, their kind, place and text (3.3); this one verifies ends, and needs no verdict of a world. It errs where a text
is paraphrased or drawn: docs/decisions/0056-what-is-quoted.md.
"""

from __future__ import annotations

import re

from environments.types import Episode

_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”')


def quoted(instruction: str) -> list[str]:
    """The texts that an instruction quotes."""
    return [one or other for one, other in _QUOTED.findall(instruction)]


def missing(episode: Episode) -> list[str]:
    """The quoted texts of the instruction that nobody typed and no screen showed, in any letter case.

    A kind of element counts as shown (``"checkbox"``). Empty where no screen comes with a list of elements: nothing is
    known of what those show.
    """
    wanted = quoted(episode.instruction)
    screens = [*(step.observation for step in episode.steps), episode.last] if wanted else []
    shown = {text for screen in screens for element in screen.elements for text in (element.kind, element.text)}
    typed = {step.action.text for step in episode.steps}
    found = "\n".join(_plain(text) for text in shown | typed)
    return [text for text in wanted if _plain(text) not in found] if shown else []


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
