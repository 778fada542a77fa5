"""``muster why``: the deciding reason, when it starts, and what would start it sooner."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage, job_id
from muster.cli.text import safe_lines
from muster.client import Client

_ABOUT = "Why a job waits, when it will likely start, and what would start it sooner."
_EXAMPLES = """
muster why 12
muster why --accuracy
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.add_argument("job", metavar="ID", nargs="?", type=job_id, help="the job, as 'muster ps' shows it")
    parser.add_argument("--accuracy", action="store_true", help="how far off past estimates were")
    add_output(parser, "table", "json", "yaml")


def run(given: Namespace) -> int:
    if (given.job is None) != given.accuracy:
        raise Usage("name a job, or ask for --accuracy (see 'muster why --help')")
    with Client() as client:
        answer = client.accuracy() if given.accuracy else client.why(given.job)
    print(structured(answer, given.output) or safe_lines(answer["text"]))
    return 0
