"""What a stage reads of the params, against what dvc.yaml says of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from tasks.params import Params, Section

GRAPH = yaml.safe_load((Path(__file__).parents[2] / "dvc.yaml").read_text())["stages"]


@contextmanager
def only_declared_params(stage: str) -> Iterator[None]:
    """Whatever is read meanwhile must be among the params of this stage: DVC would not run it again for others."""
    paths, read = _paths(Params), set[str]()

    def get(section: Section, name: str) -> object:
        value = object.__getattribute__(section, name)
        if not isinstance(value, Section) and (path := paths.get((type(section), name))):
            read.add(path)
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Section, "__getattribute__", get)
        yield
    declared = GRAPH[stage]["params"]
    others = sorted(key for key in read if not any(f"{key}.".startswith(f"{one}.") for one in declared))
    assert read, f"{stage} reads no params"
    assert not others, f"{stage} reads {', '.join(others)}, and dvc.yaml does not say so"


def _paths(model: type[BaseModel], under: str = "") -> dict[tuple[type, str], str]:
    """Each field as the file names it. A section is known by its class, so of two of one class it is the last."""
    found = {}
    for name, field in model.model_fields.items():
        path, kind = f"{under}{field.alias or name}", field.annotation
        found[model, name] = path
        if isinstance(kind, type) and issubclass(kind, Section):
            found |= _paths(kind, f"{path}.")
    return found
