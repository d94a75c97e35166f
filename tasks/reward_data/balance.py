"""Which drafts become rows: no prompt twice, few negatives of a step, neither label too common."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain

from environments.types import Action, Kind
from tasks.reward_data.draft import Draft, Situation

_MOST = (7, 10)  # the largest share of one label, among all rows and among those of a kind of action
_MOST_OF_COMPLETE = (2, 3)


def choose(drafts: Iterable[Draft], max_negatives: int) -> list[Draft]:
    """The drafts to keep, in their order; surplus is dropped from the easiest.

    `complete` is balanced first and keeps its place among a step's negatives: a reward model that likes it
    everywhere ends every search at once.
    """
    single = _undisputed(drafts)
    kinds = {kind: [item for item in single if item.action.kind is kind] for kind in Kind}
    kinds[Kind.COMPLETE] = _level(kinds[Kind.COMPLETE], _MOST_OF_COMPLETE)
    capped = _cap(chain.from_iterable(kinds.values()), max_negatives)
    even = (_level([item for item in capped if item.action.kind is kind], _MOST) for kind in Kind)
    kept = {id(item) for item in _level(chain.from_iterable(even), _MOST)}
    return [item for item in single if id(item) in kept]


def _undisputed(drafts: Iterable[Draft]) -> list[Draft]:
    """One draft for each judgement, the hardest; none where two say the opposite of each other."""
    equal: dict[tuple[Situation, Action], list[Draft]] = defaultdict(list)
    for item in drafts:
        equal[item.situation, item.action].append(item)
    agreed = (same for same in equal.values() if len({item.label for item in same}) == 1)
    return [min(same, key=lambda item: item.ease) for same in agreed]


def _cap(drafts: Iterable[Draft], max_negatives: int) -> list[Draft]:
    """At most ``max_negatives`` negatives of each step of each trajectory, the hardest."""
    kept = []
    negatives: Counter[tuple[str, int]] = Counter()
    for item in sorted(drafts, key=lambda item: (item.action.kind is not Kind.COMPLETE, item.ease)):
        negatives[item.trajectory.id, item.step] += not item.label
        if item.label or negatives[item.trajectory.id, item.step] <= max_negatives:
            kept.append(item)
    return kept


def _level(drafts: Iterable[Draft], most: tuple[int, int]) -> list[Draft]:
    """Drop drafts of the commoner label until its share is at most ``most``.

    Each one dropped is the easiest of the kind of action where that label leads most, so that kinds even out
    too and no kind's lead turns round. A label without its opposite is left alone: its share cannot change.
    """
    groups: dict[tuple[Kind, bool], list[Draft]] = defaultdict(list)
    for item in sorted(drafts, key=lambda item: (item.ease, _lot(item))):
        groups[item.action.kind, item.label].append(item)
    count = {label: sum(len(group) for (_, of), group in groups.items() if of is label) for label in (True, False)}
    label = count[True] > count[False]
    while count[not label] and count[label] * most[1] > sum(count.values()) * most[0]:
        kind = max(Kind, key=lambda kind: len(groups[kind, label]) - len(groups[kind, not label]))
        groups[kind, label].pop()
        count[label] -= 1
    return [item for group in groups.values() for item in group]


def _lot(item: Draft) -> bytes:
    """A fixed draw among the equally easy, so that no goal pays for its place in the alphabet."""
    return hashlib.sha256(f"{item.trajectory.id}#{item.step} {item.action}".encode()).digest()
