"""Lines of a job's output, understood: an object in JSON, or whatever a template finds.

What is printed is anybody's: a line that is not what it should be is passed over, and never an error.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from muster.model.report import numbers_in
from muster.model.template import STEP, Template

Said = tuple[float | None, dict[str, float]]  # a step, and values
Understand = Callable[[bytes], Said | None]

_STEPS = (STEP, "global_step", "iteration")  # the first that a line has is its step
_EPOCH = "epoch"  # if it has none of these; and a value besides
_NOT_JSON = (b"NaN", b"Infinity")  # which Python writes, and others refuse to read

# Colours, titles and the like, then whatever else moves a cursor.
_ESCAPES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b\x0c\x0e-\x1f]"
)
_decode = msgspec.json.Decoder().decode


def json_line(line: bytes) -> Said | None:
    """The top-level numbers of an object."""
    line = _plain(line).strip() if b"{" in line else b""
    if not line.startswith(b"{"):
        return None
    try:
        found = json.loads(line) if any(word in line for word in _NOT_JSON) else _decode(line)
    except (ValueError, RecursionError):  # msgspec's errors are of the first kind
        return None
    return _said(found) if isinstance(found, dict) else None


def _said(found: dict[str, Any]) -> Said | None:
    step_name = next((name for name in _STEPS if _is_number(found.get(name))), None)
    step = float(found.pop(step_name)) if step_name is not None else None
    if step is None and _is_number(found.get(_EPOCH)):
        step = float(found[_EPOCH])
    values = numbers_in(found)
    return (step, values) if values else None


def _is_number(value: object) -> bool:
    """One that a step can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 63


def pattern_line(template: Template) -> Understand:
    """What this template finds."""

    def understand(line: bytes) -> Said | None:
        found = template.numbers(_plain(line).decode(errors="replace"))
        if found is None:
            return None
        step = found.pop(STEP, None)
        return (step if _is_number(step) else None), found

    return understand


def _plain(line: bytes) -> bytes:
    """Without what is for the terminal."""
    return _ESCAPES.sub(b"", line) if not line.isascii() or not line.decode("ascii").isprintable() else line
