"""``muster stop``: ends jobs for good."""

from argparse import ArgumentTypeError, Namespace

from muster.cli.act import on_each
from muster.cli.parse import Parser, add_jobs
from muster.client import Client

_ABOUT = """End jobs for good: SIGTERM, then after a grace period SIGKILL, to every process of each.
An array's id ends all of its members."""
_EXAMPLES = """
muster stop 12
muster stop 12_3 13 --because "wrong data"
muster stop 12 --now
"""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_jobs(parser)
    parser.add_argument("--because", metavar="REASON", help="what to tell the owner, and the job")
    parser.add_argument("--grace", metavar="TIME", type=_seconds, help="how long it may take, like 90s or 2m")
    parser.add_argument("--now", dest="grace", action="store_const", const=0.0, help="without any grace")


def _seconds(text: str) -> float:
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not number.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a time; write it like 90s or 2m")
    return int(number) * unit


def run(given: Namespace) -> int:
    with Client() as client:
        return on_each(
            given.jobs, lambda job: client.stop(job, because=given.because, grace_seconds=given.grace)
        )
