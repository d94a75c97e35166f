"""Pages that are solved by clicking what the instruction names: buttons, links, tabs, boxes to tick."""

from __future__ import annotations

from environments.oracles.synonyms import same_meaning
from environments.oracles.turn import Turn, first, solves
from environments.types import Action, Element, Kind

_DIGITS = (  # seven rows of four boxes each, as the page draws them
    "0110 1001 1001 1001 1001 1001 0110",
    "0010 0110 0010 0010 0010 0010 0010",
    "0110 1001 1001 0010 0100 1000 1111",
    "0110 1001 0001 0110 0001 1001 0110",
    "1000 1010 1010 1111 0010 0010 0010",
    "1111 1000 1000 1110 0001 1001 0110",
    "0110 1001 1000 1110 1001 1001 0110",
    "1111 1001 0001 0010 0010 0100 0100",
    "0110 1001 1001 0110 1001 1001 0110",
    "0110 1001 1001 0111 0001 1001 0110",
)


@solves("click-test")
def _click_test(turn: Turn) -> Action | None:
    return turn.click("button", "Click Me!")


@solves("click-test-2", "click-test-transfer")
def _click_numbered(turn: Turn) -> Action | None:
    return turn.click("button", turn.said(r"button (\w+)"))


@solves("click-button", "unicode-test")
def _click_button(turn: Turn) -> Action | None:
    return turn.click("button", turn.quoted[0])


@solves("click-link")
def _click_link(turn: Turn) -> Action | None:
    return turn.click("link", turn.quoted[0])


@solves("click-dialog", "click-dialog-2")
def _click_dialog(turn: Turn) -> Action | None:
    label = turn.quoted[0]
    return turn.click("button", "Close" if label == "x" else label)


@solves("click-button-sequence")
def _click_button_sequence(turn: Turn) -> Action | None:
    return turn.click("button", "ONE") or turn.click("button", "TWO")


@solves("click-tab")
def _click_tab(turn: Turn) -> Action | None:
    return turn.click("tab", turn.said(r"Click on (Tab #\d)"))


@solves("click-collapsible", "click-collapsible-nodelay")
def _click_collapsible(turn: Turn) -> Action | None:
    return turn.switch_on("tab", turn.all("tab")[0].text) or turn.click("button", "Submit")


@solves(
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-hard",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
)
def _click_hidden_link(turn: Turn) -> Action | None:
    link = turn.quoted[0]
    closed = [tab for tab in turn.all("tab") if "on" not in tab.states and not turn.clicked("tab", tab.text)]
    if turn.clicked("link", link) or turn.find("link", link) or not closed:
        return turn.click("link", link)
    return Action.click(closed[0])


@solves("navigate-tree")
def _navigate_tree(turn: Turn) -> Action | None:
    name = turn.quoted[0]
    closed = [folder for folder in turn.all("image") if "xpandable" in folder.text]
    if turn.clicked("link", name) or turn.find("link", name) or not closed:
        return turn.click("link", name)
    return Action.click(closed[-1])


@solves("click-menu")
def _click_menu(turn: Turn) -> Action | None:
    """By keys: a click on an item that holds others would choose it."""
    plan = [Action(Kind.PRESS, text="Tab")]
    for item in turn.said(r"Select (.+)").split(">"):
        plan += [Action(Kind.TYPE, text=item), Action(Kind.PRESS, text="ArrowRight")]
    plan[-1] = Action(Kind.PRESS, text="Enter")
    return plan[len(turn.taken)] if len(turn.taken) < len(plan) else None


@solves("focus-text")
def _focus_text(turn: Turn) -> Action | None:
    return None if turn.taken else Action.click(turn.all("textbox")[0])


@solves("focus-text-2")
def _focus_text_2(turn: Turn) -> Action | None:
    nth = int(turn.said(r"(\d)\w\w input"))
    return None if turn.taken else Action.click(turn.all("textbox")[nth - 1])


@solves("click-widget")
def _click_widget(turn: Turn) -> Action | None:
    kind = {"text": "textbox"}.get(turn.quoted[0], turn.quoted[0])
    return None if turn.taken else Action.click(turn.all(kind)[0])


@solves("click-option")
def _click_option(turn: Turn) -> Action | None:
    choice = turn.said(r"Select (.+) and click")
    return turn.switch_on("radio", choice) or turn.click("button", "Submit")


@solves("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer")
def _click_checkboxes(turn: Turn) -> Action | None:
    wanted = turn.said(r"Select (.+) and click")
    names = [] if wanted == "nothing" else wanted.split(", ")
    return first(turn.switch_on("checkbox", name) for name in names) or turn.click("button", "Submit")


@solves("click-checkboxes-soft")
def _click_checkboxes_soft(turn: Turn) -> Action | None:
    wanted = turn.said(r"similar to (.+) and click").split(", ")
    meant = [box for box in turn.all("checkbox") if any(same_meaning(box.text, word) for word in wanted)]
    return first(turn.switch_on("checkbox", box.text) for box in meant) or turn.click("button", "Submit")


@solves("number-checkboxes")
def _number_checkboxes(turn: Turn) -> Action | None:
    pattern = _DIGITS[int(turn.quoted[0])].replace(" ", "")
    boxes = zip(turn.all("checkbox"), pattern, strict=False)  # the last row may lie below the screen
    return first(_set(box, mark == "1") for box, mark in boxes) or turn.click("button", "Submit")


def _set(box: Element, on: bool) -> Action | None:
    """Click a box unless it is as it should be."""
    return None if ("on" in box.states) == on else Action.click(box)


@solves("grid-coordinate")
def _grid_coordinate(turn: Turn) -> Action | None:
    right, up = (int(number) for number in turn.said(r"\((-?\d,-?\d)\)").split(","))
    points = [image for image in turn.all("image") if image.text == "plot-point"]
    xs, ys = [point.point[0] for point in points], [point.point[1] for point in points]
    x = (min(xs) + max(xs)) / 2 + right * (max(xs) - min(xs)) / 4
    y = (min(ys) + max(ys)) / 2 - up * (max(ys) - min(ys)) / 4
    nearest = min(points, key=lambda point: abs(point.point[0] - x) + abs(point.point[1] - y))
    return None if turn.taken else Action.click(nearest)


@solves("click-pie", "click-pie-nodelay")
def _click_pie(turn: Turn) -> Action | None:
    opened = turn.click("link", "+")
    if opened is not None or len(turn.taken) > 1:
        return opened
    return Action.click(next(element for element in turn.elements if element.text == turn.quoted[0]))
