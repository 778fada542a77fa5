"""How a job looks in a line: short states as squeue has them, times, places."""

import time

from muster.cli.table import NOTHING, Cell, shortened
from muster.layout.ranges import fold

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    View = dict[str, Any]

HEADINGS = ("ID", "NAME", "OWNER", "TEAM", "ST", "GPU", "WHERE", "TIME", "USED", "FOR", "ENDS")
WIDE = (*HEADINGS, "CPUS", "MEM", "LIMIT", "PRIORITY", "SUBMITTED", "COMMAND")
_STATES = {
    "HELD": "H",
    "QUEUED": "PD",
    "STARTING": "CF",
    "RUNNING": "R",
    "SUSPENDED": "S",
    "STOPPING": "CG",
}
_OUTCOMES = {
    "SUCCEEDED": "CD",
    "FAILED": "F",
    "STOPPED": "CA",
    "TIMEOUT": "TO",
    "OUT_OF_MEMORY": "OOM",
    "NODE_LOST": "NF",
    "DEPENDENCY_FAILED": "DF",
}
_COLOURS = {
    "R": "green",
    "CF": "green",
    "PD": "yellow",
    "H": "cyan",
    "S": "cyan",
    "CG": "yellow",
    "CD": "dim",
}
_REASON_LETTERS = 32
_NAME_LETTERS = 24


def short_state(view: "View") -> str:
    state = str(view["state"])
    return _OUTCOMES.get(str(view.get("outcome")), "?") if state == "ENDED" else _STATES.get(state, "?")


def row(view: "View", now: float, *, wide: bool) -> list[Cell]:
    """One line of ``ps``."""
    state = short_state(view)
    purpose = view.get("purpose")
    cells = [
        Cell(view["id"]),
        Cell(view["name"] if wide else shortened(view["name"], _NAME_LETTERS)),
        Cell(view.get("answers") or view["owner"]),
        Cell(view["team"]),
        Cell(state, _COLOURS.get(state, "red")),
        Cell(f"{view['gpus']:g}"),
        Cell(_where(view, wide=wide)),
        Cell(_ran(view, now)),
        Cell(_used(view)),
        Cell(purpose or "(nobody said)", "" if purpose else "dim"),
        Cell(_ends(view, now)),
    ]
    return cells + _more(view, now) if wide else cells


def _more(view: "View", now: float) -> list[Cell]:
    limit = view["time_limit_seconds"]
    return [
        Cell(f"{view['cpus']:g}"),
        Cell(size(view["memory_bytes"]) if view["memory_bytes"] else None),
        Cell(None if limit is None else span(limit)),
        Cell(view["priority"]),
        Cell(clock(view["submitted_at"], now)),
        Cell(view["command"]),
    ]


def _where(view: "View", *, wide: bool) -> str:
    """The nodes, or in brackets why there are none yet."""
    if view["nodes"]:
        return fold(view["nodes"])
    reason = str(view.get("reason") or "")
    if not reason:
        return NOTHING
    return f"({reason if wide else shortened(reason, _REASON_LETTERS)})"


def _ran(view: "View", now: float) -> str:
    started = view["started_at"]
    if started is None:
        return NOTHING
    return span(max(0.0, (view["ended_at"] or now) - started))


def _used(view: "View") -> str | None:
    """Of its GPUs, or of its cpus if it has none, in the last minutes."""
    used = view.get("used")
    return f"{used['share']:.0%}" if used and used["share"] is not None else None


def _ends(view: "View", now: float) -> str:
    """When it will be over at the latest, by limit or date; of a waiting job, about when it starts."""
    started, limit, estimate = view["started_at"], view["time_limit_seconds"], view.get("start_estimate")
    if view["ended_at"] is not None:
        return clock(view["ended_at"], now) + (f" {view['verdict']}" if view.get("verdict") else "")
    ends = [at for at in (view.get("until"), started and limit and started + limit) if at]
    if started is not None:
        return clock(min(ends), now) if ends else "never"
    if estimate is None:
        return clock(min(ends), now) if ends else NOTHING
    return f"~{clock(estimate['latest'], now)}" + ("" if limit is None else f"+{span(limit)}")


def span(seconds: float) -> str:
    """``0:07``, ``3:12:40``, ``9-02:11``: as squeue has it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def clock(at: float, now: float) -> str:
    """The time of day; the date too, if it is another day."""
    moment = time.localtime(at)
    same_day = time.localtime(now)[:3] == moment[:3]
    return time.strftime("%H:%M" if same_day else "%Y-%m-%d %H:%M", moment)


def amount(spent: float) -> str:
    """Of a budget, in its unit: three digits, and no powers of ten."""
    return (
        f"{spent:.3g}" if 0.001 <= spent < 1000 or not spent else f"{spent:,.0f}" if spent >= 1 else "<0.001"
    )


def size(value: int) -> str:
    """Bytes → ``64G``."""
    for unit, power in (("T", 40), ("G", 30), ("M", 20), ("K", 10)):
        if value >= 1 << power:
            return f"{value / (1 << power):.4g}{unit}"
    return f"{value}B"
