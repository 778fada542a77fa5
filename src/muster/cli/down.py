"""``muster down``: stops the server; jobs go on."""

import os
import time
from argparse import Namespace

from muster.cli.parse import Parser
from muster.client import Client, NoServer
from muster.model.errors import MusterError

_PATIENCE_SECONDS = 30.0
_AGAIN_SECONDS = 0.05


def define(parser: Parser) -> None:
    parser.describe(
        "Stop the server, and return when it has stopped. Jobs go on, and the next server finds them again.",
        "muster down",
    )


def run(given: Namespace) -> int:  # noqa: ARG001
    with Client() as client:
        pid = int(client.health()["pid"])
        client.down()
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        if not (_answers() or _runs(pid)):
            return 0
        time.sleep(_AGAIN_SECONDS)
    raise MusterError(f"the server was told to stop, and is still there after {_PATIENCE_SECONDS:g} s")


def _answers() -> bool:
    try:
        with Client(timeout_seconds=1) as client:
            client.health()
    except NoServer:
        return False
    return True


def _runs(pid: int) -> bool:
    """Whether it still has its store: it gives that up with its life. Elsewhere, silence has to do."""
    if os.environ.get("MUSTER_URL"):
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False
