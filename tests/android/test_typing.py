"""Text on its way to the phone: through a real shell, and what `input text` makes of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from desk import Desk
from hypothesis import example, given, settings
from hypothesis import strategies as st
from phone_shell import ADB_KEYBOARD, PhoneShell
from todo_phone import TodoPhone
from ways import GOALS

from environments.android import Android
from environments.android.adb import Phone, typing_lines
from environments.types import Action, Kind, WorldError

ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


class Paper(TodoPhone):
    """Keeps what is typed, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.written = ""

    def type(self, text: str) -> None:
        self.written += text

    def key(self, name: str) -> None:
        self.written += {"ENTER": "\n", "TAB": "\t"}[name]


@pytest.fixture(scope="module")
def shell() -> Iterator[PhoneShell]:
    with tempfile.TemporaryDirectory(prefix="phone-") as folder:
        shell = PhoneShell(Paper(), Path(folder))
        yield shell
        shell.close()


@given(st.lists(ASCII, min_size=1, max_size=3).map("\n".join))
@settings(max_examples=100)
@example("50%sure 100% s%%s %s")
@example('it\'s "$HOME" `id` $(id) \\ ; rm -rf * & | < > ~ # ! {a,b} -n')
@example("a\tb\n\n c ")
def test_what_is_typed_is_what_was_meant(shell: PhoneShell, text: str) -> None:
    shell.phone = paper = Paper()
    for line in typing_lines(text):
        assert shell.run(line) == (b"", "", 0)
    assert paper.written == text


@pytest.mark.android
@pytest.mark.parametrize("text", ["50%sure", 'it\'s "$HOME" `id`; \\n &', " blanks  around "])
def test_text_passes_adb_as_it_is(desk: Desk, link: Phone, text: str) -> None:
    desk.shell.phone = paper = Paper()
    link.type(text)
    assert paper.written == text


@pytest.mark.android
def test_a_character_without_a_key_is_named_and_adbkeyboard_types_it(desk: Desk) -> None:
    with closing(Android()) as world:
        start = world.reset(GOALS["todo-add"], 0)
        field = next(item for item in start.observation.elements if item.kind == "textbox")
        world.step(Action.click(field))
        with pytest.raises(WorldError, match="has no key for 'é'; install ADBKeyboard"):
            world.step(Action(Kind.TYPE, text="café"))
        desk.shell.keyboard = ADB_KEYBOARD
        world.reset(GOALS["todo-add"], 0)
        world.step(Action.click(field))
        world.step(Action(Kind.TYPE, text="café 茶\u200d"))
        assert desk.phone.note == "café 茶\u200d"
