"""Where the workers of a stage get their engines: each in its own process, or all from vLLM servers, one a base."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from environments import keeper
from models.engine import EngineError, Served, Source, members, role_of
from tasks.base import location
from tasks.files import WORK, digest, log_of, write_whole
from tasks.params import Params
from tasks.progress import log

if TYPE_CHECKING:
    from models.vllm import Server

PYTHON = WORK / "vllm" / "bin" / "python"
START_LIMIT_S, LOOK_EVERY_S, REPORT_EVERY_S = 1800, 0.2, 10
_GPU_MEMORY = 0.9  # the share of it that several servers take
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # those that vLLM has kernels for


@contextmanager
def engines(stage: str, params: Params, checkpoints: Sequence[Path]) -> Iterator[Source]:
    """The source of the engines of ``checkpoints`` for a stage; servers of our own end with it or with this process.

    There is a server for each base. On it, each checkpoint gets a name that was never used before: what the server
    keeps under a name (weights, cached prompts) is never taken for those of another one that lay in the same folder.

    Raises:
        EngineError: there is no server, or it does not answer.
    """
    from models.vllm import Server

    checkpoints = [one for checkpoint in checkpoints for one in members(checkpoint)]
    bases = {role: location(role) for role in map(role_of, checkpoints)}
    source = Source(bases, params.numerics.dtype, params.prompt.screenshots)
    if params.engine.kind == "torch":
        yield source
        return
    groups = alike(source, checkpoints)
    with ExitStack() as stack:
        served: dict[str, Served] = {}
        for adapters in groups:
            role = role_of(adapters[0]) if len(groups) > 1 else ""  # where each has a server
            log_file = log_of("-".join(filter(None, ("vllm", stage, role))))
            command = partial(command_of, source, adapters, 1 / len(groups))
            url = stack.enter_context(_server(params.engine.url, command, log_file))
            served |= stack.enter_context(_named(Server(url), adapters))
        yield replace(source, served=served)


def alike(source: Source, checkpoints: Sequence[Path]) -> list[list[Path]]:
    """The checkpoints of each base."""
    groups: dict[str, list[Path]] = {}
    for folder in checkpoints:
        groups.setdefault(source.bases[role_of(folder)], []).append(folder)
    return list(groups.values())


@contextmanager
def _named(server: Server, adapters: Sequence[Path]) -> Iterator[dict[str, Served]]:
    """The adapters on the server, each under a fresh name, until the context ends."""
    names = {str(folder): f"{role_of(folder)}-{digest(folder)}-{secrets.token_hex(4)}" for folder in adapters}
    try:
        for folder, name in names.items():
            server.load_adapter(name, Path(folder))
        yield {folder: Served(server.url, name) for folder, name in names.items()}
    finally:
        with suppress(EngineError):  # it may be why we are leaving
            for name in names.values():
                server.unload_adapter(name)


@contextmanager
def _server(url: str, command: Callable[[int], list[str]], its_log: Path) -> Iterator[str]:
    """The address of the server at ``url``, or of one of our own where that is empty: ``command`` of a free port."""
    from models.vllm import Server

    if url:
        if not Server(url).answers():
            raise EngineError(
                f"engine.url = {url!r}: no vLLM server answers there; start it, or leave engine.url empty"
            )
        yield url
        return
    if not PYTHON.exists():
        raise EngineError(f"engine.kind = 'vllm': there is no {PYTHON}; run `make vllm`, or set engine.kind: torch")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    its_log.unlink(missing_ok=True)
    with keeper.start(command(port), its_log, _environment()) as process:  # leaving ends it
        _await(Server(f"http://127.0.0.1:{port}"), process, its_log)
        yield f"http://127.0.0.1:{port}"


def command_of(source: Source, adapters: Sequence[Path], share: float, port: int) -> list[str]:
    """What starts a server on the base of ``adapters``, with its ``share`` of the memory for all."""
    from models.tuning import tuned_as

    ranks = [int(tuned_as(folder)["rank"]) for folder in adapters]
    options = {
        "model": _servable(source.bases[role_of(adapters[0])], source.dtype),
        "host": "127.0.0.1",
        "port": port,
        "dtype": source.dtype,
        # The images as here, where torchvision is not; "backend" would ask the same of videos, which need torchvision.
        "mm-processor-kwargs": json.dumps({"use_fast": False}),
        "hf-overrides": json.dumps({"head_dtype": "float32"}),  # or scores would lie in the steps of bfloat16
        "limit-mm-per-prompt": json.dumps({"image": source.screenshots + 1}),
        "max-loras": len(adapters),
        "max-lora-rank": min(rank for rank in _RANKS if rank >= max(ranks)),
    }
    if share < 1:
        options["gpu-memory-utilization"] = _GPU_MEMORY * share
    command = [str(PYTHON.absolute()), "-P", "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--enable-lora", "--enable-scale-out"]  # the second for prompts as tokens
    return command + [f"--{name}={value}" for name, value in options.items()]


def _environment() -> dict[str, str]:
    """Ours, but for the path of modules: the server's environment is its own."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    unless_set = {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_NO_USAGE_STATS": "1"}
    return {**unless_set, **ours, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}


def _servable(base: str, dtype: str) -> str:
    """The base as a server can load it: a copy with the verdict tokens where the base lacks them."""
    from models.network import has_verdicts, load_base, save

    if has_verdicts(base):
        return base
    name = digest(Path(base)) if Path(base).is_dir() else base.replace("/", "--")
    copy = WORK / "served" / f"{name}-{dtype}"
    if not copy.exists():
        log.info("vllm: writing a copy of %s with the verdict tokens", base)
        write_whole(copy, lambda aside: save(load_base(base, dtype, 0, "cpu"), aside))  # the GPU is the server's
    return str(copy)


def _await(server: Server, process: subprocess.Popen[bytes], its_log: Path) -> None:
    """Wait until the server answers, and say so now and then."""
    began = reported = time.monotonic()
    _say(f"vllm: starting the server; its log is {its_log}")
    while not server.answers():
        if process.poll() is not None or time.monotonic() - began > START_LIMIT_S:
            raise EngineError(f"the vLLM server did not start; {its_log} says why")
        if time.monotonic() - reported > REPORT_EVERY_S:
            reported = time.monotonic()
            _say(f"vllm: still starting, {reported - began:.0f} s")
        time.sleep(LOOK_EVERY_S)
    _say(f"vllm: ready after {time.monotonic() - began:.0f} s", last=True)


def _say(line: str, last: bool = False) -> None:
    log.info(line)
    if sys.stderr.isatty():  # the log is not shown on a terminal
        print(f"\r\x1b[K{line}", end="\n" if last else "", file=sys.stderr, flush=True)
