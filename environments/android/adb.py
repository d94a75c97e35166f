"""A phone or an emulator over the Android debug bridge: the `adb` program, run once for each command."""

from __future__ import annotations

import base64
import fcntl
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from environments.types import Busy, WorldError

TIMEOUT_S = 60.0  # for one command: starting an app on a cold emulator takes long
HOLD_MS = 1000  # a long press; the system's own threshold is 400 to 1500, by its accessibility settings
_TREE = "/data/local/tmp/ratchet.xml"
_TREE_TRIES = 3  # a screen in motion has no tree: the dump waits 10 s for rest and gives up
_PNG = b"\x89PNG\r\n\x1a\n"
_KEYBOARD = "com.android.adbkeyboard/.AdbIME"
_POLL_S = 1.0

_KEYS = {  # the names that agents use (DOM names where there are any), and Android's
    "Back": "BACK", "Home": "HOME", "Recents": "APP_SWITCH", "Menu": "MENU", "Search": "SEARCH",
    "VolumeUp": "VOLUME_UP", "VolumeDown": "VOLUME_DOWN", "Enter": "ENTER", "Tab": "TAB", "Space": "SPACE",
    "Escape": "ESCAPE", "Backspace": "DEL", "Delete": "FORWARD_DEL", "End": "MOVE_END", "PageUp": "PAGE_UP",
    "PageDown": "PAGE_DOWN", "ArrowUp": "DPAD_UP", "ArrowDown": "DPAD_DOWN", "ArrowLeft": "DPAD_LEFT",
    "ArrowRight": "DPAD_RIGHT",
}  # fmt: skip
_ADVICE = {  # a part of what adb says, and what helps
    "unauthorized": "allow this computer on the phone's screen, then look at `adb devices`",
    "no permissions": "let this user use USB devices (udev rules), then look at `adb devices`",
    "offline": "`adb reconnect offline`, or plug the phone in again",
    "connect to daemon": "start the adb server with `adb start-server`",
    "start server on remote host": "start the adb server there, or correct ADB_SERVER_SOCKET",
}
_ADVICE_ELSE = "`adb devices -l` shows which phones there are, and their states"

_held: set[str] = set()  # the serial numbers that worlds of this process hold


def find_adb() -> Path:
    """The adb to use: what RATCHET_ADB names, else the one on PATH.

    Raises:
        WorldError: when there is none.
    """
    named = os.environ.get("RATCHET_ADB")
    if named and not (os.access(named, os.X_OK) and Path(named).is_file()):
        raise WorldError(f"RATCHET_ADB={named}: it must name a program; correct or unset it")
    if found := named or shutil.which("adb"):
        return Path(found)
    raise WorldError("no adb on PATH; run `sh infra/adb.sh` or `apt-get install adb`, or set RATCHET_ADB")


def phones() -> dict[str, str]:
    """The state of each phone that the adb server knows, by serial number; "device" is one that can be used.

    Raises:
        WorldError: when adb is missing, or its server cannot be reached.
    """
    lines = _run(["devices"], TIMEOUT_S).decode(errors="replace").splitlines()
    return dict(line.split("\t", 1) for line in lines if "\t" in line)


class Phone:
    """One phone, for one world at a time: the first that is free. It waits while other processes hold all.

    ANDROID_SERIAL, adb's own variable, names the only one to use.

    Args:
        timeout_s: how long one command may take.

    Raises:
        WorldError: from every method, when the phone cannot be reached, or refuses what it is told. Release
            it then, and take a new one.
        Busy: when other worlds of this process hold all phones.
    """

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self.serial, self._lock = _take()

    def release(self) -> None:
        """Leave the phone to others. A second call has no effect."""
        if not self._lock.closed:
            self._lock.close()
            _held.discard(self.serial)

    def command(self, line: str) -> bytes:
        """Run a line as one would type it behind `adb`, such as ``emu avd snapshot load clean``."""
        try:
            return self._adb(*parted(line))
        except ValueError as error:  # a value has brought a quote without its other half
            raise WorldError(f"{self.serial}: `adb {line}`: {error}; mend the line in the goal file") from error

    def shell(self, line: str) -> str:
        """What a command line of the phone's shell prints. A status other than 0 is a WorldError."""
        return self._adb("shell", line).decode(errors="replace")

    def start(self, app: str) -> None:
        """Stop an app, start its activity (``package/.Activity``) and wait until it is drawn."""
        said = self.shell(f"am start -W -S -n {shlex.quote(app)}")
        if "Error:" in said:  # with status 0, on most versions
            raise WorldError(
                f"{app}: {_line(said, 'Error:')}; `adb shell cmd package resolve-activity --brief PACKAGE`"
            )

    def screenshot(self) -> bytes:
        """The screen as a PNG."""
        _, mark, picture = self._adb("exec-out", "screencap", "-p").partition(_PNG)  # warnings may come first
        if not mark:
            raise WorldError(f"{self.serial}: `screencap -p` gave no PNG; unlock the phone and look at its screen")
        return mark + picture

    def tree(self) -> str:
        """The accessibility tree of the screen, as uiautomator's XML."""
        # A dump that fails says so with status 0 and leaves the old file: that must be gone.
        line = f"rm -f {_TREE}; uiautomator dump {_TREE} 2>&1; cat {_TREE} 2>&1; true"
        for _ in range(_TREE_TRIES):
            said, mark, xml = self.shell(line).partition("<?xml")
            if mark:
                return mark + xml
        raise WorldError(
            f"{self.serial}: no tree of the screen in {_TREE_TRIES} tries: {_line(said, 'ERROR')}; turn animations "
            "off (docs/android.md), unlock the phone, and end other programs that use uiautomator"
        )

    def tap(self, x: int, y: int) -> None:
        """Touch a point in pixels of the screen."""
        self.shell(f"input tap {x} {y}")

    def swipe(self, start: tuple[int, int], end: tuple[int, int], ms: int) -> None:
        """Move a finger in a straight line; from a point to itself, it rests there."""
        self.shell(f"input swipe {start[0]} {start[1]} {end[0]} {end[1]} {ms}")

    def press(self, key: str) -> None:
        """Press a button or key; a character types itself, a name outside the table has no effect."""
        if len(key) == 1:
            self.type(key)
        elif key in _KEYS:
            self.shell(f"input keyevent KEYCODE_{_KEYS[key]}")

    def type(self, text: str) -> None:
        """Type text into what has the focus; a line's end presses Enter.

        Raises:
            WorldError: when the phone's keyboard has no key for a character. ADBKeyboard types any.
        """
        foreign = next((character for character in text if not _has_key(character)), None)
        if foreign is None:
            for line in typing_lines(text):
                self.shell(line)
        elif self.shell("settings get secure default_input_method").strip() == _KEYBOARD:
            self.shell(
                f"am broadcast -a ADB_INPUT_B64 --es msg {base64.b64encode(text.encode(errors='replace')).decode()}"
            )
        else:
            raise WorldError(
                f"{self.serial}: `input text` has no key for {foreign!r}; install ADBKeyboard and choose it: "
                f"`adb shell ime enable {_KEYBOARD} && adb shell ime set {_KEYBOARD}`"
            )

    def _adb(self, *arguments: str) -> bytes:
        return _run(["-s", self.serial, *arguments], self._timeout_s)


def parted(line: str) -> list[str]:
    """The words of a line for adb. What follows `shell` is one: it is for the phone's shell, quotes and all.

    Raises:
        ValueError: when a quote lacks its other half.
    """
    verb, _, rest = line.partition(" ")
    return [verb, rest] if verb == "shell" else shlex.split(line)


def typing_lines(text: str) -> Iterator[str]:
    """The command lines of the phone's shell that type ASCII text.

    `input text` reads ``%s`` as a blank and has no other way to write one, nor any to write ``%s`` itself: that is
    typed in two parts.
    """
    for part in re.split(r"([\n\t])", text):
        if part in ("\n", "\t"):
            yield f"input keyevent KEYCODE_{'ENTER' if part == chr(10) else 'TAB'}"
            continue
        for piece in re.split(r"(?<=%)(?=s)", part):
            if piece:
                yield f"input text {shlex.quote(piece.replace(' ', '%s'))}"


def _has_key(character: str) -> bool:
    return " " <= character <= "~" or character in "\n\t"


def _take() -> tuple[str, IO[bytes]]:
    """A phone's serial number and the lock on it, which ends with this process at the latest."""
    while True:
        usable = _usable()
        if not set(usable) - _held:
            raise Busy(f"{', '.join(usable)}: in use by this process's other worlds; close one, or connect more phones")
        for serial in usable:
            if serial not in _held and (lock := _lock(serial)) is not None:
                _held.add(serial)
                return serial, lock
        time.sleep(_POLL_S)


def _usable() -> list[str]:
    states, only = phones(), os.environ.get("ANDROID_SERIAL")
    if only is not None:
        states = {only: states.get(only, "not connected")}
    usable = [serial for serial, state in states.items() if state == "device"]
    if not usable:
        known = ", ".join(f"{serial} is {state}" for serial, state in states.items()) or "none is connected"
        raise WorldError(f"no phone can be used ({known}): {_advice(known)}")
    return usable


def _lock(serial: str) -> IO[bytes] | None:
    name = re.sub(r"[^\w.-]", "_", serial)
    path = Path(tempfile.gettempdir()) / f"ratchet-phone-{name}.lock"
    try:
        lock = path.open("wb")
    except PermissionError as error:
        raise WorldError(f"{path}: another user's, who may hold phone {serial}; if none does, remove it") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _run(arguments: list[str], timeout_s: float) -> bytes:
    command = [str(find_adb()), *arguments]
    said = f"`adb {' '.join(arguments)}`"[:200]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise WorldError(f"{said} gave no answer within {timeout_s:g} s; {_ADVICE_ELSE}") from error
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace")
        raise WorldError(f"{said} failed ({done.returncode}): {_line(words, 'error')}; {_advice(words)}")
    return done.stdout


def _advice(words: str) -> str:
    return next((advice for part, advice in _ADVICE.items() if part in words), _ADVICE_ELSE)


def _line(words: str, mark: str) -> str:
    """The line that tells most: the first with the mark in it, else the last."""
    lines = [line.strip() for line in words.splitlines() if line.strip()] or ["it said nothing"]
    return next((line for line in lines if mark in line), lines[-1])[:300]
