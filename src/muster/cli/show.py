"""``muster show``: everything about a job."""

import time
from argparse import Namespace

from muster.cli.hindsight import of_job
from muster.cli.output import add_output, add_watch, shown, structured
from muster.cli.parse import Parser, add_jobs
from muster.cli.table import painted, properties
from muster.cli.text import one_line
from muster.cli.views import amount, clock, size, span
from muster.client import Client, Refused
from muster.layout.ranges import fold
from muster.model.units import show_count, show_seconds

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_ABOUT = """Everything about a job, or a member of an array. An array, and members that are named
together (12_[1-3,7]), are told as one; 'muster ps --members' has a line for each."""
_EXAMPLES = """
muster show 12
muster show 12_3 -o json
muster show 12_[1-3]
"""
_MOST_LINES = 12  # of a story


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add_jobs(parser)
    add_watch(parser)
    add_output(parser, "table", "json", "yaml", "name")


def run(given: Namespace) -> int:
    with Client() as client:
        shown(lambda: _answer(client, given), watch=given.watch)
    return 0


def _answer(client: Client, given: Namespace) -> str:
    views = [client.job(job) for job in given.jobs]
    said = structured(views[0] if len(views) == 1 else views, given.output)
    return "\n\n".join(_whole(client, view) for view in views) if said is None else said


def _whole(client: Client, view: "dict[str, Any]") -> str:
    """What it is, and then what has happened to it."""
    head = properties(_told(view))
    return head if view.get("counts") else "\n".join([head, *_story(client, view["id"])])


def _story(client: Client, job: str) -> "list[str]":
    """Nothing, if the server is of a version that tells none."""
    try:
        lines = client.story(job)["lines"]
    except Refused:
        return []
    now, shown = time.time(), lines if len(lines) <= _MOST_LINES else [lines[0], *lines[1 - _MOST_LINES :]]
    left = len(lines) - len(shown)
    title = painted("story", "dim") + (f"  ({left} more in between)" if left else "")
    return ["", title, *(f"  {_line(one, now)}" for one in shown)]


def _line(one: "dict[str, Any]", now: float) -> str:
    said = ": ".join(filter(None, (one["by"], one["text"])))
    return f"{painted(clock(one['at'], now), 'dim')}  {one['what']:<9}  {one_line(said)}".rstrip()


def _adopted(view: "dict[str, Any]") -> str | None:
    """Whose queue it was found in, and what it is called there."""
    engine = view.get("adopted")
    return None if engine is None else f"from {engine.capitalize()}, where it is {view['id'][1:]}"


def _told(view: "dict[str, Any]") -> "list[tuple[str, object]]":
    now = time.time()
    asked = [show_count(view["gpus"], "GPU") if view["gpus"] else "", show_count(view["cpus"], "cpu")]
    asked.append(f"{size(view['memory_bytes'])} memory" if view["memory_bytes"] else "")
    limit = view["time_limit_seconds"]
    return [
        ("job", f"{view['id']} {view['name']}"),
        ("state", _state(view)),
        ("reason", view["reason"]),
        ("adopted", _adopted(view)),
        ("for", view["purpose"] or "(nobody said)"),
        ("effort", view.get("effort")),
        ("owner", f"{view['owner']} in {view['team']}" if view["team"] else view["owner"]),
        ("answers for it", None if view.get("answers") == view["owner"] else view.get("answers")),
        ("won if", "; or ".join(view.get("success") or ())),
        ("lost if", "; or ".join(view.get("failure") or ())),
        ("priority", view["priority"]),
        ("asks", ", ".join(filter(None, asked))),
        ("time limit", None if limit is None else span(limit)),
        ("limits", _limits(view)),
        ("budget", _budget(view)),
        ("until", None if view.get("until") is None else clock(view["until"], now)),
        ("to decide", _decide(view, now)),
        ("on", fold(view["nodes"])),
        ("devices", ", ".join(map(str, view["devices"]))),
        ("submitted", clock(view["submitted_at"], now)),
        ("likely starts", _estimate(view, now)),
        ("started", None if view["started_at"] is None else clock(view["started_at"], now)),
        ("ended", None if view["ended_at"] is None else clock(view["ended_at"], now)),
        ("ran", _ran(view, now)),
        ("attempt", view["attempt"] or None),
        ("retries left", view.get("retries") or None),
        ("after", ", ".join(view.get("after") or ())),
        ("members", ", ".join(f"{n:,} {state.lower()}" for state, n in (view.get("counts") or {}).items())),
        ("parameters", ", ".join(f"{name}={value}" for name, value in (view.get("params") or {}).items())),
        ("metrics", ", ".join(f"{name}={_value(v)}" for name, v in (view.get("metrics") or {}).items())),
        ("command", view["command"]),
        ("folder", view["cwd"]),
        ("log", view["log"]),
        ("cause", view.get("cause")),
        ("hindsight", None if view.get("hindsight") is None else of_job(view["hindsight"])),
        ("review", view.get("review")),
        *(("found", said) for said in view.get("findings") or ()),
        *((name, said) for name, said in view.get("efficiency") or ()),
    ]


def _value(value: "float | str | None") -> str:
    """What is no number comes as a text."""
    return f"{value:g}" if isinstance(value, int | float) else value or "nan"


def _state(view: "dict[str, Any]") -> str:
    said = [str(view["outcome"] or view["state"])]
    if view["exit_code"] is not None:
        said.append(f"exit code {view['exit_code']}")
    if view["signal"]:
        said.append(f"signal {view['signal']}")
    if view["verdict"]:
        said.append(str(view["verdict"]))
    return ", ".join(said)


def _limits(view: "dict[str, Any]") -> str:
    """Each limit in the unit that people use for it, and whether it is more than a word."""
    told = [
        f"{one['what']} {_amount(one['what'], one['amount'])} {one['how']}"
        for one in view.get("limits") or ()
    ]
    return ", ".join(told)


def _budget(view: "dict[str, Any]") -> str | None:
    """``12.3 of 200 GPUh held (6 %), used 9.8``."""
    budget = view.get("budget")
    if budget is None:
        return None
    used = "" if budget["used"] is None else f", used {amount(budget['used'])}"
    return f"{amount(budget['spent'])} of {budget['text']} held ({budget['share']:.0%}){used}"


def _decide(view: "dict[str, Any]", now: float) -> str | None:
    by = (view.get("budget") or {}).get("decide_by")
    if by is None or view["ended_at"] is not None:
        return None
    return f"by {clock(by, now)}, or it ends: its budget is spent"


def _amount(what: str, amount: float) -> str:
    if what in ("memory", "disk", "log"):
        return size(int(amount))
    return show_seconds(amount) if what == "time" else f"{amount:g}"


def _estimate(view: "dict[str, Any]", now: float) -> str | None:
    estimate = view.get("start_estimate")
    if estimate is None or view["started_at"] is not None:
        return None
    return (
        f"{clock(estimate['earliest'], now)}–{clock(estimate['latest'], now)} ({estimate['probability']:.0%})"
    )


def _ran(view: "dict[str, Any]", now: float) -> str | None:
    if view["started_at"] is None:
        return None
    return span(max(0.0, (view["ended_at"] or now) - view["started_at"]))
