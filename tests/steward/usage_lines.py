"""Minutes, made short: what tests say of them is what matters in them."""

from muster.model.usage import Rollup, Stat


def stat(value: float | tuple[float, float, float] | None) -> Stat | None:
    """A steady value, or the least, the mean and the most."""
    if value is None:
        return None
    return Stat(*value) if isinstance(value, tuple) else Stat(value, value, value)


def minute(
    cpus: float | tuple[float, float, float] | None = 0.0,
    *,
    start: float = 0.0,
    measured: float = 60.0,
    held: float = 60.0,
    memory: float | None = None,
    processes: float | None = 4,
    read: int | None = 0,
    written: int | None = 0,
    refaulted: int | None = 0,
    pressure: tuple[float, float, float] | None = (0.0, 0.0, 0.0),
    throttled: float | None = 0.0,
    gpus: tuple[float | tuple[float, float, float] | None, ...] = (),
) -> Rollup:
    """``pressure``: for cpus, memory and disks; None where the machine does not tell."""
    cpu, mem, io = (None, None, None) if pressure is None else map(stat, pressure)
    return Rollup(
        job="7",
        attempt=1,
        start=start,
        held_seconds=held,
        measured_seconds=measured,
        cpus=stat(cpus),
        throttled=stat(throttled),
        memory_bytes=stat(memory),
        processes=stat(processes),
        read_bytes=read,
        written_bytes=written,
        refaulted_bytes=refaulted,
        cpu_pressure=cpu,
        memory_pressure=mem,
        io_pressure=io,
        gpu_busy=tuple(map(stat, gpus)),
    )
