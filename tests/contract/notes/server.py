"""A small web application: notes in SQLite, with what real ones do to a browser. Run: server.py PORT DATABASE."""

from __future__ import annotations

import html
import json
import sqlite3
import sys
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

FOLDER = Path(__file__).parent
DATABASE = sys.argv[2]


def query(sql: str, *values: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(DATABASE)) as database, database:
        return database.execute(sql, values).fetchall()


def page(title: str, body: str) -> str:
    return (
        f"<!DOCTYPE html><meta name=viewport content='width=device-width'><title>{title}</title>"
        f"<body><h1>{title}</h1><p class=served>served at {time.time_ns()}</p>{body}</body>"
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        given = {key: values[0] for key, values in parse_qs(address.query).items()}
        match address.path:
            case "/":
                notes = "".join(f"<li>{html.escape(text)}</li>" for (text,) in query("SELECT text FROM note"))
                self.say(page("Notes", f"<p>{self.user}</p><ul>{notes}</ul><a href=/new>New note</a>"))
            case "/old":
                self.redirect("/new")
            case "/api/notes":
                time.sleep(float(given.get("slow", "0")))
                self.say(json.dumps([{"text": text} for (text,) in query("SELECT text FROM note")]), "application/json")
            case "/file":
                self.say("saved", "application/octet-stream")
            case path if (FOLDER / f"{path[1:]}.html").is_file():
                self.say(page(path[1:], (FOLDER / f"{path[1:]}.html").read_text()))
            case _:
                self.say(page("Nothing here", ""), status=404)

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/login":
            name = parse_qs(sent)["name"][0]
            self.redirect("/", f"user={name}")
            return
        text = json.loads(sent)["text"] if "json" in self.headers["Content-Type"] else parse_qs(sent)["text"][0]
        query("INSERT INTO note VALUES (?)", text)
        self.redirect("/")

    @property
    def user(self) -> str:
        return self.headers.get("Cookie", "nobody")

    def redirect(self, path: str, cookie: str = "") -> None:
        self.say("", status=303, Location=path, **({"Set-Cookie": cookie} if cookie else {}))

    def say(self, text: str, kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        body = text.encode()
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
