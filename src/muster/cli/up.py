"""``muster up``: run the server here."""

import os
import sys
import time
from pathlib import Path

from muster.home import Home
from muster.model.errors import MusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from muster.cli.parse import Parser

_STARTS_WITHIN_SECONDS = 60.0


def define(parser: "Parser") -> None:
    parser.describe(
        "Run the Muster server on this machine, in the foreground: queue and scheduler, over this machine "
        "itself or over a cluster that Slurm runs. "
        "Jobs outlive it: stopping or killing the server touches none of them.",
        "muster up\nmuster up --detach\nmuster up --engine slurm --observe\nmuster up --http 0.0.0.0:7777\n"
        "muster up --store postgresql://muster@db/muster",
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="where browsers and other machines come; none: nowhere (default: 127.0.0.1:6878)",
    )
    parser.add_argument(
        "--store", metavar="URL", help="where the journal is kept (default: SQLite in the home)"
    )
    parser.add_argument("--home", metavar="DIR", help="where state lives (default: MUSTER_HOME)")
    parser.add_argument(
        "--engine", choices=("local", "slurm"), help="what runs the jobs (default: as configured, or local)"
    )
    parser.add_argument(
        "--observe",
        action="store_true",
        help="with slurm: look at everybody's jobs, and change nothing there",
    )
    parser.add_argument("--detach", action="store_true", help="return once it answers")


def run(given: "argparse.Namespace") -> int:
    home = Home(given.home)
    if given.detach:
        return _detached(home)
    import logging

    import msgspec

    from muster.server.config import read_config
    from muster.server.config_values import parse_address
    from muster.server.serve import Settings, serve
    from muster.web.site import Site

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s muster: %(message)s", datefmt="%H:%M:%S")
    http = msgspec.UNSET if given.http is None else parse_address(given.http)
    settings = Settings(http, given.store, given.engine, given.observe)
    config = read_config(home.configuration)
    serve(home, config, settings, lambda where: _greet(home, where), pages=Site)
    return 0


def _greet(home: Home, where: str) -> None:
    from muster import __version__

    print(f"Muster {__version__} is up: {where}", flush=True)
    if "http" in where:
        print("Pages: 'muster web' prints a link that signs you in.", flush=True)
    print(f"Home: {home.path}. Stop with Ctrl-C or 'muster down'; jobs go on.", flush=True)
    if "MUSTER_HOME" not in os.environ and home.path != Home().path:
        print(f"Elsewhere: export MUSTER_HOME={home.path}", flush=True)


def _detached(home: Home) -> int:
    """Start it in the background, and wait until it answers."""
    import subprocess

    if _answers(home):
        raise MusterError(f"a Muster server is already up at {home.socket}; stop it first with: muster down")
    home.make()
    log = home.path / "server.log"
    words = [word for word in sys.argv[1:] if word != "--detach"]
    with open(log, "ab") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "muster", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    end = time.monotonic() + _STARTS_WITHIN_SECONDS
    while time.monotonic() < end:
        if child.poll() is not None:
            return _failed(log, child.returncode)
        if _answers(home):
            print(f"Muster is up: {home.socket} (log: {log})")
            return 0
        time.sleep(0.05)
    return _failed(log, 1)


def _answers(home: Home) -> bool:
    from muster.client import Client, NoServer

    try:
        with Client(home=home.path) as client:
            client.health()
    except NoServer:
        return False
    return True


def _failed(log: Path, code: int) -> int:
    lines = log.read_text(errors="replace").strip().splitlines()
    print(lines[-1] if lines else "muster: the server did not start", file=sys.stderr)
    return code or 1
