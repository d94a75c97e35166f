"""How much of a screen is listed, in the worlds whose apps and pages are anyone's."""

from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from hand_built import picture

from environments import android
from environments.android import Android
from environments.android.adb import Phone
from environments.browsergym import BrowserGym
from environments.listing import LONGEST_TEXT, MOST_ELEMENTS, cut
from environments.registry import load_goals
from environments.types import Element

LONG = "so much to read " * 100
ROW = '<node class="android.widget.{kind}" bounds="[0,0][40,52]" text="{text}" />'
GOALS = {
    "android": {
        "app": "a.b/.Main",
        "goals": [{"id": "read", "tier": 1, "max_steps": 1, "instruction": "-", "success": {"screen": "the end"}}],
    }
}


def test_texts_give_way_and_the_order_stays() -> None:
    found = [Element("text" if place % 2 else "button", str(place), (0, 0, 9, 9)) for place in range(300)]
    kept = cut(found)
    assert [int(element.text) for element in kept] == [place for place in range(300) if place < 100 or not place % 2]
    assert cut(found[:MOST_ELEMENTS]) == tuple(found[:MOST_ELEMENTS])
    assert cut([Element("text", LONG, (0, 0, 9, 9))])[0].text == LONG[:LONGEST_TEXT]


class _Reader(Phone):
    """A phone that shows an endless text."""

    def __init__(self) -> None: ...

    def start(self, app: str) -> None: ...

    def release(self) -> None: ...

    def screenshot(self) -> bytes:
        return picture(0)

    def tree(self) -> str:
        rows = [ROW.format(kind="TextView", text=f"{LONG}the end")] + [ROW.format(kind="Button", text="more")] * 300
        return f"<hierarchy>{''.join(rows)}</hierarchy>"


def test_a_phones_long_texts_are_cut_and_judged_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(android, "Phone", _Reader)
    file = tmp_path / "reader.yaml"
    file.write_text(yaml.safe_dump(GOALS))
    with closing(Android()) as world:
        seen = world.reset(load_goals(file)["read"], 0).observation
        assert {element.text for element in seen.elements} == {"more"}
        assert len(seen.elements) == MOST_ELEMENTS
        assert world.verdict()


def test_what_browsergym_shows_is_cut() -> None:
    texts = [
        {"nodeId": str(place), "role": {"value": "StaticText"}, "name": {"value": LONG}, "browsergym_id": "a"}
        for place in range(1, 301)
    ]
    root = {"nodeId": "0", "role": {"value": "RootWebArea"}, "childIds": [text["nodeId"] for text in texts]}
    known = {"a": {"bbox": [0, 0, 9, 9], "visibility": 1.0}}
    told = {"screenshot": base64.b64encode(picture(0)).decode(), "nodes": [root, *texts], "properties": known}
    seen = BrowserGym()._observe({**told, "focused": "", "ended": False, "reward": 0.0, "raw_reward": None})
    assert [element.text for element in seen.elements] == [LONG[:LONGEST_TEXT]] * MOST_ELEMENTS
