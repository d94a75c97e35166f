"""What an interrupted training goes on from: weights, the optimizers' moments and the losses so far, in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

_FILE = "checkpoint.safetensors"


def put(tensors: Mapping[str, Tensor], file: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors into a file that is whole or absent: put in place by a rename."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".part")
    save_file(dict(tensors), aside, metadata)
    aside.replace(file)


def save(scratch: Path, weights: Mapping[str, Tensor], optimizers: Sequence[Optimizer], history: list[float]) -> None:
    """Write the state after the last update."""
    tensors = {f"weight/{name}": weight.detach() for name, weight in weights.items()}
    for name, weight in weights.items():
        for optimizer in optimizers:
            tensors |= {f"{key}/{name}": value for key, value in optimizer.state.get(weight, {}).items()}
    put(tensors, scratch / _FILE, {"history": json.dumps(history)})


def resume(scratch: Path, weights: Mapping[str, Tensor], optimizers: Sequence[Optimizer]) -> list[float]:
    """Put the last state back, if there is one. Returns the losses of the updates it holds."""
    if not (scratch / _FILE).exists():
        return []
    with safe_open(scratch / _FILE, framework="pt") as file:
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
