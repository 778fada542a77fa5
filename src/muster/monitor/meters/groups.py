"""What the control group of a part shows, in version 1 and 2.

Parsing is apart from reading. In version 1 each controller is a tree of its own, and a part is in those that
the keeper found of use; cpu time is told where ``cpuacct`` is mounted together with ``cpu``. In version 2 all
is in one folder, and more is told: how long someone waited for a cpu, for memory, for a disk.

Memory is what the kernel could not take back at once: all that is charged, less what was read from files and
not used again (``inactive_file``). The kernel's own peak counts such pages too, so it is taken with as much
less as there was of them: whoever reads a large file once has not needed memory for it.
"""

import math
import os
import time
from collections.abc import Mapping

from muster.engines.local.cgroups import Group
from muster.monitor.meters.files import SHORT_BYTES, File, Room, whole
from muster.monitor.meters.shown import Shown, summed
from muster.monitor.meters.texts import count, keyed, pressure_seconds, scaled

_NANO, _MICRO = 1_000_000_000, 1_000_000
_ALONE = 2  # links of a folder without others in it
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STALE_SECONDS = 1.5  # so long version 1 may show the same list again to whoever keeps the file open
CPU, MEMORY, IO, STALLS = "cpu", "memory", "io", "stalls"  # what a meter may be asked to show

# What there is to be read: name → controller and file. In version 2 the controller does not matter.
_V1_FILES = {
    "usage": ("cpu", "cpuacct.usage"),
    "usage apart": ("cpuacct", "cpuacct.usage"),
    "throttled": ("cpu", "cpu.stat"),
    "memory": ("memory", "memory.usage_in_bytes"),
    "peak": ("memory", "memory.max_usage_in_bytes"),
    "memory stat": ("memory", "memory.stat"),
    "io": ("blkio", "blkio.throttle.io_service_bytes_recursive"),
}
_V2_FILES = {
    "cpu stat": "cpu.stat",
    "memory": "memory.current",
    "peak": "memory.peak",
    "memory stat": "memory.stat",
    "io": "io.stat",
    "cpu pressure": "cpu.pressure",
    "memory pressure": "memory.pressure",
    "io pressure": "io.pressure",
}
_SHOWN_BY = {
    CPU: ("usage", "usage apart", "cpu stat"),
    MEMORY: ("memory",),
    IO: ("io",),
    STALLS: ("cpu pressure",),
}


# --- Parsing --------------------------------------------------------------------------------------


def parse_io_stat(text: bytes) -> tuple[int | None, int | None]:
    """Version 2's ``8:0 rbytes=4096 wbytes=0 rios=1 …``, a line a device: bytes read and written in all."""
    pairs = [pair.partition(b"=") for line in text.splitlines() for pair in line.split()[1:]]
    read = [count(value) for key, _, value in pairs if key == b"rbytes"]
    written = [count(value) for key, _, value in pairs if key == b"wbytes"]
    return summed(read), summed(written)


def parse_blkio(text: bytes) -> tuple[int | None, int | None]:
    """Version 1's ``8:0 Read 4096``, a line a device and kind."""
    words = [line.split() for line in text.splitlines()]
    read = [count(line[2]) for line in words if line[1:2] == [b"Read"] and len(line) > 2]
    written = [count(line[2]) for line in words if line[1:2] == [b"Write"] and len(line) > 2]
    return summed(read), summed(written)


def parse_pids(text: bytes) -> set[int]:
    """``cgroup.procs``; a 0 is someone whom we can't see from here."""
    return {pid for line in text.split() if (pid := count(line))}


class Peak:
    """The most memory so far, without what the kernel could have taken back."""

    def __init__(self) -> None:
        self._most = 0
        self._kernels, self._spare = 0, 0  # the kernel's peak and what could be taken back, at the last look

    def add(self, used: int, kernels: int | None, spare: int) -> int:
        """Now in use, the kernel's peak, and what could be taken back now."""
        if kernels is not None and kernels > self._kernels:
            # It was reached since the last look. How much could be taken back then is not told: as much as
            # there was at the one look or the other.
            self._most = max(self._most, kernels - max(spare, self._spare))
            self._kernels = kernels
        self._spare = spare
        self._most = max(self._most, used)
        return self._most


# --- Reading --------------------------------------------------------------------------------------


class GroupMeter:
    """Reads one part's group."""

    def __init__(self, version: int, folders: Mapping[str, str], room: Room) -> None:
        self._group = Group(version, dict(folders))
        self._folder = next(iter(folders.values()))
        found = {name: path for name, path in _paths(version, folders).items() if os.path.exists(path)}
        self._files = {name: File(path, room) for name, path in found.items()}
        self._list = File(f"{self._folder}/cgroup.procs", room)
        self._listed_at = -math.inf
        below = b"total_" if version == 1 else b""  # the sums that have the groups below in them
        self._spare_key, self._refault_key = below + b"inactive_file", below + b"workingset_refault_file"
        self._peak = Peak()

    @property
    def shows(self) -> frozenset[str]:
        """Of cpu, memory, io and stalls."""
        return frozenset(what for what, names in _SHOWN_BY.items() if self._files.keys() & set(names))

    def members(self) -> set[int]:
        """All processes in it, and in groups that the job has made below. ``Gone`` if it was removed."""
        now = time.monotonic()
        is_stale = self._group.version == 1 and now < self._listed_at + _STALE_SECONDS
        self._listed_at = now
        text = None if is_stale else self._list.read()
        if text is None or len(text) >= SHORT_BYTES:
            text = whole(f"{self._folder}/cgroup.procs")
        pids = parse_pids(text)
        if os.stat(self._folder).st_nlink > _ALONE:
            pids.update(self._group.members())
        return pids

    def read(self, shown: Shown) -> None:
        """Add what the group shows."""
        self._read_cpu(shown)
        self._read_memory(shown)
        if (text := self._text("io")) is not None:
            parse = parse_blkio if self._group.version == 1 else parse_io_stat
            shown.read_bytes, shown.written_bytes = parse(text)
        if self._group.version == 2:
            self._read_stalls(shown)

    def _read_cpu(self, shown: Shown) -> None:
        if (text := self._text("cpu stat")) is not None:
            shown.cpu_seconds = scaled(keyed(text, b"usage_usec"), _MICRO)
            shown.throttled_seconds = scaled(keyed(text, b"throttled_usec"), _MICRO)
        if (text := self._text("usage") or self._text("usage apart")) is not None:
            shown.cpu_seconds = scaled(count(text), _NANO)
        if (text := self._text("throttled")) is not None:
            shown.throttled_seconds = scaled(keyed(text, b"throttled_time"), _NANO)

    def _read_memory(self, shown: Shown) -> None:
        charged, stat = count(self._text("memory") or b""), self._text("memory stat")
        spare = None if stat is None else keyed(stat, self._spare_key)
        refaulted = None if stat is None else keyed(stat, self._refault_key)
        shown.refaulted_bytes = None if refaulted is None else refaulted * _PAGE_BYTES
        if charged is None or spare is None:
            return
        shown.memory_bytes = max(0, charged - spare)
        kernels = count(self._text("peak") or b"")
        shown.memory_peak_bytes = self._peak.add(shown.memory_bytes, kernels, spare)

    def _read_stalls(self, shown: Shown) -> None:
        for what in ("cpu", "memory", "io"):
            if (text := self._text(f"{what} pressure")) is not None:
                setattr(shown, f"{what}_stalled_seconds", pressure_seconds(text))

    def _text(self, name: str) -> bytes | None:
        file = self._files.get(name)
        return None if file is None else file.read()

    def close(self) -> None:
        for file in (self._list, *self._files.values()):
            file.close()


def _paths(version: int, folders: Mapping[str, str]) -> dict[str, str]:
    if version == 2:
        folder = next(iter(folders.values()))
        return {name: f"{folder}/{file}" for name, file in _V2_FILES.items()}
    return {
        name: f"{folders[controller]}/{file}"
        for name, (controller, file) in _V1_FILES.items()
        if controller in folders
    }
