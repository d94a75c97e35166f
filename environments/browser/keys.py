"""Keys by their DOM names, as Chromium's Input.dispatchKeyEvent wants them."""

from __future__ import annotations

from typing import Any

_NAMED = {  # DOM name: (key code, the text it types)
    "Backspace": (8, ""),
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Space": (32, " "),
    "PageUp": (33, ""),
    "PageDown": (34, ""),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "Delete": (46, ""),
}


def key_event(key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters of a key's press and its release.

    A single character types itself; a name outside the table is a key that types nothing.
    """
    if len(key) == 1:
        code, text = (ord(key.upper()) if key.isascii() and key.isalnum() else 0), key
    else:
        code, text = _NAMED.get(key, (0, ""))
    name = " " if key == "Space" else key
    both = {"key": name, "code": _dom_code(key), "windowsVirtualKeyCode": code}
    down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
    return both | down, both | {"type": "keyUp"}


def _dom_code(key: str) -> str:
    if len(key) > 1:
        return key
    if key == " ":
        return "Space"
    if key.isascii() and key.isalpha():
        return f"Key{key.upper()}"
    return f"Digit{key}" if key.isascii() and key.isdigit() else ""
