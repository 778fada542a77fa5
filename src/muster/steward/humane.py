"""Amounts that people would write: rounded up to a step of about a tenth, and as flags ready to paste."""

import math

from muster.model.units import DAY, GIB, HOUR, MIB, MILLI, MINUTE, TIB, show_bytes, show_milli, show_seconds

# Up to what is rounded to multiples of what. Each prints in four digits: what is pasted is what was meant.
_BYTES = (
    (GIB, 64 * MIB),
    (4 * GIB, 256 * MIB),
    (16 * GIB, 512 * MIB),
    (64 * GIB, GIB),
    (256 * GIB, 4 * GIB),
    (TIB, 16 * GIB),
    (8 * TIB, 128 * GIB),
)
_SECONDS = (
    (10 * MINUTE, MINUTE),
    (HOUR, 5 * MINUTE),
    (4 * HOUR, 15 * MINUTE),
    (12 * HOUR, 30 * MINUTE),
    (2 * DAY, HOUR),
)


def bytes_up(value: float) -> int:
    """The next humane size that is at least this; never nothing."""
    step = next((step for most, step in _BYTES if value <= most), TIB)
    return max(1, math.ceil(value / step)) * step


def seconds_up(value: float) -> float:
    """The next humane span that is at least this; never nothing."""
    step = next((step for most, step in _SECONDS if value <= most), 6 * HOUR)
    return max(1, math.ceil(value / step)) * step


def cpus_up(value: float) -> int:
    """Thousandths: whole cpus, or a half."""
    return MILLI // 2 if value <= 0.5 else math.ceil(value - 1e-9) * MILLI


def flags(
    *,
    cpus_milli: int | None = None,
    memory_bytes: int | None = None,
    gpu_memory_bytes: int | None = None,
    seconds: float | None = None,
) -> str:
    """``--mem 12G --cpus 4 --time 2h30m``."""
    said = []
    if memory_bytes is not None:
        said.append(f"--mem {show_bytes(memory_bytes)}")
    if cpus_milli is not None:
        said.append(f"--cpus {show_milli(cpus_milli)}")
    if gpu_memory_bytes is not None:
        said.append(f"--gpu-memory {show_bytes(gpu_memory_bytes)}")
    if seconds is not None:
        said.append(f"--time {show_seconds(seconds).replace(' ', '')}")
    return " ".join(said)
