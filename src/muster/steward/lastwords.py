"""Which of a log's last lines says why its program ended.

Lines are read from the last one upwards. The nearest that names a cause is it, with these exceptions, all
of which real logs have:

- An error of which no more is known hides what is above it, unless it came up while that was handled
  (Python says so between two tracebacks).
- Launchers and other ranks echo a failure after the one who failed: echoes hide nothing.
- What was followed by much ordinary output did not end the program: it was handled. Of lines that a shell or
  its tools print, hardly any may follow.
"""

from collections.abc import Sequence
from typing import NamedTuple

from muster.steward.cause import MOST_BYTES, MOST_LINES
from muster.steward.signs import MOST_LETTERS, clean, sign_of
from muster.steward.words import Sign, Weight

_HANDLED_AFTER = 30  # ordinary lines
_WEAK_AFTER = 3
_TRACEBACK = (" ", "\t", "Traceback", "[rank", "frame #", "│", "╭", "╰", "--- ", "====", "----")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


class Found(NamedTuple):
    """A line that says why, by its place among the lines given."""

    at: int
    sign: Sign
    text: str


def last_lines(raw: bytes) -> tuple[str, ...]:
    """The lines at the end of what was read from a log, within bounds, whatever bytes they are of."""
    lines = raw[-MOST_BYTES:].decode(errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    return tuple(lines[-MOST_LINES:])


def find(lines: Sequence[str]) -> Found | None:
    """The line that says why, None if none does."""
    reading = _Reading()
    spent = 0
    for index in reversed(range(max(0, len(lines) - MOST_LINES), len(lines))):
        line = lines[index][: 2 * MOST_LETTERS]
        spent += len(line)
        if spent > MOST_BYTES:
            break
        if (found := reading.takes(index, line)) is not None:
            return found
    return reading.best()


class _Reading:
    """What was seen so far, from the last line upwards."""

    def __init__(self) -> None:
        self._ordinary = 0
        self._chained = False
        self._generic: list[Found] = []  # the nearest to the end first
        self._echo: Found | None = None
        self._hint: Found | None = None
        self._losses = 0

    def best(self) -> Found | None:
        return self._hint or next(iter(self._generic), None) or self._echo

    def takes(self, index: int, line: str) -> Found | None:
        """A line; what it settles."""
        said = sign_of(line)
        if said is None:
            self._chained |= clean(line).lstrip(" |").startswith(_CHAINED)
            self._ordinary += _is_ordinary(line)
            return None
        sign = said[0]
        found = Found(index, *said)
        if sign.weight is Weight.FINAL or sign.weight is Weight.WEAK:
            return found if self._counts(sign) else None
        self._notes(found)
        return None

    def _counts(self, sign: Sign) -> bool:
        hidden = bool(self._generic) and not self._chained
        self._chained = False
        most = _HANDLED_AFTER if sign.weight is Weight.FINAL else _WEAK_AFTER
        return not hidden and self._ordinary <= most

    def _notes(self, found: Found) -> None:
        match found.sign.weight:
            case Weight.GENERIC if self._ordinary <= _HANDLED_AFTER:
                self._generic.append(found)
                self._chained = False
            case Weight.ECHO if self._ordinary <= _HANDLED_AFTER:
                self._echo = self._echo or found
            case Weight.IGNORED:
                del self._generic[-1:]
            case Weight.HINT | Weight.FINE:
                self._ordinary += 1
                self._losses += 1
                if self._losses == 1 and found.sign.weight is Weight.HINT:
                    self._hint = found


def _is_ordinary(line: str) -> bool:
    """Whether it is output of a program that goes on, and not part of a traceback."""
    return bool(line.strip()) and not line.startswith(_TRACEBACK)
