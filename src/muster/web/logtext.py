"""The end of a log as people read it: no escape sequences, and of a line that was written over, the last."""

import re

# Colours, cursor movements, titles and the like; then whatever else is no letter but newline and tab.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def readable(raw: bytes, most_lines: int, *, is_cut: bool) -> str:
    """``is_cut``: it begins somewhere within a line, which is left out."""
    lines = _ESCAPES.sub("", raw.decode("utf-8", "replace")).split("\n")
    if is_cut and len(lines) > 1:
        del lines[0]
    ends_a_line = lines[-1] == ""
    shown = [_CONTROLS.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in lines]
    return "\n".join(shown[-(most_lines + ends_a_line) :])
