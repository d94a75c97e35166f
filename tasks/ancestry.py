"""What made this: the ancestry of anything a round makes, from git and DVC alone.

Every round's ``dvc.lock`` says which content (md5) each stage read and wrote. Equal md5 means equal content,
so a model copied into ``data/state`` is known by the stage that first wrote it, in whichever round that was.
A part of ``data/state`` that no stage wrote as such (the corpus) comes from the state around it, and that one
from an earlier ``decide``. Walking back ends at the demonstrations and the base. It works in a fresh clone,
without MLflow.
"""

from __future__ import annotations

import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from tasks.errors import RatchetError, WorkspaceError
from tasks.files import DEMONSTRATIONS, REHEARSAL, ROUND, SEED, STATE
from tasks.versions import Artifact, StageRecord, commit_of, round_tags, show, tag_of

WORKSPACE = "workspace"
FORMS = (
    "a model version (ratchet-agent/3, agent@champion), 6 or more digits of an md5, "
    "a trajectory (round-0001/click-button/10003/2, seed/click-button/3), a round (round-0001, 1) "
    "or a Prefect flow run (its id)"
)
_STATE = STATE.as_posix()
_Read = Callable[[str, str], str | None]


@dataclass(frozen=True)
class Snapshot:
    """The stages of one round as its lock file has them, and the md5 of the state it started from."""

    round: str
    commit: str
    records: tuple[StageRecord, ...]
    state: str | None


@dataclass(eq=False)
class Stage:
    """One execution of a stage, and what it read under which path.

    The same record in a later lock file is the same execution, not run again.
    """

    name: str
    round: str
    era: int
    commit: str
    params: dict[str, object]
    inputs: dict[str, Data]

    def __str__(self) -> str:
        return f"{self.name}  {self.round}  commit {self.commit[:8]}"


@dataclass(eq=False)
class Data:
    """Content under one md5, as one stage made it under this path; given from outside when no stage did."""

    path: str
    md5: str
    made_by: Stage | None = None
    part_of: Data | None = None

    @property
    def maker(self) -> Stage | None:
        """The stage that made it, or made what it is a part of."""
        return self.made_by or (self.part_of.maker if self.part_of else None)

    def __str__(self) -> str:
        return f"{self.path}  {self.md5[:8]}"


@dataclass
class Branch:
    """A line of the picture and the lines under it."""

    label: str
    children: list[Branch] = field(default_factory=list)


class Graph:
    """Data and the stages between, over all rounds.

    A stage's inputs are in the graph before the stage and its outputs after it, so there is no cycle, even
    where a stage writes what it read.
    """

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self.by_md5: dict[str, list[Data]] = {}
        self.outs: dict[tuple[str, str], Data] = {}
        self.commits: dict[str, str] = {}
        self._stages: dict[str, tuple[Stage, dict[str, Data]]] = {}
        for snapshot in snapshots:
            self._add(snapshot)

    def find(self, prefix: str) -> list[Data]:
        """The data whose md5 begins so, oldest first."""
        return [data for md5, found in self.by_md5.items() if md5.startswith(prefix) for data in found]

    def ends(self, round_: str) -> list[Data]:
        """What the stages run in a round made and none of them read: its results."""
        stages = [stage for stage, _ in self._stages.values() if stage.round == round_]
        read = {id(data) for stage in stages for data in stage.inputs.values()}
        outs = [data for _, made in self._stages.values() for data in made.values()]
        return [data for data in outs if data.made_by in stages and id(data) not in read]

    def _add(self, snapshot: Snapshot) -> None:
        self.commits[snapshot.round] = snapshot.commit
        made: dict[str, Data] = {}
        for record in causal(snapshot.records):
            from_state = any(_inside(dep.path, _STATE) for dep in record.deps)
            if snapshot.state and from_state and _STATE not in made:
                made[_STATE] = self._input(Artifact(_STATE, snapshot.state, 0), made)
            made |= self._outputs(record, snapshot, made)
        self.outs |= {(snapshot.round, path): data for path, data in made.items()}

    def _outputs(self, record: StageRecord, snapshot: Snapshot, made: dict[str, Data]) -> dict[str, Data]:
        content = [record.name, _ids(record.deps), _ids(record.outs), record.params]
        key = json.dumps(content, sort_keys=True, default=str)
        if key not in self._stages:
            inputs = {dep.path: self._input(dep, made) for dep in record.deps}
            seed = all(_inside(out.path, SEED.as_posix()) for out in record.outs)
            round_, era = ("seed", 0) if seed else (snapshot.round, len(self.commits))
            stage = Stage(record.name, round_, era, snapshot.commit, record.params, inputs)
            outs = {out.path: self._new(Data(out.path, out.md5, made_by=stage)) for out in record.outs}
            self._stages[key] = stage, outs
        return self._stages[key][1]

    def _input(self, artifact: Artifact, made: dict[str, Data]) -> Data:
        """Made here in this round; else the oldest equal content; else a part of its holder; else given."""
        own = made.get(artifact.path)
        if own is not None and own.md5 == artifact.md5:
            return own
        if known := self.by_md5.get(artifact.md5):
            return known[0]
        holder = next((data for path, data in made.items() if _inside(artifact.path, path)), None)
        return self._new(Data(artifact.path, artifact.md5, part_of=holder))

    def _new(self, data: Data) -> Data:
        self.by_md5.setdefault(data.md5, []).append(data)
        return data


def snapshots(read: _Read, tags: Sequence[str], commit_of: Callable[[str], str]) -> Iterator[Snapshot]:
    """The snapshot of each round, from ``read(rev, path)``: the text of a file at a revision, or None.

    Raises:
        WorkspaceError: when a lock file cannot be read as one.
    """
    for tag in tags:
        lock, state = read(tag, "dvc.lock"), read(tag, f"{_STATE}.dvc")
        if lock is not None:
            try:
                yield Snapshot(tag, commit_of(tag), parse(lock), _state(state))
            except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
                raise WorkspaceError(
                    f"{tag}: dvc.lock or {_STATE}.dvc is not as DVC writes it ({error!r}). See: git show {tag}:dvc.lock"
                ) from error


def parse(lock: str) -> tuple[StageRecord, ...]:
    """The stages of a ``dvc.lock``."""
    return tuple(
        StageRecord(
            name,
            deps=_artifacts(entry.get("deps", [])),
            outs=_artifacts(entry.get("outs", [])),
            params={key: value for file in entry.get("params", {}).values() for key, value in file.items()},
        )
        for name, entry in (_yaml(lock).get("stages") or {}).items()
    )


def causal(records: Sequence[StageRecord]) -> list[StageRecord]:
    """The stages of a lock file in an order they can have run in; the seed before what reads the state."""
    by_name = {record.name: record for record in records}
    needs = {
        record.name: [
            maker.name
            for maker in records
            if maker is not record and any(_feeds(out, dep) for out in maker.outs for dep in record.deps)
        ]
        for record in records
    }
    return [by_name[name] for name in TopologicalSorter(needs).static_order()]


def grow(label: str, roots: Sequence[Data]) -> Branch:
    """The picture of what made ``roots``: a section a round, the newest first, down to the seed.

    In a section everything is opened once, where it is nearest to a root; elsewhere its maker is only named.
    """
    top = Branch(label, [Branch(str(data)) for data in roots if data.maker is None])
    waiting = [data for data in roots if data.maker]
    while waiting:
        newest = max((data.maker for data in waiting if data.maker), key=lambda stage: stage.era)
        here = [data.part_of or data for data in waiting if data.maker and data.maker.era == newest.era]
        section, older = _section(newest, dict.fromkeys(here))
        top.children.append(section)
        waiting = [data for data in waiting if data.maker and data.maker.era < newest.era] + older
    return top


def _section(newest: Stage, roots: Iterable[Data]) -> tuple[Branch, list[Data]]:
    """What one round did towards ``roots``, and the data of older rounds that it built on."""
    section = Branch(newest.round)
    older: list[Data] = []
    opened: set[Stage] = set()
    queue = deque((section, root.path, root) for root in roots)
    while queue:
        parent, path, data = queue.popleft()
        branch = Branch(f"{path}  {data.md5[:8]}")
        parent.children.append(branch)
        stage = data.maker
        if stage is None:
            continue
        if stage.era < newest.era or stage in opened:
            branch.label += f"  from {stage.name} of {stage.round}"
            older += [data] * (stage.era < newest.era)
        elif data.part_of is not None:
            queue.append((branch, data.part_of.path, data.part_of))
        else:
            opened.add(stage)
            branch.children.append(_stage_branch(stage))
            queue.extend((branch.children[-1], *read) for read in stage.inputs.items())
    return section, older


def render(branch: Branch) -> Tree:
    """The picture as a rich tree."""
    tree = Tree(Text(branch.label))
    for child in branch.children:
        tree.children.append(render(child))
    return tree


def text(branch: Branch) -> str:
    """The picture as plain lines."""
    page = io.StringIO()
    Console(file=page, width=1000, color_system=None).print(render(branch), soft_wrap=True)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def flat(values: object, prefix: str = "") -> dict[str, object]:
    """Nested mappings as one, keys joined by dots."""
    if not isinstance(values, dict):
        return {prefix: values}
    joined = (flat(value, f"{prefix}.{key}" if prefix else str(key)) for key, value in values.items())
    return {key: value for part in joined for key, value in part.items()}


def load(round_: str = WORKSPACE, commit: str = "not committed") -> Graph:
    """The graph of the checkout: every tagged round, then, as ``round_``, what its ``dvc.lock`` adds."""

    def read(rev: str, path: str) -> str | None:
        if rev == round_:
            return Path(path).read_text() if Path(path).exists() else None
        return show(rev, path)

    tags = [tag for tag in round_tags() if tag != round_]
    return Graph(snapshots(read, [*tags, round_], lambda rev: commit if rev == round_ else commit_of(rev)))


def describe(x: str) -> str:
    """The ancestry of a model version, an md5, a trajectory, a round or a Prefect flow run, as text.

    Raises:
        RatchetError: when nothing of that name is known.
    """
    graph = load()
    if re.fullmatch(r"(round-)?\d{1,5}", x):
        return text(_round(graph, tag_of(int(x.removeprefix("round-")))))
    if re.fullmatch(r"[0-9a-f]{6,32}(\.dir)?", x):
        return text(_content(graph, x, x))
    if re.fullmatch(r"(seed|round-\d{4,})(/[^/]+){2,}", x):
        return text(_trajectory(graph, x))
    from tasks import lineage

    if re.fullmatch(r"[\w-]+(/\d+|@[\w-]+)", x):
        return text(_content(graph, lineage.resolve(x), x))
    number = lineage.round_of(x)
    if number is None:
        raise RatchetError(f"{x!r} names nothing known here. Known forms: {FORMS}")
    return text(_round(graph, tag_of(number)))


def _round(graph: Graph, tag: str) -> Branch:
    if tag not in graph.commits:
        raise RatchetError(f"{tag}: no such tag here; there is {_rounds(graph)}. Perhaps: git fetch --tags")
    return grow(f"{tag}  commit {graph.commits[tag][:8]}", graph.ends(tag))


def _content(graph: Graph, md5: str, label: str) -> Branch:
    found = graph.find(md5)
    if not found:
        raise RatchetError(
            f"{label}: no dvc.lock of {_rounds(graph)} has an md5 {md5}. Perhaps: git fetch --tags. "
            f"Known forms: {FORMS}"
        )
    if len({data.md5 for data in found}) > 1:
        raise RatchetError(f"{label}: begins several md5s: {', '.join(map(str, found))}; give more digits")
    return grow(label, found)


def _trajectory(graph: Graph, x: str) -> Branch:
    origin = x.partition("/")[0]
    path = _folder(x).as_posix()
    found = [data for (tag, out), data in graph.outs.items() if out == path and origin in ("seed", tag)]
    if not found:
        raise RatchetError(f"{x}: no {path} of {origin} in {_rounds(graph)}. Perhaps: git fetch --tags")
    return grow(x, list(dict.fromkeys(found)))


def _folder(trajectory: str) -> Path:
    """Where a trajectory of this id is, as the stage that made it names it."""
    if trajectory.startswith("seed/"):
        return REHEARSAL if trajectory.startswith("seed/exercise/") else DEMONSTRATIONS
    evaluated = trajectory.endswith(("/champion", "/challenger"))
    return ROUND / ("evaluation" if evaluated else "explored")


def _rounds(graph: Graph) -> str:
    tags = [tag for tag in graph.commits if tag != WORKSPACE]
    return f"{tags[0]} to {tags[-1]}" if tags else "no round"


def _stage_branch(stage: Stage) -> Branch:
    """A stage, with its params where ancestry ends: it reads nothing that another one made."""
    branch = Branch(str(stage))
    if not any(data.maker or data.part_of for data in stage.inputs.values()):
        branch.children = [Branch(f"{key} = {value}") for key, value in flat(stage.params).items()]
    return branch


def _feeds(out: Artifact, dep: Artifact) -> bool:
    first_state = (SEED / "state").as_posix()
    wanted = first_state if _inside(dep.path, _STATE) else dep.path
    return _inside(wanted, out.path) or _inside(out.path, wanted)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _ids(artifacts: Sequence[Artifact]) -> list[tuple[str, str]]:
    return [(artifact.path, artifact.md5) for artifact in artifacts]


def _artifacts(entries: Sequence[dict[str, Any]]) -> tuple[Artifact, ...]:
    return tuple(Artifact(entry["path"], entry["md5"], entry.get("size", 0)) for entry in entries)


def _state(pointer: str | None) -> str | None:
    return None if pointer is None else str(_yaml(pointer)["outs"][0]["md5"])


def _yaml(document: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(document, Loader=yaml.CSafeLoader)
    return loaded
