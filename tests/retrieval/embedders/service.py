"""A service that speaks OpenAI's `/embeddings`, on this machine, and says whatever a test has it say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def vector(text: str) -> list[float]:
    return [float(len(text)), float(text.count("a")), 1.0]


def answer(body: Any) -> tuple[int, Any]:
    rows = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(body["input"])]
    return 200, {"object": "list", "data": rows[::-1], "model": body["model"]}  # order is told by `index` alone


class Service:
    """`answers`: what is said next; when it is used up, `answer`. `seen`: (path, headers, body) of each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[Callable[[Any], tuple[int, Any]] | tuple[int, Any]] = []
        self.headers: dict[str, str] = {}
        self.url = ""

    @property
    def texts(self) -> list[list[str]]:
        return [body["input"] for _, _, body in self.seen]

    def reply(self, path: str, headers: dict[str, str], body: Any) -> tuple[int, bytes]:
        self.seen.append((path, headers, body))
        said = self.answers.pop(0) if self.answers else answer
        status, content = said(body) if callable(said) else said
        return status, content if isinstance(content, bytes) else json.dumps(content).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is part of what is tested."""


@contextmanager
def serving() -> Iterator[Service]:
    """A service that runs until the block ends."""
    one = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sent = {name.lower(): value for name, value in self.headers.items()}
            status, content = one.reply(self.path, sent, body)
            self.send_response(status)
            for name, value in {"content-type": "application/json", **one.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    one.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
