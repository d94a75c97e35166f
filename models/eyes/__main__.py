"""Train the eyes of the embedded base from nothing: ``python -m models.eyes``. An interrupted run goes on."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.eyes.sheets import Sheets, draw
from models.eyes.tower import Tower
from models.eyes.train import Course, Words, measure, teach
from models.weights import fetch_text_weights

HOME = Path(".ratchet/eyes")
EYES = HOME / "eyes.safetensors"
SHEETS, HELD_PAGES, REPORT_EVERY = 12, 100, 100  # the last sheet is held out
COURSES = (
    Course("letters", updates=3000, batch=16, side=10, layers=2, words=0.0, rate=1e-3),
    Course("words", updates=4000, batch=16, side=10, layers=6, words=0.3, rate=1e-3),
    Course("pages", updates=800, batch=4, side=20, layers=6, words=0.3, rate=3e-4),
)


def main() -> None:
    """Draw the pages, take the courses one after the other, and measure on the pages held out."""
    words, tokenizer = text_side(fetch_text_weights())
    draw(HOME / "sheets", SHEETS, tokenizer, lexicon(tokenizer), lambda done: _say(f"eyes: {done} of {SHEETS} sheets"))
    sheets = Sheets(HOME / "sheets", 0, SHEETS - 1)
    torch.manual_seed(0)
    tower = Tower(words.table.shape[1])
    for course in COURSES:
        _take(tower, course, sheets, words)
    eyes = {name: weight.bfloat16() for name, weight in tower.state_dict().items() if not name.startswith("letters.")}
    save_file(eyes, EYES)
    found = measure(tower, Sheets(HOME / "sheets", SHEETS - 1, SHEETS), words, HELD_PAGES)
    _say(f"eyes: {EYES}; of pages held out: " + ", ".join(f"{name} {share:.3f}" for name, share in found.items()))


def _take(tower: Tower, course: Course, sheets: Sheets, words: Words) -> None:
    """Take a course, or what is left of it."""
    done = HOME / f"{course.name}.safetensors"
    if not done.exists():
        teach(tower, sheets, words, course, HOME / course.name, lambda update, loss: _report(course, update, loss))
        save_file(tower.state_dict(), done)
    tower.load_state_dict(load_file(done))


def _report(course: Course, update: int, loss: float) -> None:
    if update % REPORT_EVERY == 0:
        _say(f"eyes: {course.name} {update} of {course.updates}, loss {loss:.3f}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def text_side(gguf: Path) -> tuple[Words, Any]:
    """The language model's input embeddings and its tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    (blank,) = tokenizer.encode("\n", add_special_tokens=False)
    return Words(model.get_input_embeddings().weight.detach(), blank), tokenizer


def lexicon(tokenizer: Any) -> list[str]:
    """The words of a vocabulary: what begins with a space and has three letters or more, all of them small."""
    return sorted(token[1:] for token in tokenizer.get_vocab() if re.fullmatch("Ġ[a-z]{3,}", token))


if __name__ == "__main__":
    main()
