"""``muster hold``, ``release``, ``requeue``, ``suspend``, ``resume``: one thing done to several jobs."""

from argparse import Namespace

from muster.cli.parse import Parser, add_jobs
from muster.cli.text import remark
from muster.client import Client, NoServer
from muster.model.errors import MusterError

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable

_ABOUT = {
    "hold": "Keep waiting jobs from starting, until they are released.",
    "release": "Let held jobs start when there is room.",
    "requeue": "Stop running jobs and let them wait again, to start anew.",
    "suspend": "Freeze running jobs. They keep what they hold, and go on with 'muster resume'.",
    "resume": "Let suspended jobs go on.",
}


def define(parser: Parser) -> None:
    parser.describe(_ABOUT[parser.verb], f"muster {parser.verb} 12\nmuster {parser.verb} 12_3 13")
    add_jobs(parser)


def run(given: Namespace) -> int:
    with Client() as client:
        return on_each(given.jobs, lambda job: client.act(job, given.verb))


def on_each(jobs: list[str], act: "Callable[[str], object]") -> int:
    """Does it to each; those that can't be are named, and any of them makes the whole a failure."""
    code = 0
    for job in jobs:
        try:
            act(job)
        except NoServer:
            raise
        except MusterError as error:
            remark(str(error))
            code = max(code, error.exit_code)
    return code
