"""Web applications as worlds: a real server with a real database, judged by it and put back for each episode."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from environments import replay
from environments.browser.chromium import WAIT_MS
from environments.listing import LONGEST_TEXT, MOST_ELEMENTS
from environments.registry import load_goals, open_world
from environments.types import COMPLETE, Action, EpisodeOver, Goal, Kind, Observation, World, WorldError
from environments.web.app import WebApp

SEED = 3
WAIT = Action(Kind.WAIT)
Change = Callable[[dict[str, object]], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application with its pristine data."""
    folder = tmp_path_factory.mktemp("web") / "notes"
    shutil.copytree(Path(__file__).with_name("notes"), folder)
    (folder / "data").mkdir()
    with closing(sqlite3.connect(folder / "data/notes.db")) as database, database:
        database.execute("CREATE TABLE note (text TEXT)")
        database.execute("INSERT INTO note VALUES ('water the plants')")
    return folder


@pytest.fixture(scope="module")
def goal(folder: Path) -> Goal:
    return _goal(folder)


def _goal(folder: Path, name: str = "goals", /, **changes: object) -> Goal:
    """The goal of the file with other values for some keys of the application or of the goal."""
    content = yaml.safe_load((folder / "goals.yaml").read_text())
    content["app"]["start"] = content["app"]["start"].replace("python3", sys.executable)
    for key, value in changes.items():
        section = content["goals"][0] if key in ("path", "success", "setup", "values") else content["app"]
        section[key] = value
    path = folder / f"{name}-made.yaml"
    path.write_text(yaml.safe_dump(content))
    return load_goals(path)["add-note"]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = open_world("environments.web.app:WebApp")
    yield world
    world.close()


@pytest.fixture
def fresh_world() -> Iterator[World]:
    world = open_world("environments.web.app:WebApp")
    yield world
    world.close()


def _click(seen: Observation, kind: str, text: str) -> Action:
    found = [each for each in seen.elements if (each.kind, each.text) == (kind, text)]
    assert found, f"no {kind} {text!r} among {[each.line for each in seen.elements]}"
    return Action.click(found[0])


def _texts(seen: Observation) -> list[str]:
    return [element.text for element in seen.elements]


def _solve(world: World, goal: Goal, seed: int = SEED) -> list[Observation]:
    """Add the note, by what is on the screen; every screen from the first to the last."""
    start = world.reset(goal, seed)
    text = start.instruction.partition('"')[2].rpartition('"')[0]
    seen = [start.observation]
    seen.append(world.step(_click(seen[-1], "link", "New note")))
    seen.append(world.step(_click(seen[-1], "textbox", "")))
    seen.append(world.step(Action(Kind.TYPE, text=text)))
    seen.append(world.step(_click(seen[-1], "button", "Save")))
    return seen


def test_a_goal_is_reached_by_what_is_on_the_screen(world: World, goal: Goal) -> None:
    seen = _solve(world, goal)
    assert world.verdict()
    assert not world.ended
    assert world.step(COMPLETE) == seen[-1]
    assert world.verdict()
    with pytest.raises(EpisodeOver, match="call reset first"):
        world.step(WAIT)


def test_doing_nothing_reaches_nothing(world: World, goal: Goal) -> None:
    start = world.reset(goal, SEED)
    assert not world.verdict()
    assert world.step(COMPLETE) == start.observation
    assert world.ended
    assert not world.verdict()


def test_the_same_actions_give_the_same_bytes_on_any_server(world: World, fresh_world: World, goal: Goal) -> None:
    seen = _solve(world, goal)
    assert seen == _solve(world, goal)
    assert seen == _solve(fresh_world, goal)
    assert seen != _solve(world, goal, SEED + 1)


def test_what_does_not_replay_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "EPISODES", 1)
    monkeypatch.setattr(replay, "STEPS", 2)
    assert replay.differences(_goal(folder, "hidden")) == []
    where, before, after = replay.differences(_goal(folder, "shown", hide=[]))
    assert where == "seed 0, after the reset:"
    assert before.startswith('- text "served at ')
    assert after.startswith('+ text "served at ')


@pytest.mark.parametrize(
    "reset",
    [
        [],
        [{"restore": "notes.db"}],
        [{"sql": "DELETE FROM note WHERE text != 'water the plants'"}],
        [{"command": "cp data/notes.db {data}/notes.db"}],
    ],
    ids=["restart", "restore", "sql", "command"],
)
def test_an_episode_leaves_nothing_for_the_next(folder: Path, fresh_world: World, reset: object) -> None:
    goal = _goal(folder, "reset", reset=reset)
    first = fresh_world.reset(goal, SEED)
    last = _solve(fresh_world, goal)[-1]
    assert fresh_world.verdict()
    assert _texts(first.observation)[2:4] == ["water the plants", _texts(last)[4] + " (old)"]
    assert fresh_world.reset(goal, SEED) == first
    assert not fresh_world.verdict()


def test_restoring_a_database_in_wal_mode_leaves_the_pristine_folder_as_it_is(
    folder: Path, tmp_path: Path, fresh_world: World
) -> None:
    """SQLite makes files beside one that it reads, and a stage would take them for edits; rows in its log are read."""
    shutil.copytree(folder, tmp_path / "wal")
    data = tmp_path / "wal/data"
    goal = _goal(tmp_path / "wal", "wal", reset=[{"restore": "notes.db"}])
    with closing(sqlite3.connect(data / "notes.db")) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
    assert "water the plants" in _texts(fresh_world.reset(goal, SEED).observation)
    assert [file.name for file in data.iterdir()] == ["notes.db"]

    with closing(sqlite3.connect(data / "notes.db", isolation_level=None)) as database:
        database.execute("INSERT INTO note VALUES ('feed the cat')")
        shutil.copytree(data, tmp_path / "copy")
    shutil.copytree(tmp_path / "copy", data, dirs_exist_ok=True)
    assert (data / "notes.db-wal").stat().st_size
    assert "feed the cat" in _texts(fresh_world.reset(goal, SEED).observation)


def test_two_worlds_at_once_do_not_meet(world: World, fresh_world: World, goal: Goal) -> None:
    world.reset(goal, SEED)
    _solve(fresh_world, goal)
    assert fresh_world.verdict()
    assert not world.verdict()


def test_a_check_may_ask_the_server_or_the_page(folder: Path, fresh_world: World) -> None:
    rest = _goal(folder, "rest", success={"rest": "/api/notes", "at": "2.text", "equals": "{text}"})
    _solve(fresh_world, rest)
    assert fresh_world.verdict()
    fresh_world.reset(rest, SEED)
    assert not fresh_world.verdict()
    page = _goal(folder, "page", success={"page": "document.body.innerText.split('\\n').includes(values.text)"})
    _solve(fresh_world, page)
    assert fresh_world.verdict()
    fresh_world.reset(page, SEED)
    assert not fresh_world.verdict()


def test_a_check_may_name_a_number(folder: Path, fresh_world: World) -> None:
    """The database counts in numbers; the value is one, and stays one where it stands alone."""
    values = {**yaml.safe_load((folder / "goals.yaml").read_text())["goals"][0]["values"], "left": [3]}
    check = {"sql": "SELECT count(*) FROM note", "equals": "{left}"}
    counted = _goal(folder, "counted", success=check, values=values)
    fresh_world.reset(counted, SEED)
    assert not fresh_world.verdict()
    _solve(fresh_world, counted)
    assert fresh_world.verdict()


def test_set_up_may_use_a_request(folder: Path, fresh_world: World) -> None:
    hook = {"rest": "/notes", "method": "POST", "body": {"text": "sent: {text}"}}
    start = fresh_world.reset(_goal(folder, "rest-setup", setup=[hook]), SEED)
    assert f"sent: {start.instruction.partition(chr(34))[2][:-2]}" in _texts(start.observation)


def test_who_is_logged_in_and_what_is_stored_is_the_same_for_each_episode(fresh_world: WebApp, goal: Goal) -> None:
    assert "theme=dark; user=ann" in _texts(fresh_world.reset(goal, SEED).observation)
    _run(fresh_world, "document.cookie = 'mine=1'; localStorage.mine = sessionStorage.mine = 1")
    fresh_world.step(_click(fresh_world.step(WAIT), "link", "New note"))
    assert _run(fresh_world, "[document.cookie.includes('mine'), localStorage.mine, sessionStorage.mine]") == [
        True, "1", "1",
    ]  # fmt: skip
    fresh_world.reset(goal, SEED)
    assert _run(fresh_world, "[document.cookie, localStorage.mine, sessionStorage.mine]") == [
        "theme=dark; user=ann", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "title"),
    [
        ("link", "new tab", "new"),
        ("button", "window", "new"),
        ("link", "redirect", "new"),
        ("button", "later", "new"),
        ("button", "ask", "new"),
        ("button", "stop", "new"),
        ("link", "download", "ways"),
        ("link", "elsewhere", "ways"),
        ("link", "mail", "ways"),
        ("link", "here", "ways"),
    ],
)
def test_every_way_on_stays_in_the_application(folder: Path, world: World, kind: str, text: str, title: str) -> None:
    start = world.reset(_goal(folder, "ways", path="/ways"), SEED)
    assert _texts(world.step(_click(start.observation, kind, text)))[0] == title
    assert _texts(world.step(WAIT))[0] == title


def test_time_stands_still_while_the_server_works(folder: Path, world: World) -> None:
    goal = _goal(folder, "live", path="/live")
    seen = world.step(_click(world.reset(goal, SEED).observation, "button", "load"))
    said = [text for text in _texts(seen) if " at " in text]
    assert [text.rpartition(" at ")[0] for text in said] == ["slow 2", "fast 2", "after slow"]
    assert int(said[2].split()[-1]) - int(said[0].split()[-1]) == 50


def test_nothing_else_on_the_machine_is_reached(folder: Path, world: World) -> None:
    world.reset(_goal(folder, "reach"), SEED)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for host in ("127.0.0.1", "app.localhost", "localhost"):
            address = f"{host}:{port}"
            assert _run(world, f"fetch('http://{address}/').then(() => 'reached', () => 'refused')") == "refused"
            closed = f"new Promise((done) => {{ new WebSocket('ws://{address}/').onclose = () => done('refused'); }})"
            assert _run(world, closed) == "refused"
        assert select.select([other], [], [], 0)[0] == []


def test_a_host_that_is_named_is_reached(folder: Path, fresh_world: World) -> None:
    fresh_world.reset(_goal(folder, "hosts", hosts=["localhost"]), SEED)
    with socket.create_server(("127.0.0.1", 0)) as other:
        _run(fresh_world, f"fetch('http://localhost:{other.getsockname()[1]}/', {{ mode: 'no-cors' }}); 0")
        while not select.select([other], [], [], 0.1)[0]:
            _run(fresh_world, "1")  # the browser asks whether it may, and is heard only while it is talked to


@pytest.mark.parametrize(
    "script", ["fetch('/api/notes?slow=60')", "(function again() { fetch('/api/notes').then(again); })()"]
)
def test_a_page_that_waits_for_ever_breaks_the_episode(fresh_world: WebApp, goal: Goal, script: str) -> None:
    fresh_world.reset(goal, SEED)
    assert fresh_world._running is not None
    fresh_world._running.browser._live_pipe.timeout_s = 1.0
    _run(fresh_world, f"{script}; 0")
    unanswered = r"gave no answer to the page's requests to the server \(http://app.localhost/api/notes.*\) within 1 s"
    with pytest.raises(WorldError, match=unanswered):
        fresh_world.step(WAIT)
    assert fresh_world.ended


def test_long_texts_and_full_screens_are_cut(folder: Path, world: World) -> None:
    seen = world.reset(_goal(folder, "large", path="/large"), SEED).observation
    assert len(seen.elements) == MOST_ELEMENTS
    assert {element.text for element in seen.elements if element.kind == "link"} == {str(n) for n in range(120)}
    assert max(len(element.text) for element in seen.elements) == LONGEST_TEXT


def test_a_phone_has_touch_and_its_own_width(folder: Path, fresh_world: World) -> None:
    goal = _goal(folder, "phone", viewport=[360, 640], phone=True, path="/")
    start = fresh_world.reset(goal, SEED)
    assert start.observation.shows((359, 639))
    assert not start.observation.shows((360, 0))
    assert _run(fresh_world, "[innerWidth, navigator.maxTouchPoints > 0, /Mobile/.test(navigator.userAgent)]") == [
        360, True, True,
    ]  # fmt: skip
    touches = "window.touches = 0; addEventListener('touchstart', () => { touches += 1; }); 0"
    _run(fresh_world, touches)
    heading = next(element for element in start.observation.elements if element.kind == "heading")
    fresh_world.step(Action.click(heading))
    assert _run(fresh_world, "touches") == 1
    fingers = "['start', 'move', 'end'].forEach((n) => addEventListener('touch' + n, (e) => ways.push("
    _run(fresh_world, f"window.ways = []; {fingers}[n, e.changedTouches[0].clientX, performance.now()]))); 0")
    x, target = heading.point[0], (heading.kind, heading.text)
    fresh_world.step(Action(Kind.SWIPE, heading.point, target, "left"))
    fresh_world.step(Action(Kind.LONG_PRESS, heading.point, target))
    ways = _run(fresh_world, "ways")
    assert [way[:2] for way in ways] == [
        ["start", x], ["move", max(0, x - 144)], ["end", max(0, x - 144)], ["start", x], ["end", x],
    ]  # fmt: skip
    assert ways[4][2] - ways[3][2] == WAIT_MS
    _solve(fresh_world, goal)
    assert fresh_world.verdict()


def test_nothing_is_known_before_a_reset(fresh_world: World) -> None:
    assert fresh_world.ended
    with pytest.raises(EpisodeOver, match="call reset first"):
        fresh_world.step(COMPLETE)
    with pytest.raises(EpisodeOver, match="there is no verdict"):
        fresh_world.verdict()


def test_a_world_may_be_closed_twice_and_used_again(fresh_world: World, goal: Goal) -> None:
    fresh_world.close()
    first = fresh_world.reset(goal, SEED)
    fresh_world.close()
    fresh_world.close()
    assert fresh_world.ended
    assert not fresh_world.verdict()
    assert fresh_world.reset(goal, SEED) == first


@pytest.mark.parametrize(("part", "message"), [("server", "the server ended"), ("browser", "the browser .* died")])
def test_what_is_killed_breaks_the_episode_and_not_the_world(
    fresh_world: World, goal: Goal, part: str, message: str
) -> None:
    before = set(_children())
    first = fresh_world.reset(goal, SEED)
    parts = {("server" if "keeper" in name else "browser"): pid for pid, name in set(_children()) - before}
    ended = os.pidfd_open(parts[part])
    os.killpg(parts[part], signal.SIGKILL)
    select.select([ended], [], [], 10.0)
    os.close(ended)
    with pytest.raises(WorldError, match=message):
        fresh_world.step(WAIT)
    assert fresh_world.ended
    assert not fresh_world.verdict()
    assert fresh_world.reset(goal, SEED) == first


def test_a_goal_or_file_that_is_not_there_is_named(fresh_world: World, goal: Goal) -> None:
    with pytest.raises(WorldError, match=r"goal x: page '.*#none' is not one of the goals of"):
        fresh_world.reset(Goal("x", "", goal.page.replace("#add-note", "#none"), 1, 1), SEED)
    with pytest.raises(WorldError, match=r"goal x: page 'none.yaml#a': none.yaml: the goal file cannot be read"):
        fresh_world.reset(Goal("x", "", "none.yaml#a", 1, 1), SEED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": "no-such-program {port}"}, "the server ended; its last words: .*no-such-program"),
        ({"start": "sh -c 'echo out of luck; exit 3'"}, "the server ended; its last words: out of luck"),
        ({"start": "sleep 60", "ready_in_s": 1}, r"sleep 60: no answer at / within 1 s \(app.ready_in_s\)"),
        (
            {"folder": "nowhere", "data": None},
            "app.folder=.*/nowhere: the server cannot be started there: .*No such file",
        ),
        ({"data": "nowhere"}, "app.data=.*/nowhere: the folder cannot be copied"),
        ({"setup": [{"sql": "INSERT INTO nowhere VALUES (1)"}]}, "hook .*no such table: nowhere"),
        ({"setup": [{"command": "sh -c 'echo sorry; exit 3'"}]}, "hook .*exit status 3: sorry"),
        ({"setup": [{"rest": "/nothing"}]}, "hook .*status 404"),
        ({"setup": [{"rest": "/notes", "headers": {"X-Who": "Łukasz"}}]}, "hook .*GET /notes: UnicodeEncodeError"),
        ({"reset": [{"restore": "other.db"}]}, "hook .*No such file"),
        ({"login": {"path": "/login", "fill": {"#none": "x"}}}, "no field #none"),
    ],
)
def test_what_cannot_be_done_is_named(
    folder: Path, fresh_world: World, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(WorldError, match=message):
        fresh_world.reset(_goal(folder, "wrong", **changes), SEED)


def test_the_server_and_what_it_started_end_with_their_process(folder: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from environments.web.app import WebApp\n"
        "from environments.registry import load_goals\n"
        "world = WebApp(); world.reset(load_goals(Path(sys.argv[1]))['add-note'], 0)\n"
        "print(world._running.server.port, flush=True); sys.stdin.read()"
    )
    goal = _goal(folder, "shell", start=f"sh -c '{sys.executable} server.py {{port}} {{data}}/notes.db; true'")
    command = [sys.executable, "-c", script, goal.page.partition("#")[0]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        port = int(owner.stdout.readline())
        server = next(os.pidfd_open(pid) for pid in _all() if f"server.py\0{port}" in _command(pid))
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    try:
        assert select.select([server], [], [], 10.0)[0] == [server]  # readable once it has ended
    finally:
        os.close(server)


def _run(world: World, expression: str) -> object:
    """What JavaScript says in the page of a world."""
    assert isinstance(world, WebApp)
    assert world._running is not None
    return world._running.browser.evaluate(expression)


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has just ended
        return ""


def _children() -> list[tuple[int, str]]:
    """The processes that this one started and that are alive, with their commands."""
    found = []
    for pid in _all():
        try:
            state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.append((pid, _command(pid)))
    return found
