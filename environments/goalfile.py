"""What all forms of a goal file have in common: reading, goals, texts with values, and one line for what is wrong.

In texts ``{name}`` stands for a value of the goal instance, which the seed chooses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from environments.types import Goal, GoalError

Value = str | int
Values = Mapping[str, Value]
Word = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")]
Form = TypeVar("Form", bound=BaseModel)
_GOALS = ((), ("goals",), ("android", "goals"))  # the keys of the list of goals, in each form


class Section(BaseModel):
    """A part of a file: frozen, and without keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Entry(Section):
    """A goal in a file."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    tier: Annotated[int, Field(ge=1, le=4)]
    max_steps: Annotated[int, Field(ge=1)]

    def goal(self, world: str, page: str) -> Goal:
        """The goal, in a world and on a page there."""
        return Goal(self.id, world, page, self.tier, self.max_steps)


class Worded(Entry):
    """A goal in words; the seed chooses one of each of its ``values``."""

    instruction: Word
    values: dict[Name, Annotated[list[Value], Field(min_length=1)]] = {}

    def choose(self, seed: int) -> dict[str, Value]:
        """The values of an instance: each drawn by the goal's id and the seed."""
        chooser = random.Random(f"{self.id}/{seed}")
        return {name: chooser.choice(options) for name, options in self.values.items()}


def read(file: Path) -> Any:
    """The content of a goal file.

    Raises:
        GoalError: in one line, when it is not there or no YAML.
    """
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoalError(f"{file}: the goal file cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise GoalError(f"{file}: not YAML: {' '.join(str(error).split())}") from error


def check(form: type[Form], file: Path, content: Any) -> Form:
    """The content of a file in its form.

    Raises:
        GoalError: in one line, when it has not; it names the goal, the key, its value and the rule.
    """
    try:
        return form.model_validate(content)
    except ValidationError as error:
        raise GoalError(f"{file}: {_first_wrong(content, error)}") from error


def require(template: Any, known: Collection[str], what: str) -> None:
    """Raise ValueError unless each ``{name}`` in a text, or in the texts of a list or mapping, is known."""
    if isinstance(template, dict | list):
        for item in template.values() if isinstance(template, dict) else template:
            require(item, known, what)
    elif isinstance(template, str) and (unknown := _names(template) - set(known)):
        there_is = ", ".join(sorted(known)) or "no value"
        raise ValueError(f"{what}: {{{min(unknown)}}} is not known; there is {there_is}; {{{{ and }}}} mean braces")


def fill(template: Any, values: Values, quote: Callable[[str], str] = str) -> Any:
    """A text with its ``{name}``s replaced by quoted values, also inside lists and mappings."""
    if isinstance(template, str):
        return template.format_map({name: quote(str(value)) for name, value in values.items()})
    if isinstance(template, list):
        return [fill(item, values, quote) for item in template]
    if isinstance(template, dict):
        return {key: fill(item, values, quote) for key, item in template.items()}
    return template


def _names(template: str) -> set[str]:
    """What stands in braces, together with conversion and format, which are for no one."""
    return {
        name + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
        for _, name, form, conversion in Formatter().parse(template)
        if name is not None
    }


def _first_wrong(content: Any, error: ValidationError) -> str:
    """The first thing that is wrong. What stands in the list of goals is named by the goal's id."""
    first = error.errors()[0]
    path, named = first["loc"], ""
    at = next((at for at, key in enumerate(path) if isinstance(key, int)), None)
    if at is not None and path[:at] in _GOALS:
        entry = reduce(getitem, path[: at + 1], content)
        named = f"goal {entry.get('id', 'without an id') if isinstance(entry, dict) else 'without an id'}: "
        path = path[at + 1 :]
    if first["type"] == "value_error":  # a rule over several keys: it names them
        return f"{named}{first['ctx']['error']}"
    return f"{named}{'.'.join(map(str, path)) or 'goal'}={first['input']!r}: {first['msg']}"
