"""A real HTTP server on a Unix socket that answers what it was told to, and remembers what it was asked."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

VIEW: dict[str, Any] = {
    "id": "12",
    "name": "fit",
    "owner": "ana",
    "team": "vision",
    "priority": "normal",
    "state": "QUEUED",
    "outcome": None,
    "exit_code": None,
    "signal": None,
    "reason": "no node has 4 GPUs free together",
    "verdict": None,
    "attempt": 0,
    "submitted_at": 1_790_000_000.0,
    "started_at": None,
    "ended_at": None,
    "gpus": 4.0,
    "cpus": 1.0,
    "memory_bytes": 8 << 30,
    "time_limit_seconds": 7200.0,
    "nodes": [],
    "devices": [],
    "command": "python train.py",
    "cwd": "/home/ana",
    "log": None,
    "purpose": "Does 8B beat 3B?",
}


def view(**changed: Any) -> dict[str, Any]:
    return {**VIEW, **changed}


def ended(outcome: str, **changed: Any) -> dict[str, Any]:
    return view(state="ENDED", outcome=outcome, started_at=1.0, ended_at=2.0, reason=None, **changed)


class Chunks:
    """An answer that comes in pieces; with ``cut`` the connection breaks after the last."""

    def __init__(self, *pieces: bytes, cut: bool = False) -> None:
        self.pieces, self.cut = pieces, cut


class Refusal:
    def __init__(self, status: int, sentence: str, exit_code: int) -> None:
        self.status, self.said = status, {"error": sentence, "exit_code": exit_code}


Asked = tuple[str, str, Any]  # method, path, body
Answer = Any


class Canned(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers by method and path (without the query, unless it is given with it)."""

    daemon_threads = True

    def __init__(self, home: Path) -> None:
        self.answers: dict[str, Answer | Callable[[Asked], Answer]] = {}
        self.asked: list[Asked] = []
        self.tokens: list[str | None] = []
        self.connections = 0
        super().__init__(str(home / "muster.sock"), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections += 1
        super().process_request(request, client_address)

    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _ in self.asked]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Canned

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = self.path.removeprefix("/api/v1")
        asked = (self.command, path, body)
        self.server.asked.append(asked)
        self.server.tokens.append(self.headers.get("Authorization"))
        found = self._found(path)
        answer = found(asked) if callable(found) else found
        if isinstance(answer, Chunks):
            self._chunked(answer)
        elif isinstance(answer, Refusal):
            self._json(answer.status, answer.said)
        else:
            self._json(200, answer)

    def _found(self, path: str) -> Answer:
        for key in (f"{self.command} {path}", f"{self.command} {path.partition('?')[0]}"):
            if key in self.server.answers:
                return self.server.answers[key]
        return Refusal(404, f"there is no {path}", 1)

    def _json(self, status: int, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _chunked(self, answer: Chunks) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer.pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if answer.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def address_string(self) -> str:
        return "a client"

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def serving(home: Path) -> Iterator[Canned]:
    with Canned(home) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
