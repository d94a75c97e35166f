"""Any web application as a world, from a goal file alone: see `docs/your-own-web-app.md`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from environments.browser.chromium import Screen, listed
from environments.episodic import EpisodicWorld, held
from environments.goalfile import Value, check, fill, read
from environments.listing import cut
from environments.types import Action, Goal, GoalError, Observation, Start, WorldError
from environments.web.browser import WebBrowser
from environments.web.file import PageCheck, WebFile, WebGoal, fill_path
from environments.web.hooks import Hooks
from environments.web.server import Server


class _Running:
    """The application of one goal file: its server, its hooks and a browser."""

    def __init__(self, path: Path, file: WebFile) -> None:
        app = file.app
        self.path, self.app = path, app
        self.goals = {goal.id: goal for goal in file.goals}
        self.server = Server(app, path.parent)
        try:
            self.hooks = Hooks(app, self.server)
            screen = Screen(*app.viewport)
            self.browser = WebBrowser(self.server.port, screen, app.hosts, app.hide, app.phone)
        except BaseException:
            self.server.close()
            raise
        self._fresh = True

    def begin(self, goal: WebGoal, values: dict[str, Value]) -> None:
        """Put the data back, set the goal up, and open its page in a new profile."""
        if not self.app.reset and not self._fresh:
            self.server.restart()
        for hook in self.app.reset:
            self.hooks.run(hook, {})
        self._fresh = False
        for hook in goal.setup:
            self.hooks.run(hook, values)
        self.browser.renew(self.app.cookies)
        if self.app.login is not None:
            self.browser.open(self.app.login.path)
            self.browser.login(self.app.login.fill)
        self.browser.open(fill_path(goal.path, values))

    def close(self) -> None:
        """End the browser and the server."""
        self.browser.close()
        self.server.close()


class WebApp(EpisodicWorld):
    """A world of one web application at a time. ``Goal.page`` is ``path/of/the/file.yaml#goal-id``.

    Server and browser start with the first reset, and are replaced by the next reset after either broke. An
    application never ends an episode by itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: _Running | None = None
        self._values: dict[str, Value] = {}

    def _begin(self, goal: Goal, seed: int) -> Start:
        running, self._goal = self._open(goal)
        self._values = self._goal.choose(seed)
        running.begin(self._goal, self._values)
        return Start(fill(self._goal.instruction, self._values), _observe(running))

    def _act(self, action: Action) -> Observation:
        running = held(self._running)
        running.browser.perform(action)
        return _observe(running)

    def _reached(self) -> bool:
        if self._running is None:
            return False
        check = self._goal.success
        if isinstance(check, PageCheck):
            return self._holds(check, self._running.browser)
        return self._running.hooks.holds(check, self._values)

    def _holds(self, check: PageCheck, browser: WebBrowser) -> bool:
        """Whether it is true of the page; what throws there is not, since it looks for what has yet to come."""
        asked = f"async (values) => Boolean(await ({check.page}))"
        try:
            return bool(browser.evaluate(f"({asked})({json.dumps(self._values)}).catch(() => false)"))
        except WorldError as error:  # such as one that is no JavaScript
            raise WorldError(f"check {check!r}: {error}") from error

    def _release(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None

    def _open(self, goal: Goal) -> tuple[_Running, WebGoal]:
        """The application of a goal, started where it does not run yet."""
        name, _, goal_id = goal.page.rpartition("#")
        path = Path(name)
        if self._running is None or self._running.path != path:
            self._release()
            try:
                file = check(WebFile, path, read(path))
            except GoalError as error:
                raise WorldError(f"goal {goal.id}: page {goal.page!r}: {error}") from error
            if goal_id in {each.id for each in file.goals}:
                self._running = _Running(path, file)
        if self._running is None or goal_id not in self._running.goals:
            raise WorldError(f"goal {goal.id}: page {goal.page!r} is not one of the goals of {name}")
        return self._running, self._running.goals[goal_id]

    @contextmanager
    def _closed_when_broken(self) -> Iterator[None]:
        """A server that has ended is named rather than what followed from it."""
        with super()._closed_when_broken():
            try:
                yield
            except WorldError:
                if self._running is not None:
                    self._running.server.check()
                raise


def _observe(running: _Running) -> Observation:
    running.server.check()
    found, picture = running.browser.observe("__ratchet.look()")
    return Observation(picture, cut(listed(found)))
