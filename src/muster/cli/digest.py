"""``muster digest``: what needs an answer from you today, and what has happened; nothing else."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, whole_number
from muster.cli.text import safe_lines
from muster.client import Client

_ABOUT = """What needs an answer from you, each with the one command that answers it, and what has happened
since you last looked. A question stays until it is answered; what has happened is told once."""
_EXAMPLES = """
muster digest
muster digest --done 14
muster digest -o json
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("--peek", action="store_true", help="leave what is new as new")
    parser.add_argument("--user", metavar="NAME", help="another person's; for admins")
    parser.add_argument(
        "--done",
        metavar="NUMBER",
        type=whole_number(1),
        action="append",
        default=[],
        help="this question needs no answer any more; may be repeated",
    )
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    with Client() as client:
        for number in given.done:
            client.settle(number)
        found = client.digest(given.user, peek=given.peek)
    said = structured(found, given.output)
    print(safe_lines(found["text"]) if said is None else said)
    return 0
