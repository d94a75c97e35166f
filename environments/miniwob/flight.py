"""A browser for FlightWoB: pages of frames, larger than the others, that want one web origin.

A frame that is a file may not speak to the page around it, nor fetch data. So the package's folder stands
for the origin :data:`ORIGIN`: each request is answered with the file, and no server runs.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from environments.browser.chromium import Browser, Screen

ORIGIN = "http://flight.invalid/"
SCREEN = Screen(375, 667)
_SCRIPT = Path(__file__).with_name("flight.js")


class FlightBrowser(Browser):
    """One browser process with one page of an origin that is a folder.

    Args:
        folder: the folder whose files the page may load; everything else is refused.
        scripts: as of :class:`Browser`.
    """

    def __init__(self, folder: Path, scripts: Sequence[Path]) -> None:
        self._folder = folder.resolve()
        super().__init__(ORIGIN, [*scripts, _SCRIPT], screen=SCREEN)

    def _allow_or_refuse(self, params: dict[str, Any]) -> None:
        """Answer with the file. Where there is none, the document stays what it was."""
        request, url = params["requestId"], urlsplit(params["request"]["url"])
        file = (self._folder / unquote(url.path).lstrip("/")).resolve()
        if f"{url.scheme}://{url.netloc}/" != ORIGIN or not file.is_relative_to(self._folder) or not file.is_file():
            self._tell("Fetch.failRequest", requestId=request, errorReason="Aborted")
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self._tell(
            "Fetch.fulfillRequest",
            requestId=request,
            responseCode=200,
            responseHeaders=[{"name": "Content-Type", "value": kind}],
            body=base64.b64encode(file.read_bytes()).decode(),
        )
