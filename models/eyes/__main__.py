"""Train the eyes of the embedded base from nothing: ``python -m models.eyes``. An interrupted run goes on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from environments.pages.words import lexicon
from models.base import EYES, LEARNT, build
from models.captions import CAPTIONS, Captioner, load_captioner
from models.checkpoint import put
from models.eyes import crops, spotting
from models.eyes.align import Alignment, align, alignable, ship
from models.eyes.drawn import HELD_SEED, Drawer
from models.eyes.sheets import Sheets, draw
from models.eyes.small import Pace
from models.eyes.targets import FACTS
from models.eyes.tower import CONNECTOR, Meanings, Tower, joined
from models.eyes.train import Course, measure, teach
from models.screens import ScreenParser, Speller, Spotter, load_parser
from models.weights import fetch_text_weights

HOME = Path(".ratchet/eyes")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHEETS, HELD_PAGES, REPORTS = 9, 100, 20  # the last sheet is held out
COURSES = (
    Course("parts", updates=2000, batch=16, side=10, rate=1e-3),
    Course("pages", updates=200, batch=4, side=20, rate=3e-4),
)
CROPS, HELD_CROPS = 60_000, 2000
CAPTIONING = Pace(updates=2500, batch=64, rate=2e-3)
SCREENS_SEED, SCREENS = 500_000_000, 12  # files of screens
SPOTTING = Pace(updates=1900, batch=16, rate=2e-3)
SPELLING = Pace(updates=3700, batch=48, rate=2e-3)
ALIGNMENT = (
    Alignment(updates=835, lessons=21, trials=171, rank=32, rate=1e-3)
    if DEVICE == "cuda"
    else Alignment(updates=400, lessons=2, trials=10, rank=32, rate=1e-3)  # as far as a CPU gets in two hours
)


def main() -> None:
    """Draw the pages, teach the tower and what captions and lists, align, and write what the repository ships."""
    gguf = fetch_text_weights()
    meanings, words = text_side(gguf)
    draw(HOME / "sheets", SHEETS, words, lambda done: _say(f"eyes: {done} of {SHEETS} sheets"))
    _take_courses(meanings)
    _teach_captions(words)
    _teach_screens(words)
    _align(gguf, words)


def _take_courses(meanings: Meanings) -> None:
    """Teach the tower. Writes ``bare/eyes.safetensors``."""
    if (HOME / "bare" / EYES).exists():
        return
    sheets = Sheets(HOME / "sheets", 0, SHEETS - 1, DEVICE)
    held = Sheets(HOME / "sheets", SHEETS - 1, SHEETS, DEVICE)
    torch.manual_seed(0)
    tower = Tower(meanings.facts.shape[1]).to(DEVICE)
    for course in COURSES:
        _take(tower, course, sheets, meanings)
        _say_held(course.name, measure(tower, held, meanings, HELD_PAGES))
    eyes = tower.state_dict()
    eyes[CONNECTOR] = joined(eyes[CONNECTOR])
    put({name: weight.bfloat16().contiguous() for name, weight in eyes.items()}, HOME / "bare" / EYES)


def _teach_captions(words: Sequence[str]) -> None:
    """Teach what captions drawn elements. Writes ``bare/captions``."""
    if load_captioner(str(HOME / "bare")):
        return
    taught = crops.cut(HOME / "crops.safetensors", 0, CROPS, words)
    held = crops.cut(HOME / "held-crops.safetensors", HELD_SEED, HELD_CROPS, words)
    torch.manual_seed(0)
    captioner = Captioner(crops.GROUPS)
    report = partial(_report, "captions", CAPTIONING.updates)
    crops.teach(captioner, taught, CAPTIONING, HOME / "captions", report)
    captioner.save(HOME / "bare")
    _say_held("captions", crops.measure(captioner, held))


def _teach_screens(words: Sequence[str]) -> None:
    """Teach what lists the elements of a screen. Writes ``bare/captions``, too."""
    if load_parser(str(HOME / "bare")):
        return
    taught = spotting.draw(
        HOME / "screens", SCREENS_SEED, SCREENS, words, lambda done: _say(f"eyes: {done} of {SCREENS} files of screens")
    )
    held = spotting.draw(HOME / "screens", HELD_SEED, 1, words, lambda _: None)
    torch.manual_seed(0)
    parser = ScreenParser(Spotter(), Speller())
    spotting.teach_spotter(
        parser.spotter, taught, SPOTTING, HOME / "spotter", partial(_report, "spots", SPOTTING.updates)
    )
    spotting.teach_speller(
        parser.speller, taught, SPELLING, HOME / "speller", partial(_report, "lines", SPELLING.updates)
    )
    parser.save(HOME / "bare")
    found = spotting.measure(parser.spotter, parser.speller, held)
    _say_held("screens", {name: sum(hits) / max(1, len(hits)) for name, hits in found.items()})


def _align(gguf: Path, words: Sequence[str]) -> None:
    """Align the eyes to the language model. Writes ``data/base``."""
    if not (HOME / "base").exists():
        shutil.rmtree(aside := HOME / "base.part", ignore_errors=True)
        build(gguf, HOME / "bare", aside)
        aside.replace(HOME / "base")
    network = alignable(str(HOME / "base"), ALIGNMENT)
    browsers = max(1, (os.cpu_count() or 1) - 1)
    with closing(Drawer(words, ALIGNMENT.lessons, ALIGNMENT.trials, ALIGNMENT.updates, browsers)) as drawn:
        align(network, drawn, ALIGNMENT, HOME / "aligned", partial(_report, "alignment", ALIGNMENT.updates))
    ship(network, LEARNT)
    shutil.copytree(HOME / "bare" / CAPTIONS, LEARNT / CAPTIONS, dirs_exist_ok=True)


def _take(tower: Tower, course: Course, sheets: Sheets, meanings: Meanings) -> None:
    """Take a course, or what is left of it."""
    done = HOME / f"{course.name}.safetensors"
    if not done.exists():
        report = partial(_report, course.name, course.updates)
        teach(tower, sheets, meanings, course, HOME / course.name, report)
        put(tower.state_dict(), done)
    tower.load_state_dict(load_file(done))


def _report(name: str, updates: int, update: int, loss: float) -> None:
    if update % (updates // REPORTS) == 0:
        _say(f"eyes: {name} {update} of {updates}, loss {loss:.3f}")


def _say_held(name: str, found: Mapping[str, float]) -> None:
    _say(f"eyes: {name}; held out: " + ", ".join(f"{what} {share:.3f}" for what, share in found.items()))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def text_side(gguf: Path) -> tuple[Meanings, list[str]]:
    """What the facts mean to the language model, and the words that pages are made of."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    table = model.get_input_embeddings().weight.detach()
    facts = [tokenizer.encode(f" {fact}", add_special_tokens=False)[0] for fact in FACTS]
    (blank,) = tokenizer.encode("\n", add_special_tokens=False)
    return Meanings(table[facts].to(DEVICE), table[blank].to(DEVICE)), lexicon(tokenizer)


if __name__ == "__main__":
    main()
