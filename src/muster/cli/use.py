"""``muster use``: what was held, and what of it was used."""

import os
import sys
import time
from argparse import Namespace

from muster.cli.hindsight import hours
from muster.cli.hindsight import told as told_in_hindsight
from muster.cli.output import add_output, structured
from muster.cli.parse import Parser, Usage, whole_number
from muster.cli.table import NOTHING, Cell, table
from muster.cli.text import remark
from muster.cli.views import clock, span
from muster.client import Client

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, Any]

BY = ("team", "owner", "effort", "job", "verdict", "gpu")
_ABOUT = """What was held and what of it was used: hours of GPUs and cpus, GiB times hours of memory. A team's
row includes the teams below it. USED is also in percent, of what was held while it was measured; COVERED is
how much of the time that was. What nobody has measured is –, not 0. By verdict, what has none is told by its
outcome, and what has not ended is running. With --hindsight: of jobs that ended in that time, what they held
after the moment at which an exit would have ended them, estimated from what they reported."""
_EXAMPLES = """
muster use
muster use --by owner --last 7d
muster use --by job --mine --since 2026-11-01 --until 2026-11-15
muster use --by gpu --last 1h -o json
muster use --by verdict --last 30d
muster use --by owner --hindsight --last 30d
"""
_RESOURCES = (("gpu", "GPUh"), ("cpu", "CPUh"), ("memory", "GiBh"))
_HOUR, _DAY, _GIB = 3600, 86_400, 1 << 30
_SOURCES = {"agent": "agents", "slurm": "Slurm (cpu and memory, no GPUs)", "none": "nothing lately"}
_NONE = {"team": "(no team)", "effort": "(no effort)"}
_BAR, _BAR_FROM_COLUMNS = 10, 100


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    add = parser.add_argument
    add("--by", choices=BY, default=BY[0], metavar="WHAT", help=f"sum by {', '.join(BY)}")
    add("--last", metavar="SPAN", help="of the last 1h, 24h, 7d, 30d, 13w; a day if nothing is said")
    add(
        "--since",
        metavar="WHEN",
        help="from then on: 2026-11-01, 2026-11-01T08:00, or 3h for three hours ago",
    )
    add("--until", metavar="WHEN", help="up to then, or to the end of that day; until now if it is not said")
    add("-t", "--team", metavar="TEAM", help="only this team and those below it")
    add("-u", "--owner", metavar="NAME", help="only this person's")
    add("-m", "--mine", action="store_true", help="only your own")
    add("--hindsight", action="store_true", help="what was spent after an exit would have ended the work")
    add("--limit", metavar="N", type=whole_number(0), help="at most so many rows; 0: all")
    add_output(parser, "table", "wide", "json", "yaml")


def run(given: Namespace) -> int:
    if given.last is not None and (given.since or given.until):
        raise Usage("--last says since when and until when; leave it out, or --since and --until")
    if given.hindsight and given.by == "gpu":
        raise Usage("--hindsight is of jobs, not of GPUs; say --by team, owner, effort, job or verdict")
    with Client() as client:
        found = (client.hindsight if given.hindsight else client.use)(
            by=given.by,
            since=given.last if given.since is None else _moment(given.since, is_end=False),
            until=None if given.until is None else _moment(given.until, is_end=True),
            team=given.team,
            owner=given.owner,
            mine=given.mine,
            limit=given.limit,
        )
    told = _in_hindsight if given.hindsight else _told
    print(structured(found, given.output) or told(found, wide=given.output == "wide"))
    if found["more"]:
        remark(f"{found['more']:,} more are not shown; --limit 0 shows all")
    return 0


def _moment(text: str, *, is_end: bool) -> str:
    """A date is that of this machine; all else is for the server to understand."""
    if text.count("-") < 2:
        return text
    from muster.application.times import parse_until

    end = parse_until(text)
    is_day = len(text.strip()) == len("2026-11-01")
    return str(end - _DAY if is_day and not is_end else end)


def _in_hindsight(found: "Row", *, wide: bool) -> str:
    return told_in_hindsight(found, list(_named(found["rows"], found["by"])), wide=wide)


# --- The table ------------------------------------------------------------------------------------------


def _told(found: "Row", *, wide: bool) -> str:
    by, total, has_bars = found["by"], found["total"], _has_bars()
    resources = _RESOURCES[:1] if by == "gpu" else _RESOURCES
    barred = "gpu" if by == "gpu" or total["gpu_held_seconds"] else "cpu"
    headings = ["DEVICE" if by == "gpu" else by.upper()]
    headings += [*(heading for _, hours in resources for heading in (hours, "USED")), "COVERED"]
    headings += ["HELD", *(f"{what.upper()} COVERED" for what, _ in resources), "OWNER"] if wide else []
    headings += ["USED OF HELD"] if has_bars else []
    lines = []
    for name, row in [*_named(found["rows"], by), ("total", total)]:
        cells = _cells(row, resources, Cell(name, "bold" if row is total else ""))
        cells += _more(row, resources) if wide else []
        lines.append([*cells, Cell(_bar(_share(row, barred)))] if has_bars else cells)
    return f"{table(headings, lines)}\n{_below(found)}"


def _named(rows: "list[Row]", by: str) -> "Iterator[tuple[str, Row]]":
    """Teams below the one that they are in; else as they come, who held most first."""
    known = {row["group"] for row in rows}
    below: dict[str, list[Row]] = {}
    for row in rows:
        is_listed = row["parent"] is not None and row["parent"] in known
        below.setdefault(row["parent"] if is_listed else "", []).append(row)

    def walk(team: str, path: str) -> "Iterator[tuple[str, Row]]":
        for row in below.pop(team, []):
            name = path + _name(row, by)
            yield name, row
            yield from walk(row["group"] or "", f"{name}/")

    return walk("", "")


def _name(row: "Row", by: str) -> str:
    if not row["group"]:
        return _NONE.get(by, NOTHING)
    return f"{row['group']} {row['name']}" if row["name"] else str(row["group"])


def _cells(row: "Row", resources: "tuple[tuple[str, str], ...]", name: Cell) -> list[Cell]:
    cells = [name]
    for what, _ in resources:
        held, _, used = _amounts(row, what)
        share = _share(row, what)
        percent = "" if share is None else f" ({share:.0%})"
        cells += [Cell(hours(held)), Cell(None if used is None else f"{hours(used)}{percent}")]
    return [*cells, Cell(_percent(row["coverage"]))]


def _more(row: "Row", resources: "tuple[tuple[str, str], ...]") -> list[Cell]:
    covered = []
    for what, _ in resources:
        held, measured, _ = _amounts(row, what)
        covered.append(Cell(_percent(measured / held if held else None)))
    return [Cell(span(row["held_seconds"])), *covered, Cell(row["owner"])]


def _amounts(row: "Row", what: str) -> tuple[float, float, float | None]:
    """Held, measured and used: hours of GPUs and cpus, GiB times hours."""
    unit, one = ("byte_seconds", _GIB * _HOUR) if what == "memory" else ("seconds", _HOUR)
    held, measured, used = (row[f"{what}_{kind}_{unit}"] for kind in ("held", "measured", "used"))
    return held / one, measured / one, None if used is None else used / one


def _share(row: "Row", what: str) -> float | None:
    """What was used of what was held while it was measured."""
    _, measured, used = _amounts(row, what)
    return used / measured if used is not None and measured else None


def _percent(part: float | None) -> str | None:
    return None if part is None else f"{part:.0%}"


def _has_bars() -> bool:
    return sys.stdout.isatty() and os.get_terminal_size(sys.stdout.fileno()).columns >= _BAR_FROM_COLUMNS


def _bar(share: float | None) -> str | None:
    if share is None:
        return None
    full = round(_BAR * min(1.0, share))
    return "█" * full + "░" * (_BAR - full)


def _below(found: "Row") -> str:
    """Of what time this is, and by what it was measured."""
    now, metrics = time.time(), found["metrics"]
    named = [f"GPUs by {metrics['gpu']}" if metrics["gpu"] else "GPUs by no meter"]
    if found["by"] != "gpu":
        named += [f"cpus by {metrics['cpu']}", f"memory by {metrics['memory']}"]
    said = f"{clock(found['since'], now)} to {clock(found['until'], now)}; used: {', '.join(named)}"
    return f"{said}{_by_whom(metrics.get('sources') or {})}"


def _by_whom(sources: "dict[str, int]") -> str:
    """On a cluster: of what runs, how much is measured by what."""
    named = [f"{count} by {_SOURCES.get(by, by)}" for by, count in sorted(sources.items())]
    return f"\nof the jobs that run, measured: {', '.join(named)}" if named else ""
