"""A server that speaks as slurmrestd does, for tests: what was recorded of Slurm, and whatever goes wrong."""

import json
import socketserver
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

NUMBERS = {"22.05.8": (36, 37, 38), "24.11.5": (40, 41, 42), "26.05.5": (43, 44, 45)}
_PATHS: dict[str, tuple[str, ...]] = {
    "slurm/{}/jobs": ("get",),
    "slurm/{}/nodes": ("get",),
    "slurm/{}/partitions": ("get",),
    "slurm/{}/reservations": ("get",),
    "slurm/{}/job/{{job_id}}": ("get", "post", "delete"),
    "slurm/{}/job/submit": ("post",),
    "slurmdb/{}/jobs": ("get",),
    "slurmdb/{}/user/{{name}}": ("get",),
}
FIELDS = """
    account comment constraints cpus_per_task current_working_directory dependency environment excluded_nodes
    hold kill_warning_delay kill_warning_flags kill_warning_signal licenses maximum_nodes memory_per_cpu
    memory_per_node minimum_nodes name nice open_mode partition prefer qos requeue required_nodes
    required_switches reservation script standard_error standard_input standard_output tasks tasks_per_node
    temporary_disk_per_node time_limit tres_per_node tres_per_task user_id wckey
"""


def described(version: str) -> bytes:
    """What it says of itself, as far as anybody asks."""
    numbers = NUMBERS[version]
    old = 38 in numbers
    paths: dict[str, Any] = {}
    for number in numbers:
        for path, methods in _PATHS.items():
            paths["/" + path.format(f"v0.0.{number}")] = {method: {} for method in methods}
        if not old:
            paths[f"/slurm/v0.0.{number}/node/{{node_name}}"] = {"get": {}, "post": {}}
            filters = [{"name": name} for name in ("start_time", "job_name", "skip_steps", "show_duplicates")]
            del paths[f"/slurmdb/v0.0.{number}/jobs"]
            paths[f"/slurmdb/v0.0.{number}/jobs/"] = {"get": {"parameters": filters}}
    job = {"properties": {field: {} for field in FIELDS.split()}}
    schemas = {} if old else {f"v0.0.{number}_job_desc_msg": job for number in numbers}
    return json.dumps({"openapi": "3.0.3", "paths": paths, "components": {"schemas": schemas}}).encode()


class Asked:
    """One request as it came."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        parts = urlsplit(target)
        self.method, self.path, self.headers, self.body = method, parts.path, headers, body
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}


Reply = tuple[int, bytes]


class Rested(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """``answers``: by path. What is not there is not found. ``spoils`` may do anything else to a request."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, version: str) -> None:
        self.answers: dict[str, Reply] = {"/openapi/v3": (200, described(version))}
        self.version = version
        self.asked: list[Asked] = []
        self.connections = 0  # that something was asked over
        self.spoils: Callable[[BaseHTTPRequestHandler, Asked], bool] = lambda *_: False
        super().__init__(str(path), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Rested

    is_known = False

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *_: object) -> None:
        """Nobody listens."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(self.command, self.path, dict(self.headers), body)
        self.server.asked.append(asked)
        self.server.connections += not self.is_known
        self.is_known = True
        if self.server.spoils(self, asked):
            self.close_connection = True
            return
        status, said = self.server.answers.get(asked.path, (404, b"Unable find requested URL."))
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - as the library calls them


def breaks_off(handler: BaseHTTPRequestHandler, _: Asked) -> bool:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"jobs": [')
    return True


def hangs_up(handler: BaseHTTPRequestHandler, _: Asked) -> bool:
    handler.wfile.flush()
    return True


def drips(handler: BaseHTTPRequestHandler, _: Asked) -> bool:
    """A byte now and then, without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n")
    for _ in range(200):
        try:
            handler.wfile.write(b" ")
        except OSError:
            break
        time.sleep(0.02)
    return True


def mumbles(handler: BaseHTTPRequestHandler, _: Asked) -> bool:
    handler.wfile.write(b"what?\r\n\r\n")
    return True


def endless(handler: BaseHTTPRequestHandler, _: Asked) -> bool:
    """In chunks, so that nobody knows how much is to come."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(10_000):
            handler.wfile.write(b"2000\r\n" + b" " * 0x2000 + b"\r\n")
    except OSError:
        return True
    return True
