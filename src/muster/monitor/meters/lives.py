"""What a process shows of itself in /proc, and what is left of those that have ended.

A process's figures include those of its children that have ended and were *waited for*. So the sum over a
tree counts everybody once, as long as everybody lives or is waited for by someone of the tree. Who ends
without that, as a daemon does, takes its figures along: then what it showed last is kept. Whether it was
waited for is not told; but if it was, its nearest ancestor has inherited at least what it had. What nobody
has inherited is kept.
"""

import operator
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.monitor.meters.texts import MOST, count, keyed, kib_bytes

TICKS = os.sysconf("SC_CLK_TCK")  # a second
_SLACK_SECONDS = 4 / TICKS  # four figures are rounded down to a tick each
_NANO = 1_000_000_000
_DEAD = (b"Z", b"X")
_STAT_FIELDS = operator.itemgetter(1, 3, 19, 17, 11, 12, 13, 14, 39)  # counted from the state


class Life(NamedTuple):
    """A line of /proc/PID/stat, as far as meters read it."""

    parent: int
    session: int
    started: int  # ticks since the machine was booted: with it, a number that is used again is told apart
    is_dead: bool  # has ended, and was not waited for yet
    threads: int
    own_seconds: float
    inherited_seconds: float  # of children that were waited for
    io_delay_seconds: float  # of its main thread, if the kernel accounts for it


def parse_stat(text: bytes) -> Life | None:
    """The command may hold anything, brackets too: so what follows it is counted from the last one."""
    fields = text[text.rfind(b")") + 1 :].split(None, 40)
    try:
        numbers = [int(field) for field in _STAT_FIELDS(fields)]
    except (IndexError, ValueError):
        return None
    if min(numbers) < 0 or max(numbers) >= MOST:
        return None
    parent, session, started, threads, own, own_system, inherited, inherited_system, delay = numbers
    return Life(
        parent,
        session,
        started,
        fields[0] in _DEAD,
        threads,
        (own + own_system) / TICKS,
        (inherited + inherited_system) / TICKS,
        delay / TICKS,
    )


class Held(NamedTuple):
    """Memory of one process. What it shares is of files and segments, that others may have in theirs."""

    private_bytes: int
    shared_bytes: int
    peak_bytes: int


def parse_status(text: bytes) -> Held | None:
    """/proc/PID/status. One that is just ending has no memory any more, and does not speak of it."""
    if b"\nVmRSS:" not in text:
        return Held(0, 0, 0) if b"\nState:" in text else None
    sizes = [kib_bytes(text, key) for key in (b"RssAnon:", b"RssFile:", b"RssShmem:", b"VmHWM:")]
    anonymous, file, segments, peak = (-1 if size is None else size for size in sizes)
    return None if min(anonymous, file, segments, peak) < 0 else Held(anonymous, file + segments, peak)


def parse_io(text: bytes) -> tuple[int | None, int | None]:
    """/proc/PID/io: bytes from and to disks, with those of children that were waited for."""
    return keyed(text, b"read_bytes:"), keyed(text, b"write_bytes:")


def parse_queued(text: bytes, life: Life) -> float | None:
    """/proc/PID/schedstat: how long it was ready to run and did not.

    It is told of the main thread only, and believed if that did at least half of the work.
    """
    words = text.split()
    ran, waited = (count(words[0]), count(words[1])) if len(words) == 3 else (None, None)
    if ran is None or waited is None or (life.threads > 1 and ran / _NANO < life.own_seconds / 2):
        return None
    return waited / _NANO


# --- The ended ------------------------------------------------------------------------------------


class Used(NamedTuple):
    """Counters of one process, with those that it has inherited. None: not known."""

    cpu_seconds: float
    read_bytes: int | None = None
    written_bytes: int | None = None


class Seen(NamedTuple):
    """A process at one look."""

    started: int
    parent: int
    used: Used
    inherited: Used  # at most: of bytes it is not told apart from its own


def ended(before: Mapping[int, Seen], now: Mapping[int, Seen]) -> set[int]:
    """Whose numbers are no longer there, or are somebody else's."""
    return {pid for pid, seen in before.items() if pid not in now or now[pid].started != seen.started}


def left_behind(before: Mapping[int, Seen], now: Mapping[int, Seen]) -> Used:
    """What those who have ended between two looks had used, and nobody has inherited."""
    gone = ended(before, now)
    estates: dict[int, list[Used]] = {}
    for pid in gone:
        estates.setdefault(_heir(pid, before, gone), []).append(before[pid].used)
    left = Used(0.0, 0, 0)
    for heir, estate in estates.items():
        left = added(left, _unclaimed(estate, before.get(heir), now.get(heir)))
    return left


def _heir(pid: int, before: Mapping[int, Seen], gone: set[int]) -> int:
    """The nearest ancestor that lives; 0: it is not of the tree, or there is none."""
    passed: set[int] = set()
    while pid in gone and pid not in passed:
        passed.add(pid)
        pid = before[pid].parent
    return pid if pid in before and pid not in gone else 0


def _unclaimed(estate: Iterable[Used], before: Seen | None, now: Seen | None) -> Used:
    owed = Used(0.0, 0, 0)
    for used in estate:
        owed = added(owed, used)
    if before is None or now is None:
        return owed
    seconds = owed.cpu_seconds - (now.inherited.cpu_seconds - before.inherited.cpu_seconds)
    return Used(
        seconds if seconds > _SLACK_SECONDS else 0.0,
        _short(owed.read_bytes, before.inherited.read_bytes, now.inherited.read_bytes),
        _short(owed.written_bytes, before.inherited.written_bytes, now.inherited.written_bytes),
    )


def _short(owed: int | None, before: int | None, now: int | None) -> int:
    return 0 if owed is None or before is None or now is None else max(0, owed - (now - before))


def added(one: Used, other: Used) -> Used:
    """What is not known adds nothing: it is not known now either, and nobody is told the sum."""
    return Used(
        one.cpu_seconds + other.cpu_seconds,
        (one.read_bytes or 0) + (other.read_bytes or 0),
        (one.written_bytes or 0) + (other.written_bytes or 0),
    )
