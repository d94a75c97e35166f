"""What a round is to try, as stage ``propose`` writes it and later stages read it: ``data/round/instances.json``.

``{"round": 3, "accept": 0.85, "instances": [{"goal": "enter-text", "seed": 30000, "temperature": 2.0}, ...]}``; what is
as the parameters say is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from tasks.files import ROUND, read_json, write_json
from tasks.params import Params

PLAN = ROUND / "instances.json"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A goal instance to explore.

    ``instruction`` stands in place of the world's own where it is not empty, ``max_steps`` and ``temperature`` in place
    of the goal's and the parameters' where they are not None.
    """

    goal: str
    seed: int
    instruction: str = ""
    max_steps: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The proposals of a round; ``accept`` stands in place of the parameters' where it is not None."""

    round: int
    instances: Sequence[Proposal]
    accept: float | None = None

    @classmethod
    def read(cls) -> Self:
        """The plan of the round under way."""
        plan = read_json(PLAN)
        return cls(plan["round"], [Proposal(**one) for one in plan["instances"]], plan.get("accept"))

    def write(self) -> None:
        """Write it."""
        about = _said({"round": self.round, "accept": self.accept})
        write_json(PLAN, {**about, "instances": [_said(asdict(one)) for one in self.instances]})

    def applied(self, params: Params) -> Params:
        """The parameters with what the plan says of accepting."""
        if self.accept is None:
            return params
        return params.model_copy(update={"filter": params.filter.model_copy(update={"accept": self.accept})})


def _said(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value not in (None, "")}
