"""``muster take``: answers for jobs whose owner has left."""

from argparse import Namespace

from muster.cli.act import on_each
from muster.cli.parse import Parser, add_jobs
from muster.cli.text import one_line
from muster.client import Client

_ABOUT = """Answer from now on for jobs whose owner has left: forgotten work is stopped at the next review
unless somebody does. For members of the job's team, leads and admins. It goes on as who submitted it."""
_EXAMPLES = """
muster take 12
muster take 12 --because "the baseline is still needed"
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_jobs(parser)
    parser.add_argument("--because", metavar="REASON", help="why it should go on")


def run(given: Namespace) -> int:
    with Client() as client:
        return on_each(given.jobs, lambda job: _take(client, job, given.because))


def _take(client: Client, job: str, because: str | None) -> None:
    view = client.take(job, because=because)
    job = view["id"]
    print(f"{job} {one_line(view['name'])}  is yours to answer for.  What is it? muster show {job}")
