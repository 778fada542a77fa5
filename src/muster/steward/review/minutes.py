"""The minutes of a review, as Markdown: what consumed, who defended it, what was stopped, what that frees."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from muster.model.stewardship import Defended
from muster.model.units import DAY, HOUR, show_count
from muster.steward.review.closing import Close, freed, projected
from muster.steward.review.items import Item, Kind

When = Callable[[float], str]  # says a moment, as the wall has it

_MOST_ROWS = 200  # of a table: who is interested in more asks for JSON


class Meeting(msgspec.Struct, frozen=True, kw_only=True):
    """When it was, and by whom it was closed."""

    number: int
    since: float  # by the wall, all three
    closed_at: float
    revivable_until: float
    by: str  # empty: the schedule


def minutes(meeting: Meeting, items: Sequence[Item], close: Close, when: When) -> str:
    parts = [
        _head(meeting, items, when),
        _table(items),
        _defences(items, when),
        _stopped(meeting, close, when),
        _carried(close),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(meeting: Meeting, items: Sequence[Item], when: When) -> str:
    by = f"by {_text(meeting.by)}" if meeting.by else "on schedule"
    lines = [
        f"# Review {meeting.number}, {when(meeting.closed_at)}",
        "",
        f"Closed {by}. About what consumed since {when(meeting.since)}: {_sums(items)}.",
        "",
    ]
    for kind in Kind:
        some = [item for item in items if item.kind is kind]
        lines.append(f"- {kind.value}: {show_count(len(some), 'item')}, {_sums(some)}")
    return "\n".join(lines)


def _sums(items: Iterable[Item]) -> str:
    items = list(items)
    gpus, cpus = sum(item.gpu_seconds for item in items), sum(item.cpu_seconds for item in items)
    return f"{_hours(gpus)} GPU-hours and {_hours(cpus)} cpu-hours held"


# --- What consumed --------------------------------------------------------------------------------------


def _table(items: Sequence[Item]) -> str:
    if not items:
        return "Nothing consumed."
    lines = ["| what | owner | kind | GPUh | CPUh | used | for | why |", "|---|---|---|--:|--:|--:|---|---|"]
    lines += [_row(item) for item in items[:_MOST_ROWS]]
    if len(items) > _MOST_ROWS:
        lines.append(f"\n{len(items) - _MOST_ROWS:,} smaller ones are not listed.")
    return "\n".join(lines)


def _row(item: Item) -> str:
    held = ("–", "–") if item.foreign is not None else (_hours(item.gpu_seconds), _hours(item.cpu_seconds))
    cells = [title(item), item.owner or "–", item.kind.value, *held, _used(item)]
    return "| " + " | ".join(_text(cell) for cell in (*cells, item.purpose or "–", item.because)) + " |"


def title(item: Item) -> str:
    """What it is called: a job by its id and name, several as such."""
    kind, _, name = item.subject.partition(":")
    if kind == "effort":
        return f"effort {name}"
    if kind == "foreign":
        return item.name
    if kind == "job":
        return f"{name} {item.name}"
    jobs = [one.job for one in item.consumers]
    return f"{', '.join(jobs[:3])}{', …' if len(jobs) > 3 else ''} {item.name}"


def _used(item: Item) -> str:
    """With how much of the time was measured, if that is not nearly all."""
    share, coverage = item.used_share, item.usage.coverage
    if share is None:
        return "–"
    return f"{share:.0%}" + (
        f" ({coverage:.0%} measured)" if coverage is not None and coverage < 0.95 else ""
    )


# --- What was said --------------------------------------------------------------------------------------


def _defences(items: Sequence[Item], when: When) -> str:
    some = [item for item in items if item.kind is Kind.DEFENDED and item.defences]
    if not some:
        return ""
    lines = [_defence(item, item.defences[-1], when) for item in some]
    return "\n".join(["## Defended by name", "", *lines])


def _defence(item: Item, last: Defended, when: When) -> str:
    said = f"- **{_text(title(item))}**: {_text(last.by)}, until {when(last.until)}: “{_text(last.because)}”"
    if len(item.defences) < 2:
        return said
    same = item.same_words()
    words = f", {same} times in a row with the same words" if same > 1 else ""
    return f"{said} Defended {len(item.defences)} times{words}."


def _stopped(meeting: Meeting, close: Close, when: When) -> str:
    if not close.stopped:
        return "## Stopped\n\nNothing."
    each = [one for item in close.stopped for one in freed(item)]
    gpus, cpus = sum(one.gpu_seconds_a_day for one in each), sum(one.cpu_seconds_a_day for one in each)
    lines = [
        "## Stopped",
        "",
        "Nobody defended it. It was stopped with a checkpoint; nothing was deleted.",
        "",
    ]
    for item in close.stopped:
        lines.append(f"- **{_text(title(item))}** of {_text(item.owner or 'nobody')}: {_text(item.because)}")
        lines += [f"    - `muster revive {job} --because … --until …`" for job in item.stops[:20]]
    lines += ["", f"It can be brought back until {when(meeting.revivable_until)}.", ""]
    spans = ((7, "7 days"), (30, "30 days"))
    said = [f"{_freed(gpus, cpus, days)} over the next {name}" for days, name in spans]
    lines.append(f"Projected, had it gone on as it lately did: {'; '.join(said)}.")
    return "\n".join(lines)


def _freed(gpus: float, cpus: float, days: int) -> str:
    held = (projected(gpus, days * DAY), projected(cpus, days * DAY))
    return f"{_hours(held[0])} GPU-hours and {_hours(held[1])} cpu-hours"


def _carried(close: Close) -> str:
    if not close.carried:
        return ""
    lines = [f"- {_text(title(item))} of {_text(item.owner or 'nobody')}" for item in close.carried]
    return "\n".join(["## Carried to the next review", "", "Undefended, but told too late.", "", *lines])


def _hours(seconds: float) -> str:
    hours = seconds / HOUR
    digits = 0 if hours >= 100 or not hours else 1 if hours >= 10 else 2
    return f"{hours:,.{digits}f}"


def _text(said: str) -> str:
    """One line that can't break a table or make markup of what people wrote."""
    line = " ".join(said.split())
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    for mark in "\\|`*_<>[]":
        printable = printable.replace(mark, f"\\{mark}")
    return printable
