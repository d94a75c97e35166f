"""The other half of :mod:`environments.browsergym`: BrowserGym itself, under a Python that has none of our packages.

A request is a line of JSON, and so is its answer. The end of the requests is how this process learns that the
one that asked is gone, however it went.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import gymnasium
from browsergym.core.action.highlevel import HighLevelActionSet
from PIL import Image

_MISREAD = ("NameError", "ValueError", "SyntaxError")  # not the page's doing, as a key that it has not got is


class Session:
    """The environment in use: a new one is made when another page is asked for."""

    def __init__(self) -> None:
        self._page = ""
        self._env: Any = None

    def reset(self, page: str, seed: int) -> dict[str, Any]:
        """Begin an episode of a BrowserGym environment, given by its Gymnasium id."""
        if page != self._page:
            if self._env is not None:
                self._env.close()
            self._page, self._env = page, _make(page)
        observation, info = self._env.reset(seed=seed)
        return {"instruction": observation["goal"]} | _seen(observation, info, 0.0, ended=False)

    def step(self, action: str) -> dict[str, Any]:
        """Act in BrowserGym's own words, such as ``mouse_click(3, 4)``."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        if observation["last_action_error"].startswith(_MISREAD):
            raise ValueError(observation["last_action_error"])
        return _seen(observation, info, float(reward), ended=bool(terminated or truncated))


def _make(page: str) -> Any:
    benchmark = page.removeprefix("browsergym/").split(".")[0]
    if find_spec(f"browsergym.{benchmark}") is not None:  # registers its environments; the core has a few of its own
        import_module(f"browsergym.{benchmark}")
    actions = HighLevelActionSet(subsets=["coord", "bid"])  # scroll has moved from one to the other
    return gymnasium.make(page, action_mapping=actions.to_python_code, disable_env_checker=True)


def _seen(observation: dict[str, Any], info: dict[str, Any], reward: float, *, ended: bool) -> dict[str, Any]:
    picture = io.BytesIO()
    Image.fromarray(observation["screenshot"]).save(picture, "PNG")
    return {
        "screenshot": base64.b64encode(picture.getvalue()).decode(),
        "nodes": observation["axtree_object"]["nodes"],
        "properties": observation["extra_element_properties"],
        "focused": observation["focused_element_bid"],
        "ended": ended,
        "reward": reward,
        "raw_reward": info.get("task_info", {}).get("RAW_REWARD_GLOBAL"),  # MiniWoB's, which has parts of 1
    }


def _requests() -> Iterator[dict[str, Any]]:
    lines: Queue[str] = Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)  # at once, even from the middle of a call that hangs; the browsers see their pipes close

    Thread(target=read, daemon=True).start()
    while True:
        yield json.loads(lines.get())


def _find_files() -> None:
    """Name the pages of MiniWoB++ and the browser that the set-up put here, where a person has named no others."""
    pages = find_spec("miniwob")
    if pages is not None and pages.submodule_search_locations:
        root = Path(pages.submodule_search_locations[0]) / "html/miniwob"
        os.environ.setdefault("MINIWOB_URL", f"{root.as_uri()}/")
    if (browsers := Path(sys.prefix) / "browsers").is_dir():
        os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", str(browsers))


def _answer(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "action" in request:
            return session.step(request["action"])
        return session.reset(request["page"], request["seed"])
    except Exception as error:  # whatever it is, the other side names it and starts anew
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    _find_files()
    session = Session()
    for request in _requests():
        answers.write(json.dumps(_answer(session, request)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
