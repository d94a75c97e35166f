"""Widgets whose value is moved step by step: sliders and spinners."""

from __future__ import annotations

import re

from environments.oracles.turn import Turn, first, solves
from environments.types import Action, Element, Kind

_HANDLE = "ui-slider-handle ui-corner-all"
_PAGES = 5  # key presses of PageUp from a slider's least to its greatest value


@solves("use-slider")
def _use_slider(turn: Turn) -> Action | None:
    return _set_sliders(turn, [turn.said(r"Select (-?\d+)")], 100 // _PAGES) or turn.click("button", "Submit")


@solves("use-slider-2")
def _use_slider_2(turn: Turn) -> Action | None:
    wanted = turn.said(r"\[([\d,]+)\]").split(",")
    return _set_sliders(turn, wanted, 20 // _PAGES) or turn.click("button", "Submit")


@solves("form-sequence")
def _form_sequence(turn: Turn) -> Action | None:
    box = turn.all("checkbox")[int(turn.said(r"the (\d)\w\w checkbox")) - 1]
    tick = None if "on" in box.states else Action.click(box)
    slide = _set_sliders(turn, [turn.said(r"Select (-?\d+)")], 20 // _PAGES)
    return slide or tick or turn.click("button", "Submit")


@solves("use-spinner")
def _use_spinner(turn: Turn) -> Action | None:
    shown, wanted = int(turn.all("textbox")[0].text), int(turn.said(r"Select (-?\d+)"))
    if shown == wanted:
        return turn.click("button", "Submit")
    up, down, _ = turn.all("button")
    return Action.click(up if wanted > shown else down)


def _set_sliders(turn: Turn, wanted: list[str], page: int) -> Action | None:
    """Move the first slider whose number is not the wanted one; ``page`` is the most that PageUp may add."""
    handles = [image for image in turn.all("image") if image.text == _HANDLE]
    shown = [int(text.text) for text in turn.all("text") if re.fullmatch(r"-?\d+", text.text)]
    return first(
        _move(turn, handle, int(number) - value, page)
        for handle, value, number in zip(handles, shown, wanted, strict=True)
        if int(number) != value
    )


def _move(turn: Turn, handle: Element, missing: int, page: int) -> Action:
    """Focus a handle by a click, then press the key that brings it nearer."""
    clicks = [action.point for action in turn.taken if action.point is not None]
    sliders = sum(image.text == _HANDLE for image in turn.all("image"))
    if not clicks or (sliders > 1 and clicks[-1][1] != handle.point[1]):
        return Action.click(handle)
    if abs(missing) >= page:
        return Action(Kind.PRESS, text="PageUp" if missing > 0 else "PageDown")
    return Action(Kind.PRESS, text="ArrowRight" if missing > 0 else "ArrowLeft")
