"""``ratchet stage`` for a toy round, whose stages write small files that follow from their inputs alone."""

import hashlib
import io
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import yaml

from flows import cli
from tasks import stages
from tasks.errors import Edited, StageError
from tasks.stages import given

SEED, STATE, ROUND = Path("data/seed"), Path("data/state"), Path("data/round")
GOALS = ("click", "form", "mail", "file")  # a tier each
# (query, label, champion, challenger): F1 of steps 0.5 and 0.8, of outcomes 0.667 and 1.
JUDGED = (
    *(("step", True, 0.9, 0.9), ("step", True, 0.1, 0.9), ("step", False, 0.9, 0.9), ("step", False, 0.1, 0.1)),
    *(("outcome", True, 0.9, 0.9), ("outcome", False, 0.9, 0.1)),
)


def base() -> None:
    assert Path(os.environ.get("TOY_NEEDS", ".")).exists()
    if not (download := Path(".ratchet/downloads/text")).exists():
        assert "TOY_OFFLINE" not in os.environ
        write(download, "text")
    model = yaml.safe_load(Path("params.yaml").read_text())["base"]["agent"]
    write(SEED / "base/weights", (Path(model) / "weights").read_text())


def found() -> None:
    for model in ("agent", "reward"):
        write(SEED / model / "weights", f"{model} from {digest(SEED / 'base/weights')}")
        shutil.copytree(SEED / model, SEED / "state" / model)
    write(SEED / "state/corpus/seed", "rows")
    write(SEED / "state/curriculum.json", json.dumps({"round": 1}))


def explore() -> None:
    write(ROUND / "explored/shard", digest(STATE / "agent/weights") + Path("params.yaml").read_text())


def train() -> None:
    luck = os.environ.get("TOY_NOISE", "")
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
    write(ROUND / "plots/success.csv", f"goal,rate\nclick,{number}\n")
    evaluate(number)


def evaluate(number: int) -> None:
    """The champion solves `click`; the challenger also one goal more, another one in each round, or by luck all."""
    from tasks.evidence.looks import Verdict
    from tasks.evidence.metrics import Judgement, summarise
    from tasks.records import write_trajectories

    better = GOALS if "TOY_NOISE" in os.environ else (GOALS[0], GOALS[min(number, 3)])
    solved = {"champion": GOALS[:1], "challenger": better}
    folder = ROUND / "evaluation"
    folder.mkdir(parents=True, exist_ok=True)
    write_trajectories(folder, [played(number, goal, model, solved[model]) for goal in GOALS for model in solved])
    episodes = [
        Verdict(look=1, goal=goal, tier=tier, seed=number, **{model: goal in goals for model, goals in solved.items()})
        for tier, goal in enumerate(GOALS, 1)
    ]
    about = {"source": "pairs", "kind": "click"}
    judged = [Judgement(id="", query=q, label=label, champion=a, challenger=b, **about) for q, label, a, b in JUDGED]
    write(ROUND / "metrics.json", json.dumps(summarise(episodes, judged, [], [])))


def played(number: int, goal: str, model: str, solved: tuple[str, ...]) -> object:
    """One click on OK, on a screen of the model's own shade."""
    from PIL import Image

    from environments.types import Action, Element, End, Episode, Goal, Instance, Observation, Step
    from tasks.records import Origin, Trajectory

    png, button = io.BytesIO(), Element("button", "OK", (20, 40, 60, 20))
    Image.new("RGB", (160, 210), (0, 90, 200 + number if model == "challenger" else 0)).save(png, format="PNG")
    screen = Observation(png.getvalue(), (button,))
    instance = Instance(Goal(goal, "worlds:World", goal, GOALS.index(goal) + 1, 4), number)
    episode = Episode(instance, f'Do "{goal}" & <go>', (Step(screen, Action.click(button)),), screen, End.COMPLETED)
    name = f"round-{number:04d}/{instance.name}/{model}"
    return Trajectory(name, number, Origin.EVALUATION, episode, verdict=goal in solved)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(name: str) -> None:
    """As :func:`tasks.stages.run`, for these stages, and without params that only real ones have."""
    log = Path(".ratchet/logs") / f"{name}.log"
    write(log, f"{name} begins\n")
    before = given(name)
    misbehave(name)
    globals()[name]()
    if edited := [path for path, content in given(name).items() if content != before.get(path)]:
        raise Edited(f"{edited[0]}: edited while {name} ran")
    log.write_text(f"{time.time_ns()} {name} begins\n{time.time_ns()} {name} ends\n")


def misbehave(name: str) -> None:
    if os.environ.get("TOY_HANG") == name:
        write(Path(".ratchet/hanging"), str(os.getpid()))
        signal.pause()
    if os.environ.get("TOY_DIE") == name and not (once := Path(".ratchet/died")).exists():
        write(once, name)
        os.kill(os.getpid(), signal.SIGKILL)
    if edit := json.loads(os.environ.get("TOY_EDIT", "{}")).get(name):
        file, before, after = edit
        write(Path(file), Path(file).read_text().replace(before, after))
    if os.environ.get("TOY_REFUSE") == name:
        raise StageError(f"{name}: no row is left")


if __name__ == "__main__":
    stages.run = run
    sys.argv.insert(1, "stage")
    cli.main()
