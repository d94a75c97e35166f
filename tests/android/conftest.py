"""Simulated phones behind an ADB server, for the real `adb` program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from adb_server import AdbServer
from desk import Desk
from phone_shell import PhoneShell
from todo_phone import TodoPhone

from environments.android import adb
from environments.android.adb import Phone


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    adb.find_adb()  # where there is none, its error says what to do
    with tempfile.TemporaryDirectory(prefix="phones-") as folder:  # a socket's path must be short
        shells = {}
        for name in ("one", "two"):
            (Path(folder) / name).mkdir()
            shells[f"{name}-{os.getpid()}"] = PhoneShell(TodoPhone(), Path(folder) / name)
        desk = Desk(AdbServer(shells), shells)
        # By its number the address is not "local": adb then starts no server of its own where there is none.
        monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:127.0.0.1:{desk.server.port}")
        monkeypatch.delenv("ANDROID_SERIAL", raising=False)
        yield desk
        desk.server.kill()
        for shell in shells.values():
            shell.close()


@pytest.fixture
def link(desk: Desk) -> Iterator[Phone]:
    """The first phone, over adb."""
    phone = Phone(timeout_s=5.0)
    yield phone
    phone.release()
