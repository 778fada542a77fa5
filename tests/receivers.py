"""Those who receive: a web server and a mail server, real ones, that remember what they were sent."""

import base64
import json
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

USER, PASSWORD = "muster", "open sesame"


class Web(ThreadingHTTPServer):
    """Takes whatever is posted; or answers with these statuses first, or not at all until it is let."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *statuses: int, hangs: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = list(statuses)
        self.received: list[tuple[str, Any]] = []  # path and body
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        if not hangs:
            self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook/s3cret"

    def texts(self) -> list[str]:
        return [body["text"] for _, body in self.received]


class _Handler(BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.set()
        self.server.may_answer.wait(30)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.received.append((self.path, body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def web(*statuses: int, hangs: bool = False) -> Iterator[Web]:
    with Web(*statuses, hangs=hangs) as server, _served(server):
        yield server


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


class Postman(socketserver.ThreadingTCPServer):
    """A mail server, as far as mail is handed over to it."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, certificate: tuple[Path, Path] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.certificate = certificate
        self.refused: set[str] = set()
        self.mails: list[tuple[str, list[str], EmailMessage]] = []  # sender, recipients, mail
        self.raw: list[bytes] = []
        self.logins: list[tuple[str, str, bool]] = []  # who, with what, and whether it was over TLS

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Conversation(socketserver.StreamRequestHandler):
    server: Postman
    is_safe = False
    sender = ""

    def handle(self) -> None:
        with suppress(OSError):  # who does not trust us leaves
            self.converse()

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def converse(self) -> None:
        self.recipients: list[str] = []
        self.say("220 here")
        while line := self.rfile.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            if verb.upper() == "QUIT":
                self.say("221 bye")
                return
            getattr(self, f"on_{verb.lower()}", self.unknown)(rest)

    def say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    def unknown(self, _: str) -> None:
        self.say("502 what?")

    def on_ehlo(self, _: str) -> None:
        offered = ["250-here", "250-AUTH PLAIN"]
        if self.server.certificate is not None and not self.is_safe:
            offered.append("250-STARTTLS")
        self.say(*offered, "250 8BITMIME")

    def on_starttls(self, _: str) -> None:
        assert self.server.certificate is not None
        self.say("220 go on")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.server.certificate)
        self.connection = context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.is_safe = True

    def on_auth(self, rest: str) -> None:
        _, name, password = base64.b64decode(rest.split()[1]).decode().split("\0")
        self.server.logins.append((name, password, self.is_safe))
        self.say("235 welcome" if (name, password) == (USER, PASSWORD) else "535 no")

    def on_mail(self, rest: str) -> None:
        self.sender = rest.partition("<")[2].partition(">")[0]
        self.say("250 ok")

    def on_rcpt(self, rest: str) -> None:
        recipient = rest.partition("<")[2].partition(">")[0]
        if recipient in self.server.refused:
            self.say("550 nobody of that name")
            return
        self.recipients.append(recipient)
        self.say("250 ok")

    def on_data(self, _: str) -> None:
        self.say("354 go ahead")
        raw = b""
        while (line := self.rfile.readline()) != b".\r\n":
            raw += line.removeprefix(b".")
        mail = message_from_bytes(raw, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.server.raw.append(raw)
        self.server.mails.append((self.sender, self.recipients, mail))
        self.say("250 taken")

    def on_rset(self, _: str) -> None:
        self.say("250 ok")


@contextmanager
def postman(certificate: tuple[Path, Path] | None = None) -> Iterator[Postman]:
    with Postman(certificate) as server, _served(server):
        yield server


def certificate(folder: Path) -> tuple[Path, Path]:
    """One that this machine's name for itself goes by, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    found, key = folder / "certificate.pem", folder / "key.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(found)]
    subprocess.run([openssl, *made.split(), *names, *files], check=True, capture_output=True)
    return found, key


def closed_port() -> int:
    """Where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
