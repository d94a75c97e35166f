"""What the pages of real applications do to a browser, each on a page made for it and served by a real server."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest
import yaml

from environments.registry import load_goals
from environments.types import Action, Kind, Observation, WorldError
from environments.web.app import WebApp

WAIT = Action(Kind.WAIT)
DONE = {"page": "document.querySelector('#done').textContent === 'yes'"}


class Site:
    """A folder of pages, its server, and a world that opens ``page.html``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world = folder, WebApp()

    def open(self, body: str, success: object = DONE, **app: object) -> Observation:
        """The first screen of an episode on a page with the given body; ``app`` are further keys of the goal file."""
        (self.folder / "page.html").write_text(f"<!DOCTYPE html><body style='margin:0'>{body}</body>")
        start = f"{sys.executable} -m http.server {{port}} --bind 127.0.0.1"
        goal = {"id": "look", "tier": 1, "max_steps": 9, "path": "/page.html", "instruction": "Look."}
        file = {
            "app": {"start": start, "reset": [{"command": "true"}], "viewport": [480, 360], **app},
            "goals": [goal | {"success": success}],
        }
        content = yaml.safe_dump(file)
        path = self.folder / f"{crc32(content.encode())}.yaml"  # what runs already goes on by its old file
        path.write_text(content)
        return self.world.reset(load_goals(path)["look"], 0).observation

    def click(self, seen: Observation, kind: str, text: str) -> Observation:
        """The screen after a click on an element."""
        found = [each for each in seen.elements if (each.kind, each.text) == (kind, text)]
        assert found, f"no {kind} {text!r} among {_lines(seen)}"
        return self.world.step(Action.click(found[0]))

    def run(self, expression: str) -> object:
        """What JavaScript says in the page."""
        assert self.world._running is not None
        return self.world._running.browser.evaluate(expression)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    with closing(site.world):
        yield site


def _lines(seen: Observation) -> list[str]:
    """Kinds, texts and states."""
    return [" ".join((*each.states, each.kind, repr(each.text))) for each in seen.elements]


def test_a_check_of_what_is_not_there_yet_is_not_reached(site: Site) -> None:
    seen = site.open("<button onclick=\"out.id = 'done'\">do</button><p id=out>yes</p>")
    assert not site.world.verdict()
    site.click(seen, "button", "do")
    assert site.world.verdict()
    for check in (
        {"page": "fetch('/nothing').then((answer) => answer.ok)"},
        {"rest": "/nothing", "at": "a", "equals": 1},
        {"rest": "/page.html", "at": "a", "equals": 1},
    ):
        site.open("none", check)
        assert not site.world.verdict()


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"page": "location.pathname ="}, r"check PageCheck\(page='location.pathname ='\): .* SyntaxError"),
        ({"rest": "/page.html", "method": "POST", "equals": 1}, "check RestCheck.*: status 501"),
    ],
)
def test_a_check_that_cannot_be_made_is_named(site: Site, check: object, message: str) -> None:
    site.open("none", check)
    with pytest.raises(WorldError, match=message):
        site.world.verdict()


def test_what_comes_late_or_never_holds_nothing_up(site: Site) -> None:
    """A picture that waits until it is scrolled to, a worker with requests of its own, and a sound without an end."""
    (site.folder / "worker.js").write_text("fetch('/page.html').then(() => postMessage(1))")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        seen = site.open(
            f"""<audio preload=auto src="http://localhost:{silent.getsockname()[1]}/"></audio><p id=out>none</p>
            <button onclick="fetch('/worker.js').then(() => {{ out.textContent = 'fetched'; }})">fetch</button>
            <div style="height:9000px"></div><img loading=lazy src=/picture.svg width=9 height=9>
            <script>new Worker('/worker.js')</script>""",
            hosts=["localhost"],
        )
        assert "text 'fetched'" in _lines(site.click(seen, "button", "fetch"))


def test_what_is_waited_for_too_long_is_named(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://localhost:{silent.getsockname()[1]}/never"
        site.open("none", hosts=["localhost"])
        assert site.world._running is not None
        site.world._running.browser._live_pipe.timeout_s = 1.0
        site.run(f"fetch('{address}'); 0")
        with pytest.raises(WorldError, match=rf"requests to the server \({address}\) within 1 s"):
            site.world.step(WAIT)


def test_a_page_may_stand_still_until_a_request_is_answered(site: Site) -> None:
    """Synchronous XHR, while an answer is on its way that the page cannot take in meanwhile."""
    seen = site.open("""<button onclick="load()">load</button><p id=out></p><script>
      const load = () => {
        fetch('/page.html?first').then(() => { out.textContent += ' first'; });
        const request = new XMLHttpRequest();
        request.open('GET', '/page.html?second', false);
        request.send();
        out.textContent += `second ${request.status}`;
      };
    </script>""")
    assert site.world._running is not None
    site.world._running.browser._live_pipe.timeout_s = 5.0
    assert "text 'second 200 first'" in _lines(site.click(seen, "button", "load"))


TAPS = """<meta name=viewport content="width=device-width">
<style>select, button, div { display: block; height: 50px; width: 200px; margin: 20px 0 }</style>
<select><option>one<option>two</select><button disabled>off</button><div id=pad>pad</div><div id=knob>knob</div>
<div id=shut>shut</div><p id=out>none</p><script>
  const say = (event) => { event.preventDefault(); out.textContent = event.type; };
  pad.addEventListener('touchstart', say, { passive: false });
  knob.addEventListener('pointerdown', say);
  shut.addEventListener('touchstart', (event) => { say(event); shut.remove(); }, { passive: false });
</script>"""


def test_every_tap_comes_to_an_end(site: Site) -> None:
    """On a list, on what is off, where the page wants no mouse events after the touches, and on what it takes out."""
    seen = site.open(TAPS, phone=True, viewport=[360, 640])
    seen = site.click(site.click(seen, "select", "one"), "option", "two")
    assert "focus select 'two'" in _lines(seen)
    seen = site.click(seen, "button", "off")
    assert "text 'touchstart'" in _lines(site.click(seen, "text", "pad"))
    seen = site.click(seen, "text", "knob")
    assert "text 'pointerdown'" in _lines(seen)
    assert site.world._running is not None
    site.world._running.browser._live_pipe.timeout_s = 5.0
    seen = site.click(seen, "text", "shut")
    assert "text 'touchstart'" in _lines(seen)
    assert "text 'shut'" not in _lines(seen)


def test_what_scripts_animate_and_draw_at_random_is_the_same_each_time(site: Site) -> None:
    body = """<button onclick="box.animate([{ left: 0 }, { left: '90px' }], { duration: 9000, fill: 'forwards' })
        .onfinish = () => { box.textContent = 'arrived'; }">go</button>
      <p id=box style="position:relative;left:0">box</p><p id=drawn></p>
      <script>drawn.textContent = `${crypto.randomUUID()} ${crypto.getRandomValues(new Uint16Array(3))}`</script>"""
    first = site.open(body)
    uuid = first.elements[-1].text.split()[0]
    assert re.fullmatch(r"[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}", uuid)
    moved = site.click(first, "button", "go")
    assert (moved.elements[1].text, moved.elements[1].box[0]) == ("arrived", 90)
    assert site.open(body) == first
    assert site.click(first, "button", "go") == moved


def test_time_passes_in_frames_and_one_may_end_itself(site: Site) -> None:
    inside = "<p>waits</p><script>setTimeout(() => { document.body.textContent = 'ready'; }, 300)</script>"
    ending = "<script>setTimeout(() => parent.last.remove(), 350)</script>"
    site.open(f'<iframe id=first srcdoc="{inside}"></iframe><iframe id=last srcdoc="{ending}"></iframe>')
    site.world.step(WAIT)
    assert site.run("[first.contentDocument.body.innerText, frames.length]") == ["ready", 1]


def test_a_form_that_scripts_drive_can_be_logged_in_with(site: Site) -> None:
    """As frameworks have it: the field's own property is theirs, and its text is what their events told them."""
    body = """<form id=form><input id=user></form><p id=out></p><script>
      let told = '';
      Object.defineProperty(user, 'value', { get: () => told, set: () => undefined });
      user.addEventListener('input', () => {
        told = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').get.call(user);
      });
      form.onsubmit = (event) => { event.preventDefault(); document.cookie = `who=${told}`; };
      out.textContent = document.cookie || 'nobody';
    </script>"""
    assert "text 'who=ann'" in _lines(site.open(body, login={"path": "/page.html", "fill": {"#user": "ann"}}))


def test_a_list_opens_in_a_dialog_and_what_lies_behind_stays(site: Site) -> None:
    seen = site.open("""<style>body { overflow: hidden }</style><div style="height:3000px">behind</div>
      <dialog id=asks><select><option>one<option>two</select><button>OK</button></dialog>
      <script>asks.showModal()</script>""")
    seen = site.click(site.click(seen, "select", "one"), "option", "two")
    assert "focus select 'two'" in _lines(seen)
    site.world.step(Action(Kind.SCROLL, text="down"))
    assert site.run("scrollY") == 0


def test_a_link_leads_on_whatever_it_leads_to(site: Site) -> None:
    """To another tab, because the page says so of all its links; to a document that is a picture."""
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"><rect aria-label="square" width="90" height="90"/></svg>'
    (site.folder / "drawing.svg").write_text(drawing)
    seen = site.open("<base target=_blank><a href=/drawing.svg>drawing</a>")
    assert _lines(site.click(seen, "link", "drawing")) == ["image 'square'"]
    assert _lines(site.world.step(WAIT)) == ["image 'square'"]
