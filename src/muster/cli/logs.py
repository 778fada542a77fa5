"""``muster logs``: what a job wrote."""

import sys
from argparse import Namespace

from muster.cli.parse import Parser, add_job, whole_number
from muster.client import Client

_ABOUT = """What a job wrote, also after it has ended. Of an array, or of some of its members, each under
a heading."""
_EXAMPLES = """
muster logs 12
muster logs -f 12
muster logs 12_[1-3]
muster logs 12 --attempt 1
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_job(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="as it comes, until the job has ended")
    parser.add_argument(
        "--attempt", metavar="N", type=whole_number(1), help="of that attempt (default: the last)"
    )
    parser.add_argument("--part", metavar="N", type=whole_number(0), help="of that part of a gang")


def run(given: Namespace) -> int:
    with Client() as client:
        for chunk in client.logs(given.job, given.follow, attempt=given.attempt, part=given.part):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    return 0
