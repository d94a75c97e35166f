"""What an interrupted training goes on from: weights, the optimizers' moments and the losses so far, in one file."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

_FILE = "checkpoint.safetensors"
_LOG = logging.getLogger("ratchet")


def put(tensors: Mapping[str, Tensor], file: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors into a file that is whole or absent: synced, and put in place by a rename."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".part")
    save_file(dict(tensors), aside, metadata)
    with aside.open("rb") as written:
        os.fsync(written.fileno())
    aside.replace(file)


def save(scratch: Path, weights: Mapping[str, Tensor], optimizers: Sequence[Optimizer], history: list[float]) -> None:
    """Write the state after the last update."""
    tensors = {f"weight/{name}": weight.detach() for name, weight in weights.items()}
    for name, weight in weights.items():
        for optimizer in optimizers:
            tensors |= {f"{key}/{name}": value for key, value in optimizer.state.get(weight, {}).items()}
    put(tensors, scratch / _FILE, {"history": json.dumps(history)})


def resume(scratch: Path, weights: Mapping[str, Tensor], optimizers: Sequence[Optimizer]) -> list[float]:
    """Put the last state back, if there is one; one that is broken is set aside.

    Returns:
        The losses of the updates it holds.
    """
    kept = scratch / _FILE
    if not kept.exists():
        return []
    try:
        opened = safe_open(kept, framework="pt")
    except SafetensorError as error:
        _LOG.warning("%s: %s; it is set aside, and the training begins anew", kept, error)
        kept.replace(kept.with_suffix(".broken"))
        return []
    with opened as file:
        for key in file.keys():  # noqa: SIM118, a file of tensors is no mapping
            kind, _, name = key.partition("/")
            found, weight = file.get_tensor(key), weights[name]
            if kind == "weight":
                weight.data.copy_(found)
                continue
            (owner,) = (one for one in optimizers if _trains(one, weight))
            owner.state[weight][kind] = found if kind == "step" else found.to(weight.device)  # torch counts on the CPU
        history: list[float] = json.loads(file.metadata()["history"])
    return history


def _trains(optimizer: Optimizer, weight: Tensor) -> bool:
    return any(weight is trained for group in optimizer.param_groups for trained in group["params"])
