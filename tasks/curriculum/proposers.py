"""New goals from solved ones: what else can be asked for on screens that are known.

PAE (Zhou et al. 2024) and WebRL (Qi et al. 2024) propose by a language model; here parameters are recombined, solved
goals are composed, or a model is asked, behind the same interface. The world cannot judge such a
goal: the reward model alone does.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from environments.types import End, Episode
from tasks.acceptance import Bar
from tasks.chat import Chat
from tasks.curriculum.plan import Proposal
from tasks.records import Trajectory
from tasks.reward_data.edit import edits

_REQUEST = """A user of a graphical interface asked for this, on the screen with these elements:

{instruction}

{elements}

Ask for something else that can be done on the same screen in as few steps, worded in the same way. Answer with the
instruction alone, in one line."""
_LONGEST = 300  # characters of an instruction that a model may propose


class Proposer(Protocol):
    """What proposes new goals."""

    def propose(self, solved: Trajectory) -> Proposal | None:
        """Something else to do where a path was solved; None where it knows nothing."""
        ...


class Recombined:
    """Puts another name of the screen in the place of one in the instruction (:mod:`tasks.reward_data.edit`)."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def propose(self, solved: Trajectory) -> Proposal | None:
        """See :class:`Proposer`."""
        found = [edit.instruction for edit in edits(solved, self._seed, Bar(0.0))]
        return _new(solved, random.Random(f"{self._seed}/{solved.id}").choice(found)) if found else None


class Composed:
    """Asks for two things one after the other, each of which was solved from the same screen.

    Only where the world goes on after the first: many close when their own goal is reached.
    """

    def __init__(self, solved: Iterable[Trajectory], seed: str) -> None:
        self._known = sorted((one for one in solved if one.episode.acts), key=lambda one: one.id)
        self._seed = seed

    def propose(self, solved: Trajectory) -> Proposal | None:
        """See :class:`Proposer`."""
        first = solved.episode
        others = [one.episode for one in self._known if _composable(first, one.episode)]
        if first.end is not End.COMPLETED or not others:
            return None
        then = random.Random(f"{self._seed}/{solved.id}").choice(others)
        steps = first.instance.goal.max_steps + then.instance.goal.max_steps
        return replace(_new(solved, f"{first.instruction.rstrip('. ')}. Then: {then.instruction}"), max_steps=steps)


class Asked:
    """Asks a language model on a server (:mod:`tasks.chat`)."""

    def __init__(self, model: str) -> None:
        self._chat = Chat(model)

    def propose(self, solved: Trajectory) -> Proposal | None:
        """See :class:`Proposer`. Raises ChatError when the server does not answer."""
        episode = solved.episode
        elements = "\n".join(element.line for element in episode.acts[0].observation.elements)
        request = _REQUEST.format(instruction=episode.instruction, elements=elements)
        choice = self._chat.ask([{"role": "user", "content": request}], temperature=1, max_tokens=100)
        said = " ".join((choice["message"]["content"] or "").split())
        return _new(solved, said) if 0 < len(said) <= _LONGEST and said != episode.instruction else None


def new_goals(
    solved: Iterable[Trajectory], proposer: Proposer, count: int, weights: Mapping[str, Fraction], seed: str
) -> list[Proposal]:
    """At most ``count`` new goals, one for each instance that a path solved, in the order of the paths drawn.

    Paths are drawn without replacement, those of a goal with a higher weight sooner (Efraimidis and Spirakis 2006);
    goals without a weight are left out.
    """
    chooser, found = random.Random(seed), dict[tuple[str, int], Proposal]()
    known = sorted((one for one in solved if one.episode.instance.goal.id in weights), key=lambda one: one.id)
    for path in _drawn(known, weights, chooser):
        instance = path.episode.instance
        if len(found) == count:
            break
        if (instance.goal.id, instance.seed) not in found and (new := proposer.propose(path)):
            found[instance.goal.id, instance.seed] = new
    return list(found.values())


def _drawn(known: Sequence[Trajectory], weights: Mapping[str, Fraction], chooser: random.Random) -> list[Trajectory]:
    lots = {one.id: chooser.random() ** (1 / max(1e-6, float(weights[one.episode.instance.goal.id]))) for one in known}
    return sorted(known, key=lambda one: -lots[one.id])


def _composable(first: Episode, then: Episode) -> bool:
    """Whether both began on the same screen of a world, and different things were asked for there."""
    worlds = {episode.instance.goal.world for episode in (first, then)}
    screens = {episode.acts[0].observation.elements for episode in (first, then)}
    return len(worlds) == len(screens) == 1 and first.instruction != then.instruction


def _new(solved: Trajectory, instruction: str) -> Proposal:
    instance = solved.episode.instance
    return Proposal(instance.goal.id, instance.seed, instruction)
