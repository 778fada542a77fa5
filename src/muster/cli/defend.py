"""``muster defend``: somebody wants it to go on, says why, and until when."""

import time
from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import JOB, Parser
from muster.cli.views import clock
from muster.client import Client

_ABOUT = """Say why a job, an array or an effort should go on, and until when; it is in the minutes under
your name. For who answers for it, leads of the team, and admins. What else is said replaces what its charter
says."""
_EXAMPLES = """
muster defend 12 --because "two epochs are left, and it still improves" --until 2026-11-30
muster defend llama-eval --because "the held-out set came late" --until 2026-12-15 --budget 300GPUh
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("what", metavar=JOB, help="a job, an array, or the name of an effort")
    add("--because", metavar="SENTENCE", required=True, help="why it should go on")
    add("--until", metavar="DATE", required=True, help="its new end, like 2026-11-30 or +14d")
    add("--success", metavar="CONDITION", action="append", help="ends it as won; may be repeated")
    add("--failure", "--fail", metavar="CONDITION", action="append", help="ends it as lost; may be repeated")
    add("--budget", metavar="B", help="what it may cost in all, like '200 GPUh'")
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    more = {"success": given.success, "failure": given.failure, "budget": given.budget}
    with Client() as client:
        said = client.defend(given.what, because=given.because, until=given.until, **more)
    times = f", the {_ordinal(said['times'])} time" if said["times"] > 1 else ""
    until = clock(said["until"], time.time())
    print(
        structured(said, given.output)
        or f"{given.what} goes on until {until}, defended by {said['by']}{times}."
    )
    return 0


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"
