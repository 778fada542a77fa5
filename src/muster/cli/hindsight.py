"""What was spent after an exit would have ended the work, in words: an estimate, and said as one."""

from muster.cli.table import Cell, table
from muster.cli.text import one_line
from muster.model.units import show_seconds

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

_HOUR = 3600
_OPTIONS = {"won": "--success", "lost": "--fail"}
_RESOURCES = (("gpu", "GPUh"), ("cpu", "CPUh"))


def of_job(found: "Row") -> str:
    """``ran 3h 12m after val_loss had stopped improving (12.8 GPUh), …``."""
    import shlex

    what, unit = _RESOURCES[0] if found["gpu_after_seconds"] else _RESOURCES[1]
    spent = f"{hours(found[f'{what}_after_seconds'] / _HOUR)} {unit}"
    exit_ = f"{_OPTIONS[found['verdict']]} {shlex.quote(found['condition'])}"
    ran = f"ran {show_seconds(found['after_seconds'])} after {found['because']} ({spent})"
    return f"{ran}, by what it reported; next time: {exit_}"


def told(found: "Row", named: "list[tuple[str, Row]]", *, wide: bool) -> str:
    """The table, and what it comes to."""
    total, by = found["total"], found["by"]
    has_reasons = by == "job"
    headings = [by.upper(), "JOBS", "JUDGED", "LATE", "GPUh", "AFTER", "CPUh", "AFTER"]
    headings += ["OWNER"] if wide else []
    headings += ["BECAUSE"] if has_reasons else []
    lines = []
    for name, row in [*named, ("total", total)]:
        cells = [Cell(name, "bold" if row is total else "")]
        cells += [Cell(str(row[count])) for count in ("jobs", "judged", "late")]
        cells += [Cell(text) for what, _ in _RESOURCES for text in _amounts(row, what)]
        cells += [Cell(row["owner"])] if wide else []
        lines.append([*cells, Cell(row["because"])] if has_reasons else cells)
    return "\n".join([table(headings, lines), *_below(found)])


def _amounts(row: "Row", what: str) -> tuple[str, str | None]:
    """By jobs that can be judged; and what of it came too late."""
    judged, after = row[f"{what}_judged_seconds"], row[f"{what}_after_seconds"]
    share = f" ({after / judged:.0%})" if after is not None and judged else ""
    return hours(judged / _HOUR), None if after is None else f"{hours(after / _HOUR)}{share}"


def _below(found: "Row") -> list[str]:
    total = found["total"]
    what, unit = _RESOURCES[0] if total["gpu_held_seconds"] else _RESOURCES[1]
    judged, after = _amounts(total, what)
    said = []
    if total["late"]:
        amount, _, share = (after or "").partition(" ")
        of = f"{amount} of {judged} {unit}" + (f" {share}" if share else "")
        said.append(f"{of} were spent after the moment at which an exit would have ended the work:")
        said += [_reason(one, what, unit) for one in found["reasons"]]
    elif total["judged"]:
        said.append("No exit would have ended any of these jobs sooner.")
    if total["judged"]:
        said.append("An estimate, on what the jobs reported.")
    unknown = total["jobs"] - total["judged"]
    if unknown:
        held = hours((total[f"{what}_held_seconds"] - total[f"{what}_judged_seconds"]) / _HOUR)
        jobs = f"{unknown:,} of {total['jobs']:,} jobs reported no metrics"
        said.append(f"{jobs}: of what they held ({held} {unit}) nothing is known.")
    return said or ["No job ended in this time."]


def _reason(reason: "Row", what: str, unit: str) -> str:
    jobs = f"{reason['jobs']:,} job" + "s" * (reason["jobs"] != 1)
    amount = hours(reason[f"{what}_after_seconds"] / _HOUR)
    return f"  {amount} {unit}: {one_line(reason['because'])} ({jobs})"


def hours(amount: float) -> str:
    """With as many digits as tell something."""
    if 0 < amount < 0.001:
        return "<0.001"
    digits = 3 if amount < 0.1 else 2 if amount < 10 else 1 if amount < 100 else 0
    return f"{amount:,.{digits}f}" if amount else "0"
