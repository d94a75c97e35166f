"""The shell of a simulated phone: a real `sh`, and the programs that the driver calls, which act on the phone.

So what the driver quotes is read by the same rules as on a phone. Each program is a small script that hands its
arguments on; `input text` treats ``%`` as Android's own does (InputShellCommand.sendText).
"""

from __future__ import annotations

import base64
import io
import os
import re
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import quoteattr

from PIL import Image, ImageDraw
from todo_phone import HEIGHT, WIDTH, TodoPhone, View

PACKAGE, ACTIVITY = "org.example.todo", "org.example.todo/.Main"
ADB_KEYBOARD = "com.android.adbkeyboard/.AdbIME"
DATABASE = f"/data/data/{PACKAGE}/databases/todo.db"
COSTS_MS = {"input": 20, "uiautomator": 100, "screencap": 60}
ATTRIBUTES = (
    *("checkable", "checked", "clickable", "enabled", "focusable", "focused", "scrollable", "long-clickable"),
    *("password", "selected"),
)
# Named pipes and the shell's own words: an interpreter's start for each command would cost more than all the rest.
_PROGRAM = """#!/bin/sh
printf '%s\\0' "${{0##*/}}" "$@" > {folder}/words
/bin/cat {folder}/stderr >&2
/bin/cat {folder}/stdout
read -r status < {folder}/status
exit "$status"
"""

Answer = tuple[bytes, str, int]  # standard output, standard error, status


class PhoneShell:
    """Runs command lines on a phone; ``folder`` is where the programs lie."""

    def __init__(self, phone: TodoPhone, folder: Path) -> None:
        self.phone = phone
        self.keyboard = "com.android.inputmethod.latin/.LatinIME"
        self.dump_failures = 0  # how many of the next dumps fail, as they do on a screen in motion
        self.files: dict[str, str] = {}
        self._programs: dict[str, Callable[[list[str]], Answer]] = {
            name.removeprefix("_do_"): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }
        self._folder = folder
        self._path = folder / "bin"
        self._path.mkdir()
        for name in self._programs:
            program = self._path / name
            program.write_text(_PROGRAM.format(folder=folder))
            program.chmod(0o755)
        for name in ("words", "stdout", "stderr", "status"):
            os.mkfifo(folder / name)
        threading.Thread(target=self._serve, daemon=True).start()

    def run(self, line: str) -> Answer:
        """The answer of a command line."""
        self.phone.log.append(line)
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env={"PATH": str(self._path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.stdout, done.stderr.decode(), done.returncode

    def close(self) -> None:
        (self._folder / "words").write_bytes(b"")

    def _serve(self) -> None:
        """Answer the programs, one after the other; no words at all are the end."""
        while words := (self._folder / "words").read_bytes():
            name, *rest = words.decode().split("\0")[:-1]
            self.phone.now_ms += COSTS_MS.get(name, 0)
            stdout, stderr, status = self._programs[name](rest)
            (self._folder / "stderr").write_text(stderr)
            (self._folder / "stdout").write_bytes(stdout)
            (self._folder / "status").write_text(f"{status}\n")

    # The programs.

    def _do_input(self, words: list[str]) -> Answer:
        verb, *rest = words
        if verb == "tap":
            x, y = map(int, rest)
            self.phone.touch((x, y), (x, y), 0)
        elif verb == "swipe":
            x, y, to_x, to_y, ms = map(int, rest)
            self.phone.touch((x, y), (to_x, to_y), ms)
        elif verb == "keyevent":
            self.phone.key(rest[0].removeprefix("KEYCODE_"))
        elif verb == "text":
            return self._type(rest[0])
        return b"", "", 0

    def _type(self, text: str) -> Answer:
        typed = percent_s(text)
        if not typed.isascii():
            return b"", "Exception occurred while executing 'text': java.lang.NullPointerException", 255
        self.phone.type(typed)
        return b"", "", 0

    def _do_am(self, words: list[str]) -> Answer:
        verb, *rest = words
        if verb == "start":
            if ACTIVITY not in rest:
                return f"Error type 3\nError: Activity class {{{rest[-1]}}} does not exist.\n".encode(), "", 0
            self.phone.stop()
            self.phone.app = "todo"
            return b"Status: ok\nLaunchState: COLD\nComplete\n", "", 0
        action, extras = rest[rest.index("-a") + 1], dict(zip(rest[3::3], rest[4::3], strict=True))
        if action == f"{PACKAGE}.ADD":
            self.phone.items = {extras["item"]: False, **self.phone.items}
        elif action == "ADB_INPUT_B64" and self.keyboard == ADB_KEYBOARD:
            self.phone.type(base64.b64decode(extras["msg"]).decode())
        return b"Broadcast completed: result=0\n", "", 0

    def _do_pm(self, words: list[str]) -> Answer:
        if words != ["clear", PACKAGE]:
            return b"Failed\n", "", 1
        self.phone.clear()
        return b"Success\n", "", 0

    def _do_settings(self, words: list[str]) -> Answer:
        return (self.keyboard if words == ["get", "secure", "default_input_method"] else "null").encode() + b"\n", "", 0

    def _do_sleep(self, words: list[str]) -> Answer:
        self.phone.now_ms += int(words[0]) * 1000
        return b"", "", 0

    def _do_sqlite3(self, words: list[str]) -> Answer:
        if words[0] != DATABASE:
            return b"", f"Error: unable to open database {words[0]!r}", 1
        with sqlite3.connect(":memory:") as database:
            database.execute("create table items (text, done, archived)")
            rows = [(item, done, 0) for item, done in self.phone.items.items()]
            rows += [(item, 0, 1) for item in self.phone.archived]
            database.executemany("insert into items values (?, ?, ?)", rows)
            found = database.execute(words[1]).fetchall()
        return "".join("|".join(map(str, row)) + "\n" for row in found).encode(), "", 0

    def _do_screencap(self, words: list[str]) -> Answer:
        picture = Image.new("RGB", (WIDTH, HEIGHT), "white")
        _draw(ImageDraw.Draw(picture), self.phone.screen())
        if self.phone.blinks:
            picture.putpixel((1, 1), (0, 0, self.phone.now_ms % 251))
        png = io.BytesIO()
        picture.save(png, format="PNG")
        return png.getvalue(), "", 0

    def _do_uiautomator(self, words: list[str]) -> Answer:
        if self.dump_failures:
            self.dump_failures -= 1
            return b"ERROR: could not get idle state.\n", "", 0
        view = self.phone.screen()
        self.files[words[1]] = (
            f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{xml(view)}</hierarchy>"
        )
        return f"UI hierchary dumped to: {words[1]}\n".encode(), "", 0  # their spelling

    def _do_cat(self, words: list[str]) -> Answer:
        if words[0] not in self.files:
            return b"", f"cat: {words[0]}: No such file or directory\n", 1
        return self.files[words[0]].encode(), "", 0

    def _do_rm(self, words: list[str]) -> Answer:
        self.files.pop(words[-1], None)
        return b"", "", 0


def percent_s(text: str) -> str:
    """What `input text` makes of its argument: each ``%s`` read from the left is a blank."""
    return re.sub(r"%s", " ", text)


def xml(view: View, index: int = 0, clip: tuple[int, int, int, int] = (0, 0, WIDTH, HEIGHT)) -> str:
    """A view as uiautomator writes it: cut at its parent's edges; what lies outside is not there."""
    left, top, right, bottom = view.box
    box = max(left, clip[0]), max(top, clip[1]), min(right, clip[2]), min(bottom, clip[3])
    if box[0] >= box[2] or box[1] >= box[3]:
        return ""
    words = {
        "index": str(index),
        "text": view.text,
        "resource-id": f"{PACKAGE}:id/{view.name}" if view.name else "",
        "class": view.kind,
        "package": PACKAGE,
        "content-desc": view.description,
        **{name: str(name in view.true or name == "enabled").lower() for name in ATTRIBUTES},
        "bounds": f"[{box[0]},{box[1]}][{box[2]},{box[3]}]",
    }
    inside = "".join(xml(child, place, box) for place, child in enumerate(view.children))
    attributes = " ".join(f"{name}={quoteattr(word)}" for name, word in words.items())
    return f"<node {attributes}>{inside}</node>"


def _draw(pen: ImageDraw.ImageDraw, view: View) -> None:
    left, top, right, bottom = view.box
    shade = {"checked": "palegreen", "focused": "lightyellow", "selected": "lightblue"}
    fill = next((colour for state, colour in shade.items() if state in view.true), "white")
    pen.rectangle((left, top, right - 1, bottom - 1), fill, "gray")
    pen.text((left + 4, top + 4), (view.text or view.description).encode("ascii", "replace").decode(), "black")
    for child in view.children:
        _draw(pen, child)
