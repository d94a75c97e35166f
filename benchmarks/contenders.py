"""One process of ``benchmarks.worlds``: plays one contender when asked, under that contender's own Python.

A request is a line of JSON and so is its answer: ``{"page": ...}`` makes ready, ``{"seconds": ...}`` plays. Every
contender does the same in a step: a real click at a seeded point of the page, then reward and done, the elements or
DOM, and the screenshot as an array of RGB.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from PIL import Image

EVALUATIONS = {"advance": "page time", "look": "elements, reward, done", "pressScrollbar": "is it a scrollbar"}
PAGE_PX = (160, 210)
BELOW_PX = 50  # the instruction stands above
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Contender(Protocol):
    EPISODE_STEPS: int

    def open(self, page: str) -> None: ...
    def reset(self, seed: int) -> None: ...
    def step(self, x: int, y: int) -> bool: ...
    def close(self) -> None: ...


def page_seed(seed: int) -> int:
    """The seed that BrowserGym gives to a page when it is given this one: all play the same episodes."""
    return int(np.random.RandomState(seed).randint(0, 1_000_000))


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


class Ours:
    EPISODE_STEPS = 10

    def __init__(self) -> None:
        from environments.miniwob import MiniWoB

        self.world = MiniWoB()

    def open(self, page: str) -> None:
        from environments.types import Goal

        self.goal = Goal(page, "", page, 1, self.EPISODE_STEPS)

    def reset(self, seed: int) -> None:
        pixels(self.world.reset(self.goal, page_seed(seed)).observation.screenshot)

    def step(self, x: int, y: int) -> bool:
        from environments.types import Action, Kind

        pixels(self.world.step(Action(Kind.CLICK, (x, y), ("point", ""))).screenshot)
        return self.world.ended

    def close(self) -> None:
        self.world.close()


class Bare(Ours):
    """The least that a step can be on our browser: one frame and its PNG, again and again."""

    EPISODE_STEPS = 10_000

    def step(self, x: int, y: int) -> bool:
        from environments.episodic import held

        held(self.world._browser).screenshot()
        return False


def _evaluation(code: str) -> str:
    """The part of a step that evaluates an expression; a reset is no part of any."""
    return next((part for word, part in EVALUATIONS.items() if word in code), "reset")


class Parts(Ours):
    """Our world, with the time of each part of a step."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def reset(self, seed: int) -> None:
        first, kept = self.world._browser is None, self.seconds
        self.seconds = defaultdict(list)  # a reset is no part of a step
        super().reset(seed)
        self.seconds = kept
        if first:
            self._time_browser(self.world._browser)

    def step(self, x: int, y: int) -> bool:
        from environments.types import Action, Kind

        with self._part("all"):
            seen = self.world.step(Action(Kind.CLICK, (x, y), ("point", "")))
            with self._part("decoding the PNG"):
                pixels(seen.screenshot)
        return self.world.ended

    def _time_browser(self, browser: Any) -> None:
        for name, part in (("click", "mouse events"), ("screenshot", "frame and PNG")):
            self._wrap(browser, name, lambda *_, part=part: part)
        self._wrap(browser, "evaluate", _evaluation)

    def _wrap(self, browser: Any, name: str, part: Callable[..., str]) -> None:
        method = getattr(browser, name)

        def timed(*arguments: Any) -> Any:
            with self._part(part(*arguments)):
                return method(*arguments)

        setattr(browser, name, timed)

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - begun)


class Stock:
    """MiniWoB++ as its package drives it: Selenium and chromedriver. Each page has a browser of its own."""

    EPISODE_STEPS = 10

    def __init__(self) -> None:
        self.env: Any = None

    def open(self, page: str) -> None:
        import gymnasium
        import miniwob
        from miniwob.action import ActionTypes

        gymnasium.register_envs(miniwob)
        if self.env is not None:
            self.env.close()
        self.click = ActionTypes.CLICK_COORDS
        self.env = gymnasium.make(f"miniwob/{page}-v1", disable_env_checker=True)

    def reset(self, seed: int) -> None:
        self.env.reset(seed=page_seed(seed))

    def step(self, x: int, y: int) -> bool:
        action = self.env.unwrapped.create_action(self.click, coords=np.array([x, y], np.float32))
        return bool(self.env.step(action)[2])

    def close(self) -> None:
        self.env.close()


class BrowserGym:
    """BrowserGym as it comes: with half a second before it looks, and a tenth before each command."""

    EPISODE_STEPS = 10
    OPTIONS: ClassVar[dict[str, Any]] = {}
    ZOOM = 1.5

    def __init__(self) -> None:
        self.env: Any = None

    def open(self, page: str) -> None:
        import browsergym.miniwob
        import gymnasium
        from browsergym.core.action.highlevel import HighLevelActionSet

        if self.env is not None:
            self.env.close()
        pages = find_spec("miniwob")
        assert pages is not None, "the peers' environment has miniwob"
        root = Path(str(pages.origin)).parent / "html/miniwob"
        os.environ["MINIWOB_URL"] = f"{root.as_uri()}/"
        os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(Path(sys.prefix) / "browsers"))
        actions = HighLevelActionSet(subsets=["coord"]).to_python_code
        name = f"{browsergym.miniwob.__name__.replace('.', '/')}.{page}"
        self.env = gymnasium.make(name, action_mapping=actions, disable_env_checker=True, **self.OPTIONS)

    def reset(self, seed: int) -> None:
        self.env.reset(seed=seed)

    def step(self, x: int, y: int) -> bool:
        return bool(self.env.step(f"mouse_click({x * self.ZOOM:.0f}, {y * self.ZOOM:.0f})")[2])

    def close(self) -> None:
        self.env.close()


class BrowserGymAtOnce(BrowserGym):
    """BrowserGym without its delays."""

    OPTIONS: ClassVar[dict[str, float]] = {"slow_mo": 0, "pre_observation_delay": 0.0}


CONTENDERS: dict[str, type[Contender]] = {
    "ours": Ours, "bare": Bare, "parts": Parts,
    "stock": Stock, "browsergym": BrowserGym, "browsergym-at-once": BrowserGymAtOnce,
}  # fmt: skip


def tree() -> list[int]:
    """This process and all below it."""
    found, ahead = [], [os.getpid()]
    while ahead:
        pid = ahead.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):  # it has just ended
                ahead += map(int, children.read_text().split())
    return found


_ticks: dict[int, int] = {}  # by process; those that have ended keep what they had when last looked at


def cpu_s() -> float:
    """CPU seconds of the tree so far, but for what its ended processes did since they were last looked at."""
    for pid in tree():
        with suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            _ticks[pid] = int(fields[11]) + int(fields[12])
    return sum(_ticks.values()) / TICKS_PER_S


def memory_mib() -> float:
    """Proportional set size of the tree."""
    kib = 0
    for pid in tree():
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            kib += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib / 1024


@contextmanager
def metered(sums: defaultdict[str, float], name: str) -> Iterator[None]:
    cpu, wall = cpu_s(), time.perf_counter()
    yield
    sums[f"{name}_s"] += time.perf_counter() - wall
    sums[f"{name}_cpu_s"] += cpu_s() - cpu


def play(contender: Contender, draw: random.Random, seconds: float) -> dict[str, Any]:
    """Episodes of random clicks for about so many seconds; the last one is cut off."""
    sums: defaultdict[str, float] = defaultdict(float)
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        with metered(sums, "reset"):
            contender.reset(draw.randrange(1 << 31))
        with metered(sums, "step"):
            for _ in range(contender.EPISODE_STEPS):
                x, y = draw.randrange(PAGE_PX[0]), draw.randrange(BELOW_PX, PAGE_PX[1])
                over = contender.step(x, y)
                sums["steps"] += 1
                if over or time.perf_counter() - begun > seconds:
                    break
        sums["resets"] += 1
    return dict(sums) | {"wall_s": time.perf_counter() - begun, "memory_mib": memory_mib()}


def main() -> None:
    contender, place = CONTENDERS[sys.argv[1]](), sys.argv[2]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        request = json.loads(line)
        if "page" in request:
            draw = random.Random(f"{request['page']}/{place}")
            contender.open(request["page"])
            play(contender, random.Random(0), 0.01)  # starts the browser
            answer = {}
        else:
            answer = play(contender, draw, request["seconds"])
            answer |= {"parts": dict(contender.seconds)} if isinstance(contender, Parts) else {}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    contender.close()


if __name__ == "__main__":
    main()
