"""Running one stage: the same, whether Prefect, ``dvc repro`` or a person starts it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from environments.oracles import NoOracle
from environments.types import GoalError
from models.engine import EngineError
from models.weights import WeightsError
from tasks.errors import Edited, ParamsError, StageError
from tasks.files import ROUND, SEED, STATE, WORK, digest, log_of, remove
from tasks.params import Numerics, Params, load_params

STAGES = {
    "demonstrate": "tasks.demonstrate:run",
    "base": "tasks.base:run",
    "rehearse": "tasks.rehearse:run",
    "warm_reward": "tasks.train:warm_reward",
    "warm_agent": "tasks.train:warm_agent",
    "found": "tasks.found:run",
    "propose": "tasks.propose:run",
    "explore": "tasks.explore:run",
    "score": "tasks.score:run",
    "filter": "tasks.filter:run",
    "validate": "tasks.validate:run",
    "attack": "tasks.attack:run",
    "train_reward": "tasks.train:train_reward",
    "train_agent": "tasks.train:train_agent",
    "evaluate": "tasks.evaluate:run",
    "decide": "tasks.decide:run",
}

GOALS = Path("data/goals")
# What editors, Python and SQLite leave beside goal files, and no goal reads. .dvcignore has the same for DVC.
LITTER = (".*", "*~", "#*#", "__pycache__", "*.pyc", "*-shm")


def run(name: str) -> None:
    """Run a stage in this process: its outs are written, its log is ``.ratchet/logs/<name>.log``.

    Raises:
        ParamsError: for an unknown stage or wrong params; whatever the stage raises.
        Edited: what it reads of what a person edits is not what it was. DVC would note the new with the old's outputs.
    """
    if name not in STAGES:
        raise ParamsError(f"stage {name!r}: not one of {', '.join(STAGES)}")
    params = load_params()
    before = given(name)
    prepare(name, params.numerics)
    module, _, function = STAGES[name].partition(":")
    stage: Callable[[Params], None] = getattr(import_module(module), function)
    try:
        stage(params)
    except (GoalError, NoOracle, WeightsError) as error:
        raise ParamsError(str(error)) from error
    except EngineError as error:
        raise StageError(str(error)) from error
    if found := edited(before, given(name)):
        raise Edited(f"{', '.join(found)}: edited while {name} ran, which read it before; run it again")
    for left in (WORK / "work").glob(f"{name}-*"):
        remove(left)


def prepare(name: str, numerics: Numerics) -> None:
    """Make this process fit to compute, its log going to ``.ratchet/logs``. Must come before torch is imported."""
    _log_to(log_of(name))
    warnings.filterwarnings("ignore", category=FutureWarning)  # libraries talking to each other
    os.environ["PYTHONWARNINGS"] = "ignore::FutureWarning"  # in worker processes too
    pin(numerics)


def pin(numerics: Numerics) -> None:
    """Fix what changes the bytes of a computation. Must come before torch is imported."""
    os.environ["OMP_NUM_THREADS"] = str(numerics.threads)
    os.environ["MKL_DYNAMIC"] = "FALSE"  # so many where there are fewer cores too
    # Threads that spin for long stand still where cores are shared; those that sleep at once take as long as one alone.
    os.environ["GOMP_SPINCOUNT"] = "2000"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = os.environ["TQDM_DISABLE"] = "1"  # progress is ours to show
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    if numerics.isa != "native":
        os.environ["ATEN_CPU_CAPABILITY"] = numerics.isa
        os.environ["ONEDNN_MAX_CPU_ISA"] = numerics.isa.upper()
        os.environ["MKL_CBWR"] = os.environ["FBGEMM_ENABLE_INSTRUCTIONS"] = numerics.isa.upper()


def scratch(name: str) -> Path:
    """Where a stage keeps finished work between attempts: named by its inputs, so other inputs find nothing."""
    made = {dep: digest(Path(dep)) for dep in _entry(name).get("deps", []) if _is_made(dep)}
    key = hashlib.sha256(json.dumps(given(name) | made, sort_keys=True).encode()).hexdigest()[:12]
    return WORK / "work" / f"{name}-{key}"


def given(name: str) -> dict[str, Any]:
    """What a stage reads that a person edits: its params, and the content of the files that no stage makes."""
    stage = _entry(name)
    settings = yaml.safe_load(Path("params.yaml").read_text())
    files = [file for dep in stage.get("deps", []) if not _is_made(dep) for file in _files(Path(dep))]
    return {str(file): digest(file) for file in files} | {key: _at(settings, key) for key in stage.get("params", [])}


def edited(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is not as it was, of two answers of :func:`given`: also files that came or went."""
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))


def _entry(name: str) -> dict[str, Any]:
    entry: dict[str, Any] = yaml.safe_load(Path("dvc.yaml").read_text())["stages"][name]
    return entry


def _files(dep: Path) -> list[Path]:
    return [file for file in (dep.rglob("*") if dep.is_dir() else [dep]) if file.is_file() and not _is_litter(file)]


def _is_litter(file: Path) -> bool:
    parts = file.relative_to(GOALS).parts if file.is_relative_to(GOALS) else ()
    return any(fnmatch(part, pattern) for part in parts for pattern in LITTER)


def _is_made(path: str) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in (SEED, STATE, ROUND))


def _at(settings: dict[str, Any], key: str) -> Any:
    for part in key.split("."):
        settings = settings[part]
    return settings


def _log_to(path: Path) -> None:
    """Send the log to a fresh file and, where there is no terminal to draw a bar on, to standard error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [logging.FileHandler(path, mode="w")]
    if not sys.stderr.isatty():
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("ratchet")
    logger.handlers[:] = handlers
    logger.setLevel(logging.INFO)
