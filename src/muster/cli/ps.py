"""``muster ps``: the queue, as squeue shows it."""

import time
from argparse import Namespace

from muster.cli.output import add_output, add_watch, shown, structured
from muster.cli.parse import Parser, add_jobs, whole_number
from muster.cli.table import Cell, table
from muster.cli.text import one_line, remark
from muster.cli.views import HEADINGS, WIDE, row
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

STATES = ("HELD", "QUEUED", "STARTING", "RUNNING", "SUSPENDED", "STOPPING", "ENDED")
_ABOUT = """What runs, then what waits, in order. ST is R running, PD waiting, H held, S suspended,
CF starting, CG ending; and with -a CD done, F failed, CA stopped, TO out of time, OOM out of memory,
NF node lost, DF a job it depends on failed."""
_EXAMPLES = """
muster ps
muster ps -a --mine
muster ps --state RUNNING -o wide
muster ps --members 12
muster ps -o name | xargs muster stop
"""


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_jobs(parser, optional=True)
    add = parser.add_argument
    add("-a", "--all", action="store_true", help="those that have ended, too")
    add("-m", "--mine", action="store_true", help="only your own")
    add("-u", "--owner", metavar="NAME", help="only this person's")
    add("-t", "--team", metavar="TEAM", help="only this team's")
    add(
        "-s",
        "--state",
        type=str.upper,
        choices=STATES,
        metavar="STATE",
        help=f"only these: {', '.join(STATES)}",
    )
    add("--members", action="store_true", help="each member of an array by itself")
    add("--limit", metavar="N", type=whole_number(0), help="at most so many; 0: all")
    add_watch(parser)
    add_output(parser, "table", "wide", "json", "yaml", "name")


def run(given: Namespace) -> int:
    with Client() as client:
        shown(lambda: _answer(client, given), watch=given.watch)
    return 0


def _answer(client: Client, given: Namespace) -> str:
    views = _named(client, given) if given.jobs else _listed(client, given)
    said = structured(views, given.output)
    if said is not None:
        return said
    wide, now = given.output == "wide", time.time()
    headings, rows = WIDE if wide else HEADINGS, [row(view, now, wide=wide) for view in views]
    if any(view.get("review") for view in views):
        headings = (*headings, " ")
        rows = [[*cells, _mark(view)] for cells, view in zip(rows, views, strict=True)]
    return "\n".join([table(headings, rows), *_found(views)])


def _found(views: "list[dict[str, Any]]") -> "list[str]":
    """What the steward has to say of them, the latest of each."""
    return [
        one_line(f"! {view['id']} {view['name']}: {view['findings'][-1]}")
        for view in views
        if view.get("findings") and view["state"] != "ENDED"
    ]


def _mark(view: "dict[str, Any]") -> Cell:
    """Of a job that somebody has to answer for, or it is stopped."""
    return Cell(f"? {view['review']}" if view.get("review") else " ", "yellow")


def _named(client: Client, given: Namespace) -> "list[dict[str, Any]]":
    """An array, or members that are named together, are one line unless they are to be told apart."""
    if not given.members:
        return [client.job(job) for job in given.jobs]
    return [view for job in given.jobs for view in _page(client, job=job, limit=given.limit)]


def _listed(client: Client, given: Namespace) -> "list[dict[str, Any]]":
    everything = given.all or given.state == "ENDED"
    return _page(
        client,
        all=everything,
        mine=given.mine,
        owner=given.owner,
        team=given.team,
        state=given.state,
        members=given.members,
        limit=given.limit,
    )


def _page(client: Client, **asked: object) -> "list[dict[str, Any]]":
    page = client.page(**asked)
    if page.get("more"):
        remark(f"{page['more']:,} more are not shown; --limit 0 shows all")
    return list(page["jobs"])
