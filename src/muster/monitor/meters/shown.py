"""Figures of one part, and how those of several become one.

Amounts of several add up. Waits do not: when two wait, someone waits once. So of waits the longest counts,
from look to look: as long as that, someone has surely waited. It is less than the truth if they took turns,
and never more.
"""

from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

import msgspec

Number = TypeVar("Number", int, float)


class Shown(msgspec.Struct, kw_only=True):
    """What meters show of one part; the names are those of a Reading. None: not known."""

    cpu_seconds: float | None = None
    throttled_seconds: float | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    processes: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    refaulted_bytes: int | None = None
    cpu_stalled_seconds: float | None = None
    memory_stalled_seconds: float | None = None
    io_stalled_seconds: float | None = None


WAITS = ("throttled_seconds", "cpu_stalled_seconds", "memory_stalled_seconds", "io_stalled_seconds")
_MOVED = ("read_bytes", "written_bytes", "refaulted_bytes")
RISING = ("cpu_seconds", "memory_peak_bytes", *_MOVED, *WAITS)
AMOUNTS = ("cpu_seconds", "memory_bytes", "memory_peak_bytes", "processes", *_MOVED)


def summed(values: Collection[Number | None]) -> Number | None:
    """None if one of them is not known."""
    return None if None in values else sum(values)  # type: ignore[arg-type]


class Longest:
    """A counter that grows by what the most has grown of several; each is known by its key."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last: dict[Hashable, float] = {}

    def add(self, now: Mapping[Hashable, float | None]) -> float | None:
        """None if one of them is not known now: it may be the longest."""
        most, kept, is_known = 0.0, {}, True
        for key, seconds in now.items():
            before = self._last.get(key, 0.0)
            if seconds is None:
                is_known = False
            kept[key] = before if seconds is None else max(before, seconds)
            most = max(most, kept[key] - before)
        self._last = kept
        self._seconds += most
        return self._seconds if is_known else None


class Rising:
    """Keeps a part's counters honest, and its peak: what falls is not believed until it has caught up."""

    def __init__(self) -> None:
        self._most = Shown()

    def checked(self, shown: Shown) -> Shown:
        for name in RISING:
            value, most = getattr(shown, name), getattr(self._most, name)
            if value is None:
                continue
            if most is not None and value < most:
                setattr(shown, name, None)
            else:
                setattr(self._most, name, value)
        return shown

    def after_the_end(self) -> Shown:
        """Of a part that has ended: its counters stay, and it holds nothing more."""
        ended = msgspec.structs.replace(self._most)
        if ended != Shown():
            ended.memory_bytes, ended.processes = 0, 0
        return ended
