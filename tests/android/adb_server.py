"""An ADB server as the real `adb` program sees it, with simulated phones behind it.

The host protocol ("smart sockets") and the shell protocol are those of the Android sources: packages/modules/adb,
OVERVIEW.TXT, SERVICES.TXT and shell_protocol.h.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from contextlib import suppress

from phone_shell import PhoneShell

VERSION = 41  # the protocol's; `adb` replaces a server of another one
FEATURES = "shell_v2,cmd"
STDOUT, STDERR, EXIT = 1, 2, 3  # packets of the shell protocol


class AdbServer(socketserver.ThreadingTCPServer):
    """Listens on a free port of this machine. ``states`` are as `adb devices` shows them."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, shells: dict[str, PhoneShell], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Conversation)
        self.shells = shells
        self.states = dict.fromkeys(shells, "device")
        self.goes_on = threading.Event()  # a phone answers only while it is set
        self.goes_on.set()
        self.links: set[socket.socket] = set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def kill(self) -> None:
        """End the server and its conversations, as when the process is killed."""
        self.goes_on.set()
        self.shutdown()
        self.server_close()
        for link in list(self.links):
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)


class _Conversation(socketserver.StreamRequestHandler):
    server: AdbServer

    def setup(self) -> None:
        super().setup()
        self.server.links.add(self.connection)

    def finish(self) -> None:
        self.server.links.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def handle(self) -> None:
        serial = ""
        with suppress(OSError):
            while request := self._request():
                for prefix in ("host:transport:", "host:tport:serial:"):
                    if request.startswith(prefix):
                        serial = request.removeprefix(prefix)
                        if not self._connect(serial, prefix):
                            return
                        break
                else:
                    self._serve(request, serial)
                    return

    def _request(self) -> str:
        length = self.rfile.read(4)
        return self.rfile.read(int(length, 16)).decode() if len(length) == 4 else ""

    def _connect(self, serial: str, prefix: str) -> bool:
        if not self._reachable(serial):
            return False
        self.wfile.write(b"OKAY")
        if "tport" in prefix:
            self.wfile.write(struct.pack("<Q", 1))
        return True

    def _reachable(self, serial: str) -> bool:
        state = self.server.states.get(serial)
        if state == "device":
            return True
        self._fail(f"device '{serial}' not found" if state is None else f"device {state}")
        return False

    def _serve(self, request: str, serial: str) -> None:
        self.server.goes_on.wait()
        service, _, rest = request.partition(":")
        if service == "host-serial" and rest.endswith(":features"):
            if self._reachable(rest.removesuffix(":features")):
                self._okay(FEATURES)
        elif request == "host:version":
            self._okay(f"{VERSION:04x}")
        elif request == "host:devices":
            self._okay("".join(f"{name}\t{state}\n" for name, state in self.server.states.items()))
        elif service == "exec":
            stdout, stderr, _ = self._run(serial, rest)
            self.wfile.write(stdout + stderr.encode())
        elif service.startswith("shell,v2"):
            stdout, stderr, status = self._run(serial, rest)
            for kind, data in ((STDOUT, stdout), (STDERR, stderr.encode()), (EXIT, bytes([status]))):
                self.wfile.write(struct.pack("<BI", kind, len(data)) + data)
        elif service == "emu":
            self._fail("not an emulator")
        else:
            self._fail(f"unknown service {request!r}")

    def _run(self, serial: str, line: str) -> tuple[bytes, str, int]:
        self.wfile.write(b"OKAY")
        return self.server.shells[serial].run(line)

    def _okay(self, words: str) -> None:
        self.wfile.write(b"OKAY" + f"{len(words):04x}{words}".encode())

    def _fail(self, words: str) -> None:
        self.wfile.write(b"FAIL" + f"{len(words):04x}{words}".encode())
