"""``muster review``: what consumes, by whom, defended or not; what stops when."""

import time
from argparse import ArgumentTypeError, Namespace

from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage
from muster.cli.table import Cell, shortened, table
from muster.cli.text import one_line, safe_lines
from muster.cli.views import clock
from muster.client import Client
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    View = dict[str, Any]

CLOSE = "close"
_ABOUT = """What consumed since the last review, the largest first: defended (a charter within its terms, or
a defence), habit (the same work again, with no new purpose) or forgotten (nobody answers for it, or its terms
are over). What is marked ? is stopped when the review closes, with a checkpoint, unless somebody defends it.
'muster review close' closes it now: for leads and admins, once people have had their notice."""
_EXAMPLES = """
muster review
muster review -o json
muster review --minutes
muster review --minutes 3 > review-3.md
muster review close
"""
_HEADINGS = ("?", "WHAT", "OWNER", "KIND", "GPUh", "CPUh", "USED", "DAYS", "R", "PD", "FOR", "WHY")
_COLOURS = {"defended": "green", "habit": "yellow", "forgotten": "red"}
_BARS = "▁▂▃▄▅▆▇█"
_HOUR = 3600
_LETTERS = 40
LAST = "last"


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.first_words = (CLOSE,)
    parser.add_argument("what", metavar=CLOSE, nargs="?", choices=(CLOSE,), help="close it now")
    parser.add_argument(
        "--minutes",
        metavar="N",
        nargs="?",
        const=LAST,
        type=_number,
        help="of the last review, or of review N",
    )
    add_output(parser, "table", "json", "yaml")


def _number(text: str) -> str:
    if text != LAST and not (text.isdecimal() and len(text) < 10):
        raise ArgumentTypeError(
            f"{text!r} is not the number of a review; 'muster review --minutes' is the last"
        )
    return text


def run(given: Namespace) -> int:
    if given.what is not None and given.minutes is not None:
        raise Usage("close a review, or read the minutes of one; not both")
    with Client() as client:
        if given.minutes is not None:
            print(safe_lines(client.minutes(_chosen(client, given.minutes))))
        elif given.what == CLOSE:
            closed = client.close_review()
            print(structured(closed, given.output) or safe_lines(closed["minutes"]))
        else:
            found = client.review()
            print(structured(found, given.output) or _told(found))
    return 0


def _chosen(client: Client, number: str) -> int:
    if number != LAST:
        return int(number)
    closed = client.reviews()
    if not closed:
        raise BadInput("no review was closed yet; 'muster review' shows what the next is about")
    return int(closed[0]["number"])


# --- The table ------------------------------------------------------------------------------------------


def _told(found: "View") -> str:
    now = time.time()
    rows = [_row(item) for item in found["items"]]
    lines = [table(_HEADINGS, rows)] if rows else ["Nothing has consumed anything."]
    lines += [*_stops(found, now), _below(found, now)]
    return "\n".join(lines)


def _row(item: "View") -> list[Cell]:
    purpose = item["purpose"]
    return [
        Cell("?" if item["stops"] else " ", "yellow"),
        Cell(shortened(item["what"], _LETTERS)),
        Cell(item["owner"] if item["is_present"] is not False else f"{item['owner']} (left)"),
        Cell(item["kind"], _COLOURS.get(item["kind"], "")),
        Cell(_hours(item["gpu_held_seconds"])),
        Cell(_hours(item["cpu_held_seconds"])),
        Cell(_used(item)),
        Cell(_sparkline(item["days"])),
        Cell(item["running"] or None),
        Cell(item["waiting"] or None),
        Cell(shortened(purpose, _LETTERS) if purpose else "(nobody said)", "" if purpose else "dim"),
        Cell(_why(item)),
    ]


def _why(item: "View") -> str:
    said = str(item["because"])
    if len(item["defences"]) > 1:
        said += f" (defended {len(item['defences'])} times)"
    return said + (f"; idle for {item['idle_seconds'] / _HOUR:.1f} h" if item["idle_seconds"] else "")


def _hours(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    hours = seconds / _HOUR
    return f"{hours:,.{0 if hours >= 100 or not hours else 1 if hours >= 10 else 2}f}"


def _used(item: "View") -> str | None:
    return None if item["used_share"] is None else f"{item['used_share']:.0%}"


def _sparkline(days: "list[View]") -> str | None:
    """GPUs held a day, or cpus if there were none."""
    key = "gpu_seconds" if any(day["gpu_seconds"] for day in days) else "cpu_seconds"
    held = [day[key] for day in days]
    most = max(held, default=0.0)
    if not most:
        return None
    return "".join(_BARS[min(len(_BARS) - 1, int(one / most * len(_BARS)))] for one in held)


def _stops(found: "View", now: float) -> list[str]:
    """What is to be done about each that nobody defends."""
    return [
        one_line(f"? {item['what']} {_when(item, found, now)}: {item['action']}")
        for item in found["items"]
        if item["stops"]
    ]


def _when(item: "View", found: "View", now: float) -> str:
    if item["stops_at"] is not None:
        return f"is stopped {clock(item['stops_at'], now)}"
    if found["number"] is None:
        return "is told when the review opens"
    return "comes too late for this review, and into the next"


def _below(found: "View", now: float) -> str:
    closes, number = found["closes_at"], found["number"]
    if closes is None:
        said = "Reviews are off."
    elif number is None:
        said = f"The next review closes {clock(closes, now)}."
    else:
        said = f"Review {number} closes {clock(closes, now)}."
    said += f" Since {clock(found['since'], now)}."
    gpus, cpus = _hours(found["recovered_gpu_seconds"]), _hours(found["recovered_cpu_seconds"])
    return f"{said} Recovered so far, as projected: {gpus} GPU-hours, {cpus} cpu-hours."
