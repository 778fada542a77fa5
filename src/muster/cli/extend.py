"""``muster extend``: another budget, date or time limit for jobs, with a reason."""

import time
from argparse import Namespace

from muster.cli.act import on_each
from muster.cli.parse import Parser, add_jobs
from muster.cli.text import one_line
from muster.cli.views import amount, clock, span
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

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
        return on_each(given.jobs, lambda job: print(_said(client.extend(job, **asked), given)))


def _said(view: "dict[str, Any]", given: Namespace) -> str:
    """Its terms from now on, of those that were changed."""
    now, budget, limit = time.time(), view.get("budget"), view["time_limit_seconds"]
    terms = []
    if given.budget and budget:
        terms.append(f"with {budget['text']}, of which {amount(budget['spent'])} are spent")
    if given.until and view.get("until"):
        terms.append(f"until {clock(view['until'], now)}")
    if given.time:
        terms.append("without a time limit" if limit is None else f"for {span(limit)} at most")
    return one_line(f"{view['id']} {view['name']}  goes on {', '.join(terms)}.")
