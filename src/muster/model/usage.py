"""What is used: what meters show, and what follows from it.

A *reading* is what meters show of one attempt at one moment; its counters only grow while the attempt
lasts. Two readings make a *sample*: what was used between them. Samples are rolled up to *minutes*, and
those to hours. Held is what was granted and used is what was measured; the *coverage* of a figure is how
much of the time was really measured. What is not known is None, never 0, from the meter to the page.
"""

import msgspec

from muster.model.job import JobId
from muster.model.resources import Resources


class GpuShown(msgspec.Struct, frozen=True, gc=False):
    """What the meter shows of one device that an attempt holds."""

    device: int
    busy: float | None = None  # 0 to 1, by the metric that the meter names
    memory_bytes: int | None = None  # taken by the attempt's own processes


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What meters show of one attempt. Seconds and bytes in counters are since it started."""

    job: JobId
    attempt: int
    at: float  # by the wall
    since_boot_seconds: float  # by a clock that nobody sets: what intervals are measured with
    cpu_seconds: float | None = None  # counter
    throttled_seconds: float | None = None  # counter: held back by its own cap
    memory_bytes: int | None = None  # now, without what the kernel could take back at once
    memory_peak_bytes: int | None = None  # the most so far
    processes: int | None = None
    read_bytes: int | None = None  # counter, from and to disks
    written_bytes: int | None = None
    refaulted_bytes: int | None = None  # counter, of what was read: again, since it did not stay in memory
    # Counters: how long someone of it waited for a cpu, for memory, for a disk.
    cpu_stalled_seconds: float | None = None
    memory_stalled_seconds: float | None = None
    io_stalled_seconds: float | None = None
    gpus: tuple[GpuShown, ...] = ()
    by: str | None = None  # which meters, where there are several kinds: each counts in its own way


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt used between two readings."""

    job: JobId
    attempt: int
    at: float  # the end of the interval, by the wall
    seconds: float  # its length
    cpus: float | None = None  # busy, on average
    throttled: float | None = None  # part of the time in which it was
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    processes: int | None = None
    read_bytes: int | None = None  # in the interval
    written_bytes: int | None = None
    refaulted_bytes: int | None = None
    cpu_pressure: float | None = None  # part of the time in which someone waited for it
    memory_pressure: float | None = None
    io_pressure: float | None = None
    gpu_busy: tuple[float | None, ...] = ()  # of each device that it holds, by node and number
    gpu_memory_bytes: tuple[int | None, ...] = ()
    # For how much of the interval, at its end, what a meter shows at a moment stands: memory, processes,
    # GPUs. None: all of it. Counters always speak for the whole.
    gauge_seconds: float | None = None


class Stat(msgspec.Struct, frozen=True, gc=False):
    """A quantity over some time."""

    least: float
    mean: float
    most: float
    seconds: float = 60.0  # for how long it was measured: one figure may be lost while others are not


class Rollup(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt used in a minute, or an hour."""

    job: JobId
    attempt: int
    start: float  # by the wall, a whole minute or hour
    held_seconds: float  # how long of it the attempt held its seats
    measured_seconds: float  # and how much of that was measured, in whatever figure
    cpus: Stat | None = None
    throttled: Stat | None = None
    memory_bytes: Stat | None = None
    memory_peak_bytes: int | None = None  # the most so far, as the meter says at its end
    processes: Stat | None = None
    read_bytes: int | None = None  # in all
    written_bytes: int | None = None
    refaulted_bytes: int | None = None
    cpu_pressure: Stat | None = None
    memory_pressure: Stat | None = None
    io_pressure: Stat | None = None
    gpu_busy: tuple[Stat | None, ...] = ()
    gpu_memory_bytes: tuple[Stat | None, ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """Held and used over some time, by a job or by many: sums, so they add up at every level.

    The unit of each is that of a resource times seconds. ``measured`` is the part of held that was measured.
    Seconds are whole ticks (see ``ledger``), so that they add up exactly as well, in any order.
    """

    held: Resources = Resources()
    measured: Resources = Resources()
    used: Resources = Resources()
    held_seconds: float = 0.0
    measured_seconds: float = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.held + other.held,
            self.measured + other.measured,
            self.used + other.used,
            self.held_seconds + other.held_seconds,
            self.measured_seconds + other.measured_seconds,
        )

    @property
    def coverage(self) -> float | None:
        """How much of the time was measured; None where there was none."""
        return self.measured_seconds / self.held_seconds if self.held_seconds else None


class AtEnd(msgspec.Struct, frozen=True, gc=False):
    """What the kernel says of an attempt once it is over, however short it was."""

    cpu_seconds: float  # of its processes and all that were waited for
    largest_bytes: int  # the most memory that one of its processes had at once


class ForeignProcess(msgspec.Struct, frozen=True):
    """A process on a GPU that Muster has not started."""

    pid: int
    user: str | None
    command: str | None
    memory_bytes: int | None = None


class GpuReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the meter shows of one device."""

    index: int
    minor: int | None = None  # as the kernel numbers it, whoever sees how many of them; None: not told
    uuid: str | None = None
    name: str | None = None
    metric: str | None = None  # what ``busy`` is, such as "nvml-utilization"
    busy: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    temperature_celsius: float | None = None
    uncorrected_errors: int | None = None  # counter
    is_mig: bool | None = None
    lost: bool = False  # it was there, and no longer answers
    foreign: tuple[ForeignProcess, ...] | None = None  # None: whose processes are there is not known


class NodeReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the meters show of the node itself."""

    at: float
    cpu_seconds: float | None = None  # counter: busy, over all cpus
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    disk_used_bytes: int | None = None
    disk_total_bytes: int | None = None
    cpu_stalled_seconds: float | None = None
    memory_stalled_seconds: float | None = None
    io_stalled_seconds: float | None = None
    gpus: tuple[GpuReading, ...] = ()
