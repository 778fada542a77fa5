"""Reports as rows, and back.

Values are a JSON object, so that whoever looks into the database can read them. JSON has no words for what is
no number; those are texts.
"""

import math
from typing import Any

import msgspec

from muster.model.report import Report
from muster.store.rows import ReportRow, StateKey

_encode = msgspec.json.Encoder().encode
_decode_values = msgspec.json.Decoder(dict[str, float | str]).decode


def report_values(row: ReportRow) -> dict[str, Any]:
    report = row.report
    step = report.step
    return {
        "job": report.job,
        "attempt": report.attempt,
        "number": row.number,
        "at": report.at,
        "ran_seconds": row.ran_seconds,
        "step": step if step is None or math.isfinite(step) else None,
        "values": _encode(spelled(report.values)).decode(),
        "source": report.source,
    }


def spelled(values: dict[str, float]) -> dict[str, float | str]:
    """As JSON can carry them."""
    return {name: value if math.isfinite(value) else str(value) for name, value in values.items()}


def report_row_from(row: Any) -> ReportRow:
    values = {name: float(value) for name, value in _decode_values(row.values).items()}
    report = Report(row.job, row.attempt, row.at, row.step, values, row.source)
    return ReportRow(row.number, row.ran_seconds, report)


def state_values(key: StateKey, body: bytes) -> dict[str, Any]:
    job, attempt, kind = key
    return {"job": job, "attempt": attempt, "kind": kind, "body": body}
