"""The elements of a phone's screen, from trees as uiautomator writes them."""

from __future__ import annotations

import pytest

from environments.android.tree import elements
from environments.types import WorldError

SIZE = (1080, 2400)


def _node(bounds: str, *children: str, kind: str = "android.view.View", **about: str) -> str:
    words = {"class": kind, "bounds": bounds, "enabled": "true"} | about
    attributes = " ".join(f'{name.replace("_", "-")}="{word}"' for name, word in words.items())
    return f"<node {attributes}>{''.join(children)}</node>"


def _lines(*nodes: str) -> list[str]:
    head = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
    xml = f'{head}<hierarchy rotation="0">{"".join(nodes)}</hierarchy>'
    return [element.line for element in elements(xml, SIZE)]


@pytest.mark.parametrize(
    ("kind", "about", "line"),
    [
        ("android.widget.Button", {"text": "OK"}, 'button "OK" 50,20'),
        ("com.google.android.material.button.MaterialButton", {"text": "OK"}, 'button "OK" 50,20'),
        ("android.widget.ImageButton", {"content_desc": "Navigate up"}, 'button "Navigate up" 50,20'),
        ("android.widget.EditText", {"focused": "true"}, 'focus textbox "" 50,20'),
        ("android.widget.EditText", {"password": "true", "text": "••"}, 'password "••" 50,20'),
        ("android.widget.AutoCompleteTextView", {"text": "To"}, 'textbox "To" 50,20'),
        ("androidx.appcompat.widget.AppCompatCheckBox", {"checked": "true", "text": "a"}, 'on checkbox "a" 50,20'),
        ("android.widget.RadioButton", {"text": "a"}, 'radio "a" 50,20'),
        ("androidx.appcompat.widget.SwitchCompat", {"text": "Wi-Fi"}, 'switch "Wi-Fi" 50,20'),
        ("android.widget.CheckedTextView", {"text": "a"}, 'option "a" 50,20'),
        ("android.widget.Spinner", {"text": "a"}, 'select "a" 50,20'),
        ("android.widget.SeekBar", {"text": "40.0"}, 'slider "40.0" 50,20'),
        ("android.widget.ImageView", {"content_desc": "A cat"}, 'image "A cat" 50,20'),
        ("android.widget.TextView", {"text": "a", "selected": "true"}, 'selected text "a" 50,20'),
        ("android.widget.TextView", {"text": " a\n b ", "enabled": "false"}, 'disabled text "a b" 50,20'),
        ("androidx.recyclerview.widget.RecyclerView", {"scrollable": "true"}, 'scrollable list "" 50,20'),
        ("androidx.viewpager.widget.ViewPager", {"scrollable": "true"}, 'scrollable pager "" 50,20'),
        ("android.view.View", {"clickable": "true", "text": "Compose"}, 'button "Compose" 50,20'),
        ("android.view.View", {"checkable": "true", "checked": "true", "text": "x"}, 'on checkbox "x" 50,20'),
        ("android.widget.ImageView", {"clickable": "true", "resource_id": "a.b:id/fab"}, 'image "fab" 50,20'),
    ],
)
def test_a_node_is_named_as_the_web_worlds_would(kind: str, about: dict[str, str], line: str) -> None:
    assert _lines(_node("[0,0][100,40]", kind=kind, **about)) == [line]


def test_what_says_nothing_and_does_nothing_is_left_out() -> None:
    layout = _node("[0,0][1080,200]", _node("[0,0][10,10]", kind="android.widget.ImageView"))
    assert _lines(layout, _node("[0,0][0,0]", text="empty"), _node("[0,2400][1080,2500]", text="below")) == []


def test_a_row_is_left_to_its_words_and_kept_where_it_has_none() -> None:
    words = _node("[0,0][500,50]", text="Ann"), _node("[0,50][500,100]", text="Hello")
    assert _lines(_node("[0,0][1080,100]", *words, clickable="true")) == ['text "Ann" 250,25', 'text "Hello" 250,75']
    bare = _node("[0,0][1080,100]", _node("[0,0][100,100]"), clickable="true", resource_id="a:id/row")
    assert _lines(bare) == ['button "row" 540,50']


def test_a_box_is_cut_at_its_parents_edges_and_the_screens() -> None:
    row = _node("[0,190][1080,300]", text="half")
    assert _lines(_node("[0,100][1080,200]", row)) == ['text "half" 540,195']
    assert _lines(_node("[-100,0][100,40]", text="left")) == ['text "left" 50,20']


def test_elements_come_in_tree_order() -> None:
    lower = _node("[0,500][100,540]", text="first")
    assert _lines(_node("[0,0][1080,2400]", lower, _node("[0,0][100,40]", text="second"), text="outer")) == [
        'text "outer" 540,1200',
        'text "first" 50,520',
        'text "second" 50,20',
    ]


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("ERROR: null root node", "is no XML: .*it begins 'ERROR: null root node'"),
        ("<hierarchy><node class='a'/></hierarchy>", "a node without bounds: .*'class': 'a'"),
    ],
)
def test_what_is_no_tree_is_named(xml: str, message: str) -> None:
    with pytest.raises(WorldError, match=message):
        elements(xml, SIZE)
