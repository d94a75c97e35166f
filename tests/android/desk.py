"""What the tests stand on: simulated phones and the server they are connected to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adb_server import AdbServer
from phone_shell import PhoneShell
from todo_phone import TodoPhone

FILE = Path(__file__).with_name("todo.yaml")


@dataclass
class Desk:
    """Two phones on a desk, connected to this machine."""

    server: AdbServer
    shells: dict[str, PhoneShell]

    @property
    def serials(self) -> list[str]:
        return list(self.shells)

    @property
    def shell(self) -> PhoneShell:
        return self.shells[self.serials[0]]

    @property
    def phone(self) -> TodoPhone:
        return self.shell.phone

    def restart(self) -> None:
        """A new server on the port of the killed one."""
        self.server = AdbServer(self.shells, self.server.port)
