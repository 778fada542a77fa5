"""The processes of one attempt, one by one, for whoever looks at it: who they are and what each uses.

Looked at when somebody asks, and not at every look of the meters: reading a process costs as much as a group.
"""

import contextlib
import time
from collections.abc import Collection

import msgspec

from muster.monitor.meters.census import Census, Root
from muster.monitor.meters.files import Gone, Room, whole
from muster.monitor.meters.groups import GroupMeter
from muster.monitor.meters.lives import TICKS, parse_stat, parse_status
from muster.monitor.meters.parts import PartSeen

_LONGEST_COMMAND = 400


class ProcessShown(msgspec.Struct, frozen=True):
    """What /proc shows of a process. None: it is not told."""

    pid: int
    parent: int
    command: str | None
    threads: int
    cpu_seconds: float  # its own, without children that have ended
    memory_bytes: int | None  # what it has of its own, and shares
    age_seconds: float


def members_of(part: PartSeen) -> Collection[int]:
    """Who belongs to a part: all in its group, else its main process, its session and their descendants."""
    if part.group:
        meter = GroupMeter(part.version, part.group, Room(0))
        try:
            return meter.members()
        except Gone:
            return ()
        finally:
            meter.close()
    key = ("", 0, 0)
    return Census(lambda _: None).members({key: Root(part.pid, part.started)})[key]


def shown_of(pids: Collection[int], most: int, proc: str = "/proc") -> list[ProcessShown]:
    """Those of them that still live, so many at most."""
    found = []
    for pid in sorted(pids):
        with contextlib.suppress(Gone, OSError):
            shown = _shown(pid, proc)
            if shown is not None:
                found.append(shown)
        if len(found) >= most:
            break
    return found


def _shown(pid: int, proc: str) -> ProcessShown | None:
    life = parse_stat(whole(f"{proc}/{pid}/stat"))
    if life is None or life.is_dead:
        return None
    held = parse_status(whole(f"{proc}/{pid}/status"))
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - life.started / TICKS
    memory = None if held is None else held.private_bytes + held.shared_bytes
    command = whole(f"{proc}/{pid}/cmdline")
    return ProcessShown(
        pid, life.parent, _words(command), life.threads, life.own_seconds, memory, max(0.0, age)
    )


def _words(command: bytes) -> str | None:
    """None: a thread of the kernel's, or one that has just begun."""
    said = " ".join(command.rstrip(b"\0").decode(errors="replace").split("\0"))
    return said[:_LONGEST_COMMAND] or None
