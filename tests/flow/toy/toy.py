"""The stages of a toy round: each writes small files that follow from its inputs alone."""

import hashlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from flows.servers import die_with

SEED, STATE, ROUND = Path("data/seed"), Path("data/state"), Path("data/round")


def base() -> None:
    write(SEED / "base/weights", "base")


def found() -> None:
    for model in ("agent", "reward"):
        write(SEED / model / "weights", f"{model} from {digest(SEED / 'base/weights')}")
        shutil.copytree(SEED / model, SEED / "state" / model)
    write(SEED / "state/corpus/seed", "rows")
    write(SEED / "state/curriculum.json", json.dumps({"round": 1}))


def explore() -> None:
    write(ROUND / "explored/shard", digest(STATE / "agent/weights") + Path("params.yaml").read_text())


def train() -> None:
    luck = str(time.time_ns()) if "TOY_NOISE" in os.environ else ""
    for model in ("agent", "reward"):
        weights = digest(STATE / model / "weights") + digest(ROUND / "explored/shard") + luck
        write(ROUND / model / "weights", weights)


def decide() -> None:
    number = json.loads((STATE / "curriculum.json").read_text())["round"]
    shutil.copytree(STATE, ROUND / "state", copy_function=shutil.copyfile)
    shutil.copyfile(ROUND / "agent/weights", ROUND / "state/agent/weights")
    write(ROUND / f"state/corpus/round-{number:04d}", "rows")
    write(ROUND / "state/curriculum.json", json.dumps({"round": number + 1}))
    agent = {"champion": {"rate": 0.25}, "challenger": {"rate": 0.5}}
    verdicts = {
        "agent": {"promoted": True, "reason": "promoted: better", **agent},
        "reward": {"promoted": False, "reason": "not promoted: no better"},
    }
    write(ROUND / "decision.json", json.dumps(verdicts))
    write(ROUND / "metrics.json", json.dumps({"agent": {"overall": number}}))
    write(ROUND / "plots/success.csv", f"goal,rate\nclick,{number}\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(name: str) -> None:
    if "RATCHET_ROUND_PID" in os.environ:
        die_with(int(os.environ["RATCHET_ROUND_PID"]))
    write(log := Path(".ratchet/logs") / f"{name}.log", f"{name} begins\n")
    misbehave(name, log)
    globals()[name]()
    log.write_text(f"{time.time_ns()} {name} begins\n{time.time_ns()} {name} ends\n")


def misbehave(name: str, log: Path) -> None:
    if os.environ.get("TOY_HANG") == name:
        write(Path(".ratchet/hanging"), str(os.getpid()))
        signal.pause()
    if os.environ.get("TOY_DIE") == name and not (once := Path(".ratchet/died")).exists():
        write(once, name)
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("TOY_REFUSE") == name:
        write(log, f"ratchet: {name}: no row is left\n")
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1])
