"""Ancestry over hand-made lock files, in a real git repository where git matters."""

import hashlib
import subprocess
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks import ancestry
from tasks.ancestry import Branch, Data, Graph, Stage
from tasks.errors import RatchetError, WorkspaceError

PIPELINE = yaml.safe_load((Path(__file__).parents[2] / "dvc.yaml").read_text())["stages"]
SEED = {"demonstrate", "base", "rehearse", "warm_agent", "warm_reward", "found"}
PARAMS = {"goals": "data/goals/miniwob.yaml", "base": {"package": "smol-weights", "version": "1.2"}}


def md5(content: str) -> str:
    return hashlib.md5(content.encode()).hexdigest() + (".dir" if "json" not in content else "")


def paths(entries: list[str | dict[str, object]]) -> list[str]:
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def lock(contents: dict[str, str]) -> str:
    """A dvc.lock of the real pipeline; a path whose content is not given has content of its own."""

    def files(stage: dict[str, list[str | dict[str, object]]], *kinds: str) -> list[dict[str, object]]:
        listed = [path for kind in kinds for path in paths(stage.get(kind, []))]
        return [{"path": path, "hash": "md5", "md5": md5(contents.get(path, path)), "size": 1} for path in listed]

    stages = {
        name: {
            "cmd": stage["cmd"],
            "deps": files(stage, "deps"),
            "params": {"params.yaml": {key: PARAMS[key] for key in stage.get("params", []) if key in PARAMS}},
            "outs": files(stage, "outs", "metrics", "plots"),
        }
        for name, stage in PIPELINE.items()
    }
    return yaml.safe_dump({"schema": "2.0", "stages": stages}, sort_keys=False)


def state(number: int, agent: str, reward: str) -> dict[str, str]:
    """The state that round ``number`` starts from."""
    whole = "data/seed/state" if number == 1 else f"state after {number - 1}"
    return {
        "data/state": whole,
        "data/state/agent": agent,
        "data/state/reward": reward,
        "data/state/corpus": f"corpus of {whole}",
        "data/state/curriculum.json": f"curriculum.json of {whole}",
    }


def round_contents(number: int, agent: str, reward: str) -> dict[str, str]:
    made = {path: f"{path} of {number}" for stage in PIPELINE.values() for path in paths(stage.get("outs", []))}
    made = {path: content for path, content in made.items() if path.startswith("data/round/")}
    return state(number, agent, reward) | made | {"data/round/state": f"state after {number}"}


def pointer(content: str) -> str:
    return yaml.safe_dump({"outs": [{"md5": md5(content), "size": 1, "path": "state", "hash": "md5"}]})


# Round 1 promotes its agent and not its reward model; round 2 the other way round.
ROUNDS = [
    round_contents(1, "data/seed/agent", "data/seed/reward"),
    round_contents(2, "data/round/agent of 1", "data/seed/reward"),
    round_contents(3, "data/round/agent of 1", "data/round/reward of 2"),
]


def graph_of(rounds: list[dict[str, str]]) -> Graph:
    locks = {f"round-{number:04d}": contents for number, contents in enumerate(rounds, 1)}

    def read(rev: str, path: str) -> str | None:
        return lock(locks[rev]) if path == "dvc.lock" else pointer(locks[rev]["data/state"])

    return Graph(ancestry.snapshots(read, list(locks), lambda rev: f"commit of {rev}"))


def sources(stage: Stage) -> Iterator[Stage]:
    for data in stage.inputs.values():
        if data.maker is not None:
            yield data.maker


def ancestors(data: Data) -> dict[tuple[str, str], Stage]:
    waiting, found = [data.maker], {}
    while waiting:
        stage = waiting.pop()
        if stage is not None and (stage.name, stage.round) not in found:
            found[stage.name, stage.round] = stage
            waiting += sources(stage)
    return found


def one(graph: Graph, content: str) -> Data:
    (data,) = graph.find(md5(content))
    return data


def in_seed(*names: str) -> set[tuple[str, str]]:
    return {(name, "seed") for name in names}


def in_round(number: int, names: str) -> set[tuple[str, str]]:
    return {(name, f"round-{number:04d}") for name in names.split()}


EXPLORE = "propose explore score filter validate"
ALL = f"{EXPLORE} attack train_agent train_reward evaluate decide"


def test_a_seed_model_comes_from_demonstrations_exercises_and_base_alone() -> None:
    agent, reward = (one(graph_of(ROUNDS), f"data/seed/{role}") for role in ("agent", "reward"))
    assert set(ancestors(agent)) == in_seed("warm_agent", "demonstrate", "rehearse", "base")
    assert set(ancestors(reward)) == in_seed("warm_reward", "demonstrate", "base")


def test_an_agent_comes_from_what_its_round_explored_and_not_from_its_evaluation() -> None:
    agent = one(graph_of(ROUNDS), "data/round/agent of 1")
    assert set(ancestors(agent)) == in_seed(*SEED) | in_round(1, f"{EXPLORE} train_agent")


def test_a_state_leads_to_every_stage_of_the_round_that_made_it() -> None:
    agent = one(graph_of(ROUNDS), "data/round/agent of 2")
    expected = in_seed(*SEED) | in_round(1, ALL) | in_round(2, f"{EXPLORE} train_agent")
    assert set(ancestors(agent)) == expected


def test_a_champion_is_known_by_the_stage_that_trained_it_rounds_ago() -> None:
    graph = graph_of(ROUNDS)
    trained = ancestors(one(graph, "data/round/agent of 3"))["train_agent", "round-0003"]
    assert str(trained.inputs["data/state/agent"].made_by) == "train_agent  round-0001  commit commit o"
    corpus = trained.inputs["data/state/corpus"]
    assert corpus.made_by is None
    assert corpus.part_of is one(graph, "state after 2")


def test_two_rounds_that_wrote_the_same_bytes_keep_their_own_makers() -> None:
    same = [contents | {"data/round/validation.json": "validation.json: all well"} for contents in ROUNDS]
    graph = graph_of(same)
    stages = ancestors(one(graph, "data/round/agent of 3"))
    read = stages["train_agent", "round-0003"].inputs["data/round/validation.json"]
    assert read.made_by is stages["validate", "round-0003"]


def test_a_stage_that_dvc_did_not_run_again_is_the_earlier_execution() -> None:
    rerun = ROUNDS[1] | {path: content for path, content in ROUNDS[0].items() if "instances" in path}
    rerun |= {path: ROUNDS[0][path] for path in ("data/state/curriculum.json", "data/state/corpus")}
    stages = ancestors(one(graph_of([ROUNDS[0], rerun]), "data/round/rows of 2"))
    assert ("propose", "round-0001") in stages
    assert ("propose", "round-0002") not in stages


def test_a_state_that_did_not_change_makes_no_cycle() -> None:
    kept = ROUNDS[0] | {"data/round/state": "data/seed/state"}
    (first, *_) = graph_of([kept, kept]).find(md5("data/seed/state"))
    assert set(ancestors(first)) == in_seed(*SEED)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "agent": st.sampled_from(["data/seed/agent", "data/round/agent of 1", "data/round/agent of 2", "lost"]),
                "same": st.sets(st.sampled_from(sorted(ROUNDS[0]))),
            }
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=40)
def test_whatever_the_locks_say_no_cycle_and_the_picture_is_what_is_reachable(drawn: list[dict]) -> None:
    rounds = [
        round_contents(number, choice["agent"], "data/seed/reward") | dict.fromkeys(choice["same"], "same")
        for number, choice in enumerate(drawn, 1)
    ]
    graph = graph_of(rounds)
    end = graph.outs[f"round-{len(rounds):04d}", "data/round/state"]
    stages = ancestors(end).values()
    assert list(TopologicalSorter({stage: set(sources(stage)) for stage in stages}).static_order())
    shown = [line for line in labels(ancestry.grow("x", [end])) if "  commit " in line]
    assert sorted(shown) == sorted(map(str, stages))


def labels(branch: Branch) -> Iterator[str]:
    yield branch.label
    for child in branch.children:
        yield from labels(child)


def test_a_lock_file_that_is_none_is_named_with_its_round() -> None:
    with pytest.raises(WorkspaceError, match=r"round-0001: dvc.lock .* is not as DVC writes it .*git show round-0001"):
        list(ancestry.snapshots(lambda *_: "stages: [1, 2]", ["round-0001"], str))


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    (tmp_path / "data").mkdir()
    for number, contents in enumerate(ROUNDS[:2], 1):
        (tmp_path / "dvc.lock").write_text(lock(contents))
        (tmp_path / "data/state.dvc").write_text(pointer(contents["data/state"]))
        git("add", ".")
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", f"Round {number}")
        git("tag", f"round-{number:04d}")
    (tmp_path / "dvc.lock").write_text(lock(ROUNDS[2]))
    (tmp_path / "data/state.dvc").write_text(pointer(ROUNDS[2]["data/state"]))
    return tmp_path


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def short(content: str) -> str:
    return md5(content)[:8]


@pytest.mark.usefixtures("repository")
def test_the_picture_of_a_seed_model() -> None:
    commit = git("rev-parse", "round-0001")[:8]
    prefix = md5("data/seed/agent")[:6]
    assert ancestry.describe(prefix).splitlines() == [
        prefix,
        "└── seed",
        f"    └── data/seed/agent  {short('data/seed/agent')}",
        f"        └── warm_agent  seed  commit {commit}",
        f"            ├── data/seed/base  {short('data/seed/base')}",
        f"            │   └── base  seed  commit {commit}",
        "            │       ├── base.package = smol-weights",
        "            │       ├── base.version = 1.2",
        f"            │       └── data/base  {short('data/base')}",
        f"            ├── data/seed/demonstrations  {short('data/seed/demonstrations')}",
        f"            │   └── demonstrate  seed  commit {commit}",
        "            │       ├── goals = data/goals/miniwob.yaml",
        f"            │       └── data/goals  {short('data/goals')}",
        f"            └── data/seed/rehearsal  {short('data/seed/rehearsal')}",
        f"                └── rehearse  seed  commit {commit}",
        f"                    └── data/seed/base  {short('data/seed/base')}  from base of seed",
    ]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("x", ["round-0002", "2"])
def test_a_round_shows_what_it_made_and_the_round_before(x: str) -> None:
    picture = ancestry.describe(x)
    assert picture.splitlines()[0] == f"round-0002  commit {git('rev-parse', 'round-0002')[:8]}"
    sections = [line for line in picture.splitlines() if line[0] in "├└"]
    assert sections == ["├── round-0002", "├── round-0001", "└── seed"]
    for stage in ALL.split():
        assert picture.count(f"── {stage}  round-0002  commit ") == 1


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("x", "stage"),
    [
        ("round-0002/click-button/10003/2", "explore  round-0002"),
        ("round-0002/click-option/1000001000/challenger", "evaluate  round-0002"),
        ("round-0002/click-option/1000001000/champion", "evaluate  round-0002"),
        ("seed/click-button/3", "demonstrate  seed"),
        ("seed/exercise/0/0", "rehearse  seed"),
        (md5("data/round/agent of 3")[:32], "train_agent  workspace  commit not comm"),
    ],
)
def test_a_trajectory_and_a_model_of_the_round_under_way(x: str, stage: str) -> None:
    picture = ancestry.describe(x)
    assert picture.splitlines()[0] == x
    assert f"── {stage}" in picture.splitlines()[3]


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("9", "round-0009: no such tag here; there is round-0001 to round-0002"),
        ("0123456789", "0123456789: no dvc.lock of round-0001 to round-0002 has an md5 0123456789"),
        ("round-0009/click-button/1/1", "no data/round/explored of round-0009"),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_known(x: str, message: str) -> None:
    with pytest.raises(RatchetError, match=message):
        ancestry.describe(x)
