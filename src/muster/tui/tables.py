"""The tables: jobs, those that wait, what the review asks about, and use by team."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.tui.grid import Column, grid
from muster.tui.spans import BARS, DIM, NOTHING, PLAIN, Line, Span, bar, said
from muster.tui.when import clock, days_ago

View = dict[str, Any]
Sparks = Mapping[str, Sequence[float | None]]
_NARROW, _WIDE = 100, 130
_BUDGET_BAR = 5
_HOUR = 3600.0


# --- Jobs -----------------------------------------------------------------------------------------------


def jobs(views: Sequence[View], sparks: Sparks, room: int, now: float) -> list[Line]:
    """Who holds what, for what, truly used, until when, defended."""
    has_gpus = any(view["gpus"] for view in views) or not views
    hours = 24 if room >= _WIDE else 12 if room >= _NARROW else 6
    columns = [
        Column("JOB", most=14),
        Column("OWNER", gives=True, most=16),
        Column("PURPOSE", gives=True),
        Column("GPU" if has_gpus else "CPU", right=True),
        Column("NODES", gives=True, most=22),
        Column("TRUE%", right=True),
        Column("24h", most=hours),
        Column("BUDGET"),
        Column("ENDS"),
        Column("DEFENDED"),
    ]
    is_wide = room >= _NARROW
    rows = [_job(view, sparks.get(view["id"]), hours, now, has_gpus, is_wide) for view in views]
    return grid(columns, rows, room)


def _job(
    view: View, spark: Sequence[float | None] | None, hours: int, now: float, has_gpus: bool, is_wide: bool
) -> list[Span]:
    share = view["share"]
    amount = view["gpus"] if has_gpus else view["cpus"]
    return [
        said(view["id"] + (" ?" if view["undefended"] else ""), "magenta" if view["undefended"] else PLAIN),
        said(view["owner"]),
        _purpose(view),
        said(f"{amount:g}" if amount else None),
        _place(view),
        said(None if share is None else f"{100 * share:.0f}", _heat(share)),
        (sparkline(spark, hours), "cyan"),
        _budget(view["budget"], is_wide),
        _ends(view, now),
        _defended(view, now),
    ]


def _purpose(view: View) -> Span:
    return said(f"{view['name']}: {view['purpose']}") if view["purpose"] else said(view["name"], DIM)


def _place(view: View) -> Span:
    state = view["state"]
    if state in ("QUEUED", "HELD"):
        return said(_waits(view, "waits: "), "yellow")
    if state == "STARTING" and view["reason"]:
        return said(view["reason"], "yellow")
    return said(view["nodes"]) if state == "RUNNING" else said(f"{state.lower()} {view['nodes']}", "yellow")


def _waits(view: View, before: str) -> str:
    reason = view["reason"] or ""
    if view["state"] != "HELD":
        return before + reason
    return reason if reason.startswith("held") else f"held: {reason}"


def _heat(share: float | None) -> str:
    return DIM if share is None else "yellow" if share < 0.05 else PLAIN


def _budget(share: float | None, is_wide: bool) -> Span:
    if share is None:
        return ("none", DIM)
    text = f"{100 * share:.0f} %"
    style = "red" if share >= 1 else "yellow" if share >= 0.8 else PLAIN
    return (f"{bar(share, _BUDGET_BAR)} {text:>5}" if is_wide else text, style)


def _ends(view: View, now: float) -> Span:
    if view["ends_at"] is not None:
        return (clock(view["ends_at"], now), PLAIN)
    return (NOTHING, DIM) if view["started_at"] is None else ("never", "yellow")


def _defended(view: View, now: float) -> Span:
    """By a person, last; who never had to be is held by the charter."""
    at = view["defended_at"]
    if at is not None:
        return (days_ago(at, now), "yellow" if view["undefended"] else PLAIN)
    if view["undefended"]:
        return ("NEVER", "magenta")
    return ("by charter", DIM) if view["purpose"] else (NOTHING, DIM)


def sparkline(shares: Sequence[float | None] | None, cells: int) -> str:
    """The last hours, as high as what was used; a blank where nothing was measured."""
    if not shares:
        return " " * cells
    per = max(1, len(shares) // cells)
    groups = [shares[at : at + per] for at in range(len(shares) % per, len(shares), per)]
    return "".join(map(_level, groups))[-cells:].rjust(cells)


def _level(some: Sequence[float | None]) -> str:
    known = [share for share in some if share is not None]
    if not known:
        return " "
    return BARS[min(len(BARS) - 1, int(sum(known) / len(known) * len(BARS)))]


# --- The queue ------------------------------------------------------------------------------------------


def queue(views: Sequence[View], room: int) -> list[Line]:
    """Who waits for what, and the reason that decides."""
    columns = [
        Column("JOB", most=24),
        Column("OWNER", gives=True, most=16),
        Column("PURPOSE", gives=True, most=36),
        Column("GPU", right=True),
        Column("CPU", right=True),
        Column("WAITS BECAUSE", gives=True, most=200),
    ]
    rows = [
        [
            said(view["id"], "magenta" if view["undefended"] else PLAIN),
            said(view["owner"]),
            _purpose(view),
            said(f"{view['gpus']:g}" if view["gpus"] else None),
            said(f"{view['cpus']:g}"),
            said(_waits(view, ""), "yellow"),
        ]
        for view in views
    ]
    return grid(columns, rows, room)


# --- The review -----------------------------------------------------------------------------------------


def review(told: View, room: int, now: float) -> list[Line]:
    """What consumed, and who defends it."""
    columns = [
        Column("?"),
        Column("WHAT", gives=True, most=30),
        Column("OWNER", gives=True, most=20),
        Column("KIND"),
        Column("GPUh", right=True),
        Column("USED", right=True),
        Column("STOPS"),
        Column("WHY", gives=True, most=200),
    ]
    kinds = {"defended": "green", "habit": "yellow", "forgotten": "red"}
    rows = [
        [
            ("?" if item["stops"] else " ", "magenta"),
            said(item["what"]),
            said(item["owner"] if item["is_present"] is not False else f"{item['owner']} (left)"),
            said(item["kind"], kinds.get(item["kind"], PLAIN)),
            said(_hours(item["gpu_held_seconds"])),
            said(_percent(item["used_share"])),
            said(clock(item["stops_at"], now) if item["stops_at"] is not None else None),
            said(item["because"]),
        ]
        for item in told["items"]
    ]
    return grid(columns, rows, room)


def closes(told: View, now: float) -> str:
    """In a sentence, what this review is."""
    count = sum(bool(item["stops"]) for item in told["items"])
    if told["closes_at"] is None:
        return f"Reviews are off; {count} undefended."
    which = "The next review" if told["number"] is None else f"Review {told['number']}"
    return f"{which} closes {clock(told['closes_at'], now)}; {count} undefended."


# --- Use ------------------------------------------------------------------------------------------------


def use(told: View, room: int) -> list[Line]:
    """Held against used, by team."""
    key = "gpu" if told["total"]["gpu_held_seconds"] else "cpu"
    most = max((row[f"{key}_held_seconds"] or 0.0 for row in told["rows"]), default=0.0)
    unit = key.upper() + "h"
    columns = [
        Column("TEAM", gives=True, most=24),
        Column("█ used ▒ held unused"),
        Column(f"HELD {unit}", right=True),
        Column(f"USED {unit}", right=True),
        Column("USED", right=True),
        Column("COVERED", right=True),
    ]
    length = max(10, min(50, room - 70))
    return grid(columns, [_used(row, key, most, length) for row in told["rows"]], room)


def _used(row: View, key: str, most: float, length: int) -> list[Span]:
    held, used, measured = (row[f"{key}_{what}_seconds"] for what in ("held", "used", "measured"))
    share = used / measured if used is not None and measured else None
    part = (held or 0.0) / most if most else 0.0
    drawn = bar(part * min(1.0, share or 0.0), length, part * (1 - min(1.0, share or 0.0)))
    return [
        said(row["group"] or "(in no team)"),
        (drawn.replace("░", " "), "cyan"),
        said(_hours(held)),
        said(_hours(used)),
        said(_percent(share)),
        said(_percent(row["coverage"])),
    ]


def _hours(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    hours = seconds / _HOUR
    return f"{hours:,.0f}" if hours >= 100 or not hours else f"{hours:.1f}" if hours >= 10 else f"{hours:.2f}"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.0f} %"
