"""Push to and pull from a real S3 server: SeaweedFS, with its signatures checked."""

from __future__ import annotations

import itertools
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError
from workspace import Workspace

KEY, SECRET, BUCKET = "ratchet-key", "ratchet-secret-for-tests", "rounds"


@dataclass(frozen=True)
class Store:
    endpoint: str

    @property
    def env(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}

    def client(self):
        names = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
        return boto3.client("s3", endpoint_url=self.endpoint, **names)


def _ports(count: int) -> list[int]:
    """Free ports whose gRPC ports, 10,000 higher, are free too.

    All below 32,768, from where Linux gives out ports: nobody is given one between this look and the server's start.
    """
    likely = random.sample(range(20_000, 22_768), 100)
    return list(itertools.islice((port for port in likely if _is_free(port) and _is_free(port + 10_000)), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("s3")
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    keys = [{"accessKey": KEY, "secretKey": SECRET}]
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [{"name": "tests", "credentials": keys, "actions": actions}]}))
    master, volume, filer, s3 = _ports(4)
    command = [
        str(Path(sys.executable).with_name("weed")), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", "-s3", f"-s3.port={s3}",
        f"-s3.config={config}", "-volume.max=20", "-master.volumeSizeLimitMB=64",
    ]  # fmt: skip
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        found = Store(f"http://127.0.0.1:{s3}")
        deadline = time.monotonic() + 60
        while True:
            try:
                found.client().create_bucket(Bucket=BUCKET)
                break
            except (BotoCoreError, ClientError):
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.2)
        yield found
        server.kill()


def test_a_round_travels_over_s3(used: Workspace, store: Store, tmp_path: Path) -> None:
    used.dvc("remote", "add", "--default", "--force", "store", f"s3://{BUCKET}/ratchet")
    used.dvc("remote", "modify", "store", "endpointurl", store.endpoint)
    for command in ("round", "push"):
        done = used.ratchet(command, **store.env)
        assert done.returncode == 0, done.stderr
    assert store.client().list_objects_v2(Bucket=BUCKET, Prefix="ratchet/files/md5/")["KeyCount"] > 0

    used.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "Keep data on S3", "--", ".dvc/config")
    clone = Workspace(tmp_path / "clone", used.env)
    subprocess.run(["git", "clone", "-q", str(used.root), str(clone.root)], check=True)
    done = clone.ratchet("pull", **store.env)
    assert done.returncode == 0, done.stderr
    state = sorted(path.relative_to(used.root) for path in (used.root / "data/state").rglob("*") if path.is_file())
    assert state
    for path in state:
        assert (clone.root / path).read_bytes() == (used.root / path).read_bytes()
    files = [path for root in (used.root, clone.root) for path in root.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_wrong_secret_is_refused_in_one_line_without_showing_it(used: Workspace, store: Store) -> None:
    used.dvc("remote", "add", "--default", "--force", "store", f"s3://{BUCKET}/ratchet")
    used.dvc("remote", "modify", "store", "endpointurl", store.endpoint)
    done = used.ratchet("push", **store.env | {"AWS_SECRET_ACCESS_KEY": "not-the-secret-of-anyone"})
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "not-the-secret" not in done.stdout + done.stderr
