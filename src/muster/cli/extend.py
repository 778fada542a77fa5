"""``muster extend``: another budget, date or time limit for jobs, with a reason."""

from argparse import Namespace

from muster.cli.act import on_each
from muster.cli.parse import Parser, add_jobs
from muster.client import Client

_ABOUT = """Give jobs another budget, date or time limit, and say why. What was paused because its budget was
spent goes on. An array has one charter: its id extends all of its members together."""
_EXAMPLES = """
muster extend 12 --budget 300GPUh --because "the loss still falls"
muster extend 12 --budget +100GPUh --because "the loss still falls"
muster extend 12 --until +7d --because "the cluster was down"
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_jobs(parser)
    add = parser.add_argument
    add("--budget", metavar="AMOUNT", help="300GPUh, 500CPUh or 300EUR; +100GPUh: so much more")
    add("--until", metavar="DATE", help="2026-12-01, 2026-12-01T18:00; +7d: so much later")
    add("--time", metavar="TIME", help="another time limit: 12h, unlimited; +2h: so much more")
    add("--because", metavar="REASON", required=True, help="why it should go on; it is kept")


def run(given: Namespace) -> int:
    asked = {"budget": given.budget, "until": given.until, "time": given.time, "because": given.because}
    with Client() as client:
        return on_each(given.jobs, lambda job: client.extend(job, **asked))
