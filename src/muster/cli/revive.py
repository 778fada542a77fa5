"""``muster revive``: brings back what was stopped."""

from argparse import Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, add_job
from muster.client import Client

_ABOUT = """Bring back a job or an array that a review, its date or its budget has ended: as a new job with
the same content, which finds the old one's checkpoints in MUSTER_CHECKPOINT_DIR. With a reason and a new end
it is defended; without, the next review asks about it again."""
_EXAMPLES = """
muster revive 12
muster revive 12 --because "it was the baseline for the paper" --until 2026-12-01
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_job(parser)
    parser.add_argument("--because", metavar="SENTENCE", default="", help="why it should go on")
    parser.add_argument("--until", metavar="DATE", help="its new end, like 2026-12-01 or +14d")
    add_output(parser, "table", "json", "yaml", "name")


def run(given: Namespace) -> int:
    with Client() as client:
        view = client.revive(given.job, because=given.because, until=given.until)
    said = f"{view['id']} {view['name']}  goes on with the work of {given.job}, {view['state'].lower()}."
    if not given.because:
        what = view.get("effort") or view["id"]
        said += f"  The next review asks about it; defend it with: muster defend {what}"
    print(structured(view, given.output) or said)
    return 0
