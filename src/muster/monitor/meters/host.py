"""The node itself: its cpus, memory and disk, and how long someone waited for them."""

import os
from collections.abc import Callable
from typing import NamedTuple

from muster.model.usage import NodeReading
from muster.monitor.meters.files import File, Gone, Room
from muster.monitor.meters.lives import TICKS
from muster.monitor.meters.shown import summed
from muster.monitor.meters.texts import count, kib_bytes, pressure_seconds, scaled

_BUSY = (1, 2, 3, 6, 7)  # user, nice, system, irq, softirq: neither waiting nor what others on the host took


class Disk(NamedTuple):
    used_bytes: int
    total_bytes: int


def parse_busy_seconds(stat: bytes) -> float | None:
    """The first line of /proc/stat, over all cpus."""
    words = stat.partition(b"\n")[0].split()
    if words[:1] != [b"cpu"] or len(words) <= max(_BUSY):
        return None
    return scaled(summed([count(words[index]) for index in _BUSY]), TICKS)


def parse_memory(meminfo: bytes) -> tuple[int | None, int | None]:
    """Used and total. What the kernel would give to whoever asks is not used."""
    total, available = kib_bytes(meminfo, b"MemTotal:"), kib_bytes(meminfo, b"MemAvailable:")
    if total is None or available is None or available > total:
        return None, total
    return total - available, total


def disk_of(folder: str) -> Disk:
    """The disk that the folder is on. This may stand still: a disk can be a server."""
    status = os.statvfs(folder)
    return Disk((status.f_blocks - status.f_bfree) * status.f_frsize, status.f_blocks * status.f_frsize)


class HostMeter:
    """Reads the node. ``disk`` is asked aside."""

    def __init__(self, disk: Callable[[], Disk | None], room: Room) -> None:
        self._disk = disk
        names = ("stat", "meminfo", "pressure/cpu", "pressure/memory", "pressure/io")
        self._files = {name: File(f"/proc/{name}", room) for name in names}

    def read(self, at: float) -> NodeReading:
        used, total = parse_memory(self._text("meminfo"))
        disk = self._disk()
        return NodeReading(
            at=at,
            cpu_seconds=parse_busy_seconds(self._text("stat")),
            memory_used_bytes=used,
            memory_total_bytes=total,
            disk_used_bytes=None if disk is None else disk.used_bytes,
            disk_total_bytes=None if disk is None else disk.total_bytes,
            cpu_stalled_seconds=pressure_seconds(self._text("pressure/cpu")),
            memory_stalled_seconds=pressure_seconds(self._text("pressure/memory")),
            io_stalled_seconds=pressure_seconds(self._text("pressure/io")),
        )

    def _text(self, name: str) -> bytes:
        """Not every kernel has all of them."""
        try:
            return self._files[name].read() or b""
        except Gone:
            return b""

    def close(self) -> None:
        for file in self._files.values():
            file.close()
