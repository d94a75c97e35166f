"""The browser itself, on pages made for it: what it cannot reach, how it breaks, and whose its time is."""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

from environments.browser.chromium import Browser, find_browser, listed
from environments.types import Action, Element, Kind, WorldError

Open = Callable[[str], Browser]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "root"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def browser(root: Path) -> Iterator[Browser]:
    browser = Browser(root)
    yield browser
    browser.close()


@pytest.fixture
def show(browser: Browser, root: Path) -> Open:
    """Open a page with the given body."""

    def open_page(body: str) -> Browser:
        (root / "page.html").write_text(f"<!DOCTYPE html><body style='margin:0'>{body}</body>")
        browser.open("page.html")
        return browser

    return open_page


def _elements(browser: Browser) -> list[Element]:
    return list(listed(browser.evaluate("__ratchet.elements('.hidden')")))


ATTEMPTS = """
<script>window.told = []; addEventListener('message', (event) => told.push(event.data));</script>
<link rel="preconnect" href="{server}"><link rel="prefetch" href="{server}/prefetch">
<script src="inside.js"></script><iframe src="{server}/frame"></iframe><iframe src="../outside.html"></iframe>
<iframe src="inside.html"></iframe>
<a id="link" href="{server}/link" ping="{server}/ping">leave</a><form action="{server}/form"></form>
<script>
const settled = (start) => new Promise((done) => {{
  const target = start();
  for (const name of ['load', 'open', 'message', 'error', 'close']) {{
    target.addEventListener(name, () => done(name));
  }}
}});
const tag = (name, key, url) => () =>
  document.body.appendChild(Object.assign(document.createElement(name), {{ [key]: url }}));
const worker = `fetch('{server}/worker').then(() => postMessage('load'), () => postMessage('error'))`;
window.attempts = {{
  fetch: fetch('{server}/fetch').then(() => 'load', () => 'error'),
  file: fetch('../outside.js').then(() => 'load', () => 'error'),
  beacon: Promise.resolve(String(navigator.sendBeacon('{server}/beacon', 'x'))).then(() => 'error'),
  image: settled(tag('img', 'src', '{server}/image.png')),
  script: settled(tag('script', 'src', '{server}/script.js')),
  outside: settled(tag('script', 'src', '../outside.js')),
  events: settled(() => new EventSource('{server}/events')),
  socket: settled(() => new WebSocket('{server}/socket'.replace('http', 'ws'))),
  worker: new Promise((done) => {{
    new Worker(URL.createObjectURL(new Blob([worker]))).onmessage = (event) => done(event.data);
  }}),
  quic: new WebTransport('https://127.0.0.1:{datagrams}/').ready.then(() => 'load', () => 'error'),
}};
window.results = async () => Object.fromEntries(await Promise.all(
  Object.entries(window.attempts).map(async ([name, result]) => [name, await result])));
</script>
"""


def test_nothing_but_the_folders_files_is_reached(show: Open, root: Path) -> None:
    (root / "inside.js").write_text("window.inside = true")
    (root.parent / "outside.js").write_text("window.outside = true")
    for page in (root / "inside.html", root.parent / "outside.html"):
        page.write_text(f"<script>top.postMessage('{page.stem}', '*')</script>")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        port, datagrams = tcp.getsockname()[1], udp.getsockname()[1]
        browser = show(ATTEMPTS.format(server=f"http://127.0.0.1:{port}", datagrams=datagrams))
        results = browser.evaluate("results()")
        browser.evaluate("document.forms[0].submit(); document.getElementById('link').click()")
        browser.pass_time(1000)
        assert set(results.values()) == {"error"}
        assert browser.evaluate("[window.inside, window.outside, told]") == [True, None, ["inside"]]
        assert browser.evaluate(f"window.open('http://127.0.0.1:{port}/')") is None
        assert browser.evaluate("typeof RTCPeerConnection") == "undefined"
        frame = "document.body.appendChild(document.createElement('iframe')).contentWindow"
        assert browser.evaluate(f"typeof {frame}.RTCPeerConnection") == "undefined"
        assert browser.evaluate("location.pathname").endswith("/root/page.html")
        assert select.select([tcp, udp], [], [], 0)[0] == []
        socket.create_connection(("127.0.0.1", port)).close()  # and one that does reach it is seen
        assert select.select([tcp, udp], [], [], 0)[0] == [tcp]


def test_time_passes_only_when_told(show: Open) -> None:
    browser = show("""<script>
      window.log = [];
      setTimeout(() => log.push('late'), 1000);
      setTimeout(() => Promise.resolve().then(() => log.push('promised')), 10);
      setTimeout((word) => log.push(word), 20, 'timed');
      requestAnimationFrame((time) => log.push(time));
      const every = setInterval(() => { log.push('tick'); if (log.length > 5) clearInterval(every); }, 300);
    </script>""")
    assert browser.evaluate("log") == []
    before = browser.evaluate("[Date.now(), new Date().getTime(), performance.now()]")
    browser.pass_time(400)
    after = browser.evaluate("[Date.now(), new Date().getTime(), performance.now()]")
    assert browser.evaluate("log") == ["promised", 16, "timed", "tick"]
    assert [b - a for a, b in zip(before, after, strict=True)] == [400, 400, 400]
    browser.pass_time(800)
    assert browser.evaluate("log.slice(4)") == ["tick", "tick", "late"]


CLOCKS = """<script>
  const times = {};
  const note = (name) => { times[name] = performance.now(); };
  AbortSignal.timeout(300).onabort = (event) => note(event.target.reason.name);
  const stop = new AbortController();
  scheduler.postTask(() => note('task'), { delay: 500 });
  scheduler.postTask(() => note('never'), { delay: 100, signal: stop.signal }).catch((error) => note(error.name));
  stop.abort();
  const begun = performance.now();
</script>"""


def test_every_clock_is_the_pages_own(show: Open) -> None:
    browser = show(CLOCKS)
    browser.pass_time(1000)
    assert browser.evaluate("Object.keys(times)") == ["AbortError", "TimeoutError", "task"]
    assert browser.evaluate("Object.values(times).map((time) => time - begun)") == [0, 300, 500]
    assert browser.evaluate("performance.timeOrigin + performance.now() - Date.now()") == 0
    said = "[new Intl.DateTimeFormat('en', given), new Intl.DateTimeFormat('en', given).format(new Date())]"
    given = "const given = { dateStyle: 'full', timeStyle: 'long', timeZone: 'UTC' }"
    now, then = browser.evaluate(f"(() => {{ {given}; const [one, said] = {said}; return [one.format(), said]; }})()")
    assert now == then == "Monday, January 15, 2024 at 12:00:01 PM UTC"
    parts = "new Intl.DateTimeFormat('en').formatToParts().map((part) => part.value).join('')"
    assert browser.evaluate(parts) == "1/15/2024"


def test_temporal_is_on_the_pages_clock_where_there_is_one(show: Open) -> None:
    browser = show("")
    if not browser.evaluate("'Temporal' in window"):
        pytest.skip("this browser has no Temporal")
    names = ("instant", "zonedDateTimeISO", "plainDateTimeISO", "plainDateISO", "plainTimeISO")
    said = browser.evaluate(f"{list(names)}.map((name) => Temporal.Now[name]().toString())")
    assert said == [
        "2024-01-15T12:00:00Z",
        "2024-01-15T12:00:00+00:00[UTC]",
        "2024-01-15T12:00:00",
        "2024-01-15",
        "12:00:00",
    ]


def test_a_failing_timer_does_not_stop_the_others(show: Open) -> None:
    browser = show("<script>setTimeout(() => { throw 1; }, 1); setTimeout(() => { window.ran = 1; }, 2)</script>")
    browser.pass_time(10)
    assert browser.evaluate("window.ran") == 1


def test_what_would_open_outside_the_page_does_not_hang_it(show: Open) -> None:
    browser = show("""<input type="date" id="date"><input type="color"><input type="time">
      <button onclick="alert(1); window.said = [confirm(2), prompt(3), prompt(4, 'x')]; print()">ask</button>""")
    for element in _elements(browser):
        browser.click(*element.point)
        browser.press(" ")
        browser.pass_time(100)
        assert browser.screenshot()
    assert browser.evaluate("window.said") == [True, "", "x"]


def test_a_list_opens_in_the_page_and_chooses(show: Open) -> None:
    browser = show("""<select onchange="window.changes = (window.changes || 0) + 1">
      <option>one</option><option>two</option><option>three</option></select><p>below</p>""")
    browser.click(*_elements(browser)[0].point)
    options = [element for element in _elements(browser) if element.kind == "option"]
    assert [(option.text, option.states) for option in options] == [
        ("one", ("on",)),
        ("two", ()),
        ("three", ()),
    ]
    browser.click(*options[2].point)
    assert [(element.kind, element.text) for element in _elements(browser)] == [
        ("select", "three"),
        ("text", "below"),
    ]
    assert browser.evaluate("window.changes") == 1


def test_a_list_that_went_with_its_page_is_not_scrolled(show: Open) -> None:
    browser = show("<select><option>one</select>")
    browser.click(*_elements(browser)[0].point)
    browser.evaluate("document.body.innerHTML = '<p style=height:900px>'")
    browser.scroll(1)
    assert browser.evaluate("scrollY") > 0


def test_elements_are_what_is_visible_with_values_labels_and_states(show: Open) -> None:
    browser = show("""
      <label><input type="checkbox" checked>ham</label>
      <input value="typed"><input type="password" value="p">
      <div>some <a href="#">linked</a> words</div><h6 style="margin:0">Title</h6>
      <div class="hidden">x</div><div style="display:none">y</div>
      <div style="position:relative;height:20px"><button style="position:absolute">under</button>
      <div style="position:absolute;width:160px;height:20px;background:red" data-answer="z" id="cover"></div>
      </div>
      <div style="height:10px;overflow:hidden"><p style="margin:0">a<br>b</p><p>clipped</p></div>""")
    browser.evaluate("document.querySelector('input[value=typed]').focus()")
    assert [(element.kind, element.text, element.states) for element in _elements(browser)] == [
        ("checkbox", "ham", ("on",)),
        ("textbox", "typed", ("focus",)),
        ("password", "p", ()),
        ("text", "some", ()),
        ("link", "linked", ()),
        ("text", "words", ()),
        ("heading", "Title", ()),
        ("image", "cover", ()),
        ("text", "a", ()),
    ]


def test_an_element_half_covered_is_shown_by_its_open_half(show: Open) -> None:
    browser = show("""<button style="position:absolute;left:0;top:0;width:80px;height:20px">wide</button>
      <div style="position:absolute;left:30px;top:0;width:100px;height:20px;background:red"></div>""")
    assert Element("button", "wide", (0, 0, 40, 20)) in _elements(browser)


def test_half_a_character_is_shown_as_the_replacement_character(show: Open) -> None:
    """As a script leaves it that cuts a text between the two code units of an emoji."""
    browser = show("<button id=b></button>")
    browser.evaluate("document.getElementById('b').textContent = 'hello 😀'.slice(0, 7) + '…'")
    (button,) = _elements(browser)
    assert button.text == "hello \ufffd…"
    assert button.text.encode()


def test_scrolling_and_scrollbars_move_the_page(show: Open) -> None:
    browser = show("<div id=box style='height:100px;overflow-y:scroll'><div style='height:900px'>tall</div></div>")
    top = "document.getElementById('box').scrollTop"
    browser.scroll(1)
    assert browser.evaluate(top) == 80
    browser.click(155, 80)  # the lower half of the scrollbar
    browser.pass_time(400)
    assert browser.evaluate(top) == 160
    browser.scroll(-1)
    assert browser.evaluate(top) == 80


def test_a_press_on_a_scrollbar_below_moves_what_is_above_it(show: Open) -> None:
    wide = "<div style='width:900px;height:20px'>wide</div>"
    browser = show(f"<div id=box style='width:100px;height:60px;overflow-x:scroll'>{wide}</div>")
    left = "document.getElementById('box').scrollLeft"
    box = "document.getElementById('box').getBoundingClientRect()"
    across, below = browser.evaluate(f"{box}.left"), int(browser.evaluate(f"{box}.bottom")) - 4
    for press, moved in ((90, 80), (90, 160), (10, 80)):  # its right half twice, its left
        browser.click(int(across) + press, below)
        browser.pass_time(400)
        assert browser.evaluate(left) == moved


@pytest.mark.parametrize(
    "page",
    [
        "<div id=box style='height:100px;overflow-y:scroll'><p style='height:900px'>tall</p></div>",
        "<textarea id=box style='width:160px;height:100px;box-sizing:border-box'>{lines}</textarea>",
        "<div style='height:900px'>tall</div><script>document.scrollingElement.id = 'box'</script>",
    ],
)
def test_a_scrollbar_is_pressed_after_a_look_too(show: Open, page: str) -> None:
    browser = show(page.format(lines="line\n" * 90))
    assert browser.observe("box.scrollTop")[0] == 0
    browser.click(153, 80)
    browser.pass_time(400)
    assert browser.observe("box.scrollTop")[0] > 0


def test_one_frame_shows_what_its_action_led_to(show: Open) -> None:
    """What lies under the mouse since, what watches sizes: in the picture and in the page."""
    browser = show("""
      <style>#box { position: absolute; inset: 0; background: red } #box:hover { background: lime }</style>
      <div id=line style='height:9px;width:9px'></div>
      <script>
      new ResizeObserver(([{ target }]) => { target.title = target.offsetWidth; }).observe(line);
      addEventListener('mouseup', () => {
        line.style.width = '30px';
        setTimeout(() => document.body.append(Object.assign(document.createElement('div'), { id: 'box' })), 100);
      });
      </script>""")
    assert browser.observe("line.title")[0] == "9"
    browser.perform(Action(Kind.CLICK, (80, 100), ("text", "")))
    title, picture = browser.observe("line.title")
    assert title == "30"
    assert Image.open(io.BytesIO(picture)).convert("RGB").getpixel((80, 100)) == (0, 255, 0)
    assert browser.observe("line.title") == (title, picture)


def test_keys_reach_what_has_the_focus(show: Open) -> None:
    browser = show("""<textarea id="text"></textarea><script>
      window.keys = []; addEventListener('keydown', (event) => keys.push(event.key));</script>""")
    browser.click(20, 10)
    browser.type("aB 9é\n!")
    browser.press("Backspace")
    browser.press("NoSuchKey")
    assert browser.evaluate("document.getElementById('text').value") == "aB 9é\n"
    assert browser.evaluate("keys.slice(0, 8)") == ["a", "B", " ", "9", "é", "Enter", "!", "Backspace"]


def test_a_page_in_an_endless_loop_is_given_up(root: Path) -> None:
    browser = Browser(root, timeout_s=1.0)
    try:
        with pytest.raises(WorldError, match=r"gave no answer to Runtime\.evaluate within 1 s"):
            browser.evaluate("for (;;);")
    finally:
        browser.close()


def test_a_crashed_page_is_an_error(root: Path) -> None:
    (root / "page.html").write_text("soon gone")
    browser = Browser(root)
    try:
        browser.open("page.html")
        for renderer in _renderers(browser):
            os.kill(renderer, signal.SIGKILL)
        with pytest.raises(WorldError, match="the page's process crashed"):
            browser.evaluate("1")
    finally:
        browser.close()


def _renderers(browser: Browser) -> list[int]:
    """The processes that draw pages, in the browser's process group."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        pid = int(command.parent.name)
        with suppress(OSError):  # it may have just ended
            if "--type=renderer" in command.read_text() and os.getpgid(pid) == browser.pid:
                found.append(pid)
    return found


def test_a_page_that_throws_is_quoted(show: Open) -> None:
    with pytest.raises(WorldError, match="the page threw Error: no luck"):
        show("").evaluate("(() => { throw new Error('no luck'); })()")


def test_the_browser_ends_with_its_process(root: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from environments.browser.chromium import Browser\n"
        "browser = Browser(Path(sys.argv[1])); print(browser.pid, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(root)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        browser = os.pidfd_open(int(owner.stdout.readline()))
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    try:
        assert select.select([browser], [], [], 10.0)[0] == [browser]  # readable once it has ended
    finally:
        os.close(browser)


def test_closing_removes_its_files_and_may_be_repeated(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    browser = Browser(root)
    assert list(tmp_path.iterdir())
    browser.close()
    browser.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(WorldError, match="the browser is closed"):
        browser.evaluate("1")


def test_a_browser_that_cannot_start_says_why(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "browser"
    broken.write_text("#!/bin/sh\necho no library here >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("RATCHET_CHROMIUM", str(broken))
    with pytest.raises(WorldError, match="died; its last words: no library here"):
        Browser(root)


def test_no_browser_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RATCHET_CHROMIUM", str(tmp_path / "none"))
    with pytest.raises(WorldError, match="must name a program"):
        find_browser()
    monkeypatch.delenv("RATCHET_CHROMIUM")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WorldError, match="run `make setup` or `apt-get install chromium-headless-shell`"):
        find_browser()
