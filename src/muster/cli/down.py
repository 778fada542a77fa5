"""``muster down``: stops the server; jobs go on."""

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
        client.down()
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            with Client(timeout_seconds=1) as client:
                client.health()
        except NoServer:
            return 0
        time.sleep(_AGAIN_SECONDS)
    raise MusterError(f"the server was told to stop, and still answers after {_PATIENCE_SECONDS:g} s")
