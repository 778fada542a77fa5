"""All about one job, as lines: its charter, what it cost, why it waits, where it is, what it wrote last."""

import textwrap
from typing import Any

from muster.layout.words import filled, printable
from muster.tui.spans import BOLD, DIM, PLAIN, Line, one_line, said
from muster.tui.tables import sparkline
from muster.tui.when import clock, since

View = dict[str, Any]
_LABEL = 14
_HOUR = 3600.0
_MOST_FINDINGS = 3


def details(told: View, spark: list[float | None] | None, now: float, columns: int) -> list[Line]:
    job = told["job"]
    lines: list[Line] = [
        [said(f"{job['id']} {job['name']}", BOLD), ("  ", PLAIN), said(job["state"].lower(), "cyan")]
    ]
    lines += [_section("Charter"), *_pairs(_charter(job, now), columns)]
    lines += [_section("Cost"), *_pairs(_cost(job, told["cost"], spark, now), columns)]
    if "why" in told:
        lines += [_section("Why it waits"), *_texts(told["why"], "text")]
    lines += [_section("Where"), *_where(told["where"])]
    lines += [_section("What it wrote last"), *_log(told["log"])]
    return lines


def _section(title: str) -> Line:
    return [(f"\N{BOX DRAWINGS LIGHT HORIZONTAL} {title}", DIM)]


def _pairs(pairs: list[tuple[str, object, str]], columns: int) -> list[Line]:
    """What is known, each beside its name; long texts go on below."""
    lines: list[Line] = []
    for name, value, style in pairs:
        if value not in (None, ""):
            texts = textwrap.wrap(one_line(str(value)), max(20, columns - _LABEL - 4))
            labels = [name, *[""] * len(texts)]
            lines += [
                [(filled(label, _LABEL), DIM), (text, style)]
                for label, text in zip(labels, texts, strict=False)
            ]
    return lines


def _charter(job: View, now: float) -> list[tuple[str, object, str]]:
    who = job.get("answers") or job["owner"]
    return [
        ("for", job["purpose"] or "(nobody said)", PLAIN if job["purpose"] else DIM),
        ("answers", f"{who} in {job['team']}" if job["team"] else who, PLAIN),
        ("effort", job.get("effort"), PLAIN),
        ("won if", "; or ".join(job.get("success") or ()), PLAIN),
        ("lost if", "; or ".join(job.get("failure") or ()), PLAIN),
        ("until", None if job.get("until") is None else clock(job["until"], now), PLAIN),
        ("review", job.get("review"), "magenta"),
        *(("found", found, "yellow") for found in _few(job.get("findings") or [])),
    ]


def _few(findings: list[str]) -> list[str]:
    more = len(findings) - _MOST_FINDINGS
    return findings[:_MOST_FINDINGS] + [f"… {more} more"] * (more > 0)


def _cost(
    job: View, cost: View, spark: list[float | None] | None, now: float
) -> list[tuple[str, object, str]]:
    started, budget, used = job["started_at"], job.get("budget"), job.get("used")
    share = None if not used or used["share"] is None else f"{100 * used['share']:.0f} % in the last minutes"
    return [
        ("asks", f"{job['gpus']:g} GPUs, {job['cpus']:g} cpus", PLAIN),
        ("runs since", None if started is None else f"{clock(started, now)}, {since(started, now)}", PLAIN),
        ("held", _held(cost), PLAIN),
        ("true use", share, PLAIN),
        ("last day", sparkline(spark, 24).strip() if spark else None, "cyan"),
        ("budget", budget and f"{100 * budget['share']:.0f} % of {budget['text']} held", PLAIN),
        *((str(name), text, PLAIN) for name, text in job.get("efficiency") or ()),
    ]


def _held(cost: View) -> str | None:
    """By all attempts: ``12.50 GPU-hours, 9.80 of them used; 31 EUR``."""
    if "refused" in cost:
        return str(cost["refused"])
    total = cost["total"]
    key, unit = ("gpu", "GPU") if total["gpu_held_seconds"] else ("cpu", "cpu")
    held, used = total[f"{key}_held_seconds"], total[f"{key}_used_seconds"]
    if not held:
        return None
    said_used = "" if used is None else f", {used / _HOUR:,.2f} of them used"
    money = "" if cost["money"] is None else f"; {cost['money']:,.2f} {cost['currency'] or ''}"
    return f"{held / _HOUR:,.2f} {unit}-hours{said_used}{money}"


def _texts(told: View, key: str) -> list[Line]:
    """What comes in lines; or why it does not."""
    if "refused" in told:
        return [[said(told["refused"], "yellow")]]
    return [[(printable(line), PLAIN)] for line in str(told[key]).splitlines()]


def _where(told: View) -> list[Line]:
    if "refused" in told:
        return _texts(told, "")
    lines = [[said(told["sentence"])], *([(printable(line), PLAIN)] for line in told["drawing"])]
    running = [(place["node"], one) for place in told["places"] for one in place["processes"] or ()]
    lines += [[said(f"{node} pid {one['pid']}: {one['command'] or '?'}", DIM)] for node, one in running[:8]]
    return lines


def _log(told: Any) -> list[Line]:
    if isinstance(told, dict):
        return _texts(told, "")
    return [[(printable(line.expandtabs()), PLAIN)] for line in told] or [[("nothing yet", DIM)]]


def refused(sentence: str) -> list[Line]:
    return [[(one_line(sentence), "yellow")]]
