"""Temporary folders that outlive nobody for long: what a killed process left is removed when the next folder is made.

Who has a folder holds a lock on a file in it, which the kernel lets go of when the process dies, however it dies.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path
from typing import IO

_CLAIM = ".claim"  # the locked file


class Home:
    """A new folder ``ratchet-KIND-*`` among the temporary ones, until it is closed or its process ends."""

    def __init__(self, kind: str) -> None:
        _sweep(f"ratchet-{kind}-*")
        self._folder = tempfile.TemporaryDirectory(prefix=f"ratchet-{kind}-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        self._claim = _claimed(self.path)

    def close(self) -> None:
        """Remove the folder. A second call has no effect."""
        self._folder.cleanup()
        self._claim.close()


def _claimed(folder: Path) -> IO[bytes]:
    """A lock on a folder. Its file has its name only when it is locked: nobody finds it and takes it for abandoned."""
    named = folder / f"{_CLAIM}.new"
    claim = named.open("wb")
    fcntl.flock(claim, fcntl.LOCK_EX)
    named.rename(folder / _CLAIM)
    return claim


def _sweep(pattern: str) -> None:
    """Remove folders whose owners have died."""
    for name in Path(tempfile.gettempdir()).glob(f"{pattern}/{_CLAIM}"):
        try:
            with name.open("rb") as claim:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(name.parent, ignore_errors=True)
        except OSError:
            continue  # somebody has it, or removes it now
