"""A dataset that DVC keeps, as MLflow names it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mlflow.data.dataset_source import DatasetSource
from mlflow.data.dataset_source_registry import register_dataset_source

from tasks.errors import WorkspaceError


class DvcSource(DatasetSource):
    """A path at a git revision, its md5, and the DVC remote it is pushed to.

    ``mlflow.data.get_source(dataset)`` gives one back in a process that imported :mod:`tasks.lineage`.
    """

    TYPE = "dvc"

    def __init__(self, path: str, md5: str, rev: str, remote: str) -> None:
        self.path = path
        self.md5 = md5
        self.rev = rev
        self.remote = remote

    def load(self) -> Path:
        """Fetch the data from the checkout's DVC cache or remote into a new temporary folder; give its path.

        Raises:
            WorkspaceError: when DVC cannot find the revision, the path or the content.
        """
        place = Path(tempfile.mkdtemp()) / Path(self.path).name
        get = ["dvc", "get", ".", self.path, "--rev", self.rev, "-o", str(place), "-q"]
        done = subprocess.run([sys.executable, "-m", *get], check=False, capture_output=True, text=True)
        if done.returncode:
            raise WorkspaceError(
                f"{self.path} (md5 {self.md5}) at {self.rev}: DVC cannot fetch it ({done.stderr.strip()}). "
                f"Try: {' '.join(get[:-1])}"
            )
        return place

    def to_dict(self) -> dict[str, Any]:
        """The fields, as MLflow stores them."""
        return {"path": self.path, "md5": self.md5, "rev": self.rev, "remote": self.remote}

    @classmethod
    def from_dict(cls, source_dict: dict[Any, Any]) -> DvcSource:
        """The source of its stored fields."""
        return cls(**source_dict)

    @staticmethod
    def _get_source_type() -> str:
        return DvcSource.TYPE

    @staticmethod
    def _can_resolve(raw_source: object) -> bool:  # noqa: ARG004
        return False  # a bare string does not say its md5

    @classmethod
    def _resolve(cls, raw_source: object) -> DvcSource:
        raise NotImplementedError(f"{raw_source!r}: a DVC source is made from its fields")


register_dataset_source(DvcSource)  # type: ignore[arg-type]  # mlflow's annotation says instance, and means class
