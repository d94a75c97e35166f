"""Whether the picture matters: ``python -m benchmarks.eyes``, on pages that nothing was trained on.

The base answers lessons of every kind three times: as they stand, with the picture blank, and without the element list,
which it then reads off the picture. How well it does that is told first: controls and lines of text found, and spelt.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from benchmarks.figures import within
from environments.browser.chromium import VIEWPORT_PX
from environments.pages.studio import Studio
from environments.pages.words import lexicon
from environments.types import Action, ActionError, Observation
from models.engine import Engine
from models.eyes import spotting
from models.eyes.drawn import HELD_SEED, Worksheet
from models.eyes.lessons import LESSONS, Lesson
from models.inference import TorchEngine
from models.network import Network, load_base
from models.prompts import Context
from tasks.base import location

LINES = 2  # of an answer of several lines, that are looked at
KINDS = ("exercise", *(generator.__name__ for generator in LESSONS))
BATCH = 8


def blank() -> bytes:
    """A screenshot that shows nothing."""
    shown = io.BytesIO()
    Image.new("RGB", VIEWPORT_PX, "white").save(shown, "PNG")
    return shown.getvalue()


def without_picture(context: Context) -> Context:
    return replace(context, observation=Observation(blank(), context.observation.elements))


def without_list(context: Context) -> Context:
    return replace(context, observation=Observation(context.observation.screenshot, ()))


Way = Callable[[Context], Context]
WAYS: dict[str, Way] = {
    "both": lambda context: context,
    "no picture": without_picture,
    "no list": without_list,
}


def right(lesson: Lesson, answer: str) -> float:
    """The share of an answer that is right: of its first lines, or all of it."""
    if lesson.answer.startswith("click "):
        return float(_hits(lesson, answer))
    told, wanted = answer.split("\n")[:LINES], lesson.answer.split("\n")[:LINES]
    if lesson.kind == "counting":
        return float(answer.rpartition(":")[2] == lesson.answer.rpartition(":")[2])
    return sum(line == other for line, other in zip(told, wanted, strict=False)) / len(wanted)


def _hits(lesson: Lesson, answer: str) -> bool:
    """Whether a click lies on the element that was meant."""
    try:
        action = Action.parse(answer)
    except ActionError:
        return False
    meant = lesson.answer.removeprefix("click ")
    boxes = [element for element in lesson.context.observation.elements if element.label == meant]
    return action.point is not None and any(element.contains(action.point) for element in boxes)


def gather(worksheet: Worksheet, per_kind: int) -> list[Lesson]:
    """So many lessons of each kind, each on a page of its own."""
    found: dict[str, list[Lesson]] = {kind: [] for kind in KINDS}
    done = (one for one in worksheet.trials(HELD_SEED) if one.answer)
    found["exercise"] = [Lesson("exercise", one.context, one.answer) for one in islice(done, per_kind)]
    for lesson in worksheet.lessons(HELD_SEED):
        if len(found[lesson.kind]) < per_kind:
            found[lesson.kind].append(lesson)
        if all(len(lessons) == per_kind for lessons in found.values()):
            break
    return [lesson for lessons in found.values() for lesson in lessons]


def answers(engine: Engine, contexts: list[Context]) -> Iterator[str]:
    """The greedy answer to each."""
    for start in range(0, len(contexts), BATCH):
        for drawn in engine.fresh().sample(contexts[start : start + BATCH], 1, 0.0):
            yield next(iter(drawn))


def read(network: Network, words: Sequence[str], pages: int) -> dict[str, list[bool]]:
    """How well the base reads the elements of so many pages off their pictures."""
    if network.parser is None:
        return {}
    with TemporaryDirectory(prefix="ratchet-eyes-") as folder:
        held = spotting.draw(Path(folder), HELD_SEED, 1, words, lambda _: None)
    some = spotting.Screens(held.pixels[:pages], held.spots[:pages])
    return spotting.measure(network.parser.spotter, network.parser.speller, some)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-kind", type=int, default=30, help="lessons of each kind")
    parser.add_argument("--pages", type=int, default=200, help="pages whose elements are read off, at most 500")
    parser.add_argument("--base", default=None, help="a folder to load the base from; default: this workspace's")
    arguments = parser.parse_args()
    network = load_base(arguments.base or location("agent"), "float32", 0)
    words = lexicon(network.processor.tokenizer)
    shares: dict[str, dict[str, float]] = {}
    for what, hits in read(network, words, arguments.pages).items():
        shares[what] = {"read": sum(hits) / max(1, len(hits))}
        found = f"{sum(hits):5} of {len(hits):5} {shares[what]['read']:6.3f} {within(sum(hits), len(hits), 3)}"
        print(f"{what:16} {found}", flush=True)
    with closing(Studio()) as studio:
        lessons = gather(Worksheet(studio, words), arguments.per_kind)
    print(f"{'':10} " + " ".join(f"{way:>18}" for way in WAYS))
    engine = TorchEngine(network)
    for kind in dict.fromkeys(lesson.kind for lesson in lessons):
        asked = [lesson for lesson in lessons if lesson.kind == kind]
        line = []
        for way, change in WAYS.items():
            told = answers(engine, [change(lesson.context) for lesson in asked])
            score = sum(right(lesson, answer) for lesson, answer in zip(asked, told, strict=True))
            shares.setdefault(kind, {})[way] = score / len(asked)
            line.append(f"{score / len(asked):6.2f} {within(round(score), len(asked))}")
        print(f"{kind:10} " + " ".join(line), flush=True)
    print(json.dumps({f"{kind} {way}": share for kind, found in shares.items() for way, share in found.items()}))


if __name__ == "__main__":
    main()
