"""How work uses what it holds, as functions of time: the same for a look now and for an hour of last week.

Nothing is remembered and no luck is drawn: what a device shows at a moment follows from the job, the device
and the minute. So the past and the present of a job are one curve, and two runs show the same.
"""

import math
import zlib
from functools import lru_cache

import msgspec

from muster.model.events import Seat
from muster.model.job import JobId
from muster.model.units import DAY, HOUR, MINUTE

_NAP_SECONDS = HOUR / 2
_LEAST_BUSY = 0.01  # of what works at all
_MIXER, _WORD = 0x85EBCA6B, 0xFFFFFFFF
_SLOW_SECONDS = 600.0  # the period in which counters swing


class Habit(msgspec.Struct, frozen=True):
    """Parts are of what is held."""

    busy: float  # of each GPU, on average
    swing: float = 0.06  # around it
    wave_seconds: float = 15 * MINUTE
    cpus: float = 0.35
    memory: float = 0.55
    gpu_memory: float = 0.7
    disk_bytes: float = 20e6  # read each second
    awake: float = 1.0  # part of the half hours in which it is used at all
    by_day: bool = False  # it follows people's hours
    is_silent: bool = False  # its meters show nothing


TRAINER = Habit(0.86)
HUNGRY = Habit(0.94, 0.03, gpu_memory=0.92)
DATA_BOUND = Habit(0.4, 0.16, 4 * MINUTE, cpus=0.92, disk_bytes=400e6)
EVALUATION = Habit(0.72, 0.14, 6 * MINUTE, gpu_memory=0.45)
SERVING = Habit(0.34, 0.12, 9 * MINUTE, cpus=0.2, gpu_memory=0.6, by_day=True)
NOTEBOOK = Habit(0.22, 0.2, 3 * MINUTE, cpus=0.1, gpu_memory=0.3, awake=0.3, by_day=True)
IDLE = Habit(0.0, 0.0, cpus=0.001, memory=0.05, gpu_memory=0.12, disk_bytes=0.0)
SILENT = Habit(0.5, is_silent=True)


def luck(text: str) -> float:
    """From 0 to 1, always the same for the same text."""
    mixed = zlib.crc32(text.encode()) * _MIXER & _WORD  # texts that differ by a digit differ by more
    return ((mixed ^ mixed >> 16) * _MIXER & _WORD) / (_WORD + 1)


@lru_cache(maxsize=20_000)
def _phase(job: JobId) -> float:
    return luck(f"phase {job}")


def busy_of(habit: Habit, job: JobId, devices: int, at: float) -> list[float]:
    """Of each of its GPUs, at a moment."""
    if not habit.busy or not is_awake(habit, job, at):
        return [0.0] * devices
    wave = math.sin(2 * math.pi * (at / habit.wave_seconds + _phase(job)))
    level = habit.busy * (_daylight(at) if habit.by_day else 1.0) + 0.7 * habit.swing * wave
    minute, swing = f"{job}/{at // MINUTE:.0f}/", 0.9 * habit.swing
    found = (level + swing * (luck(f"{minute}{place}") - 0.5) for place in range(devices))
    return [min(1.0, max(_LEAST_BUSY, busy)) for busy in found]


def is_awake(habit: Habit, job: JobId, at: float) -> bool:
    return habit.awake >= 1 or luck(f"{job}~{at // _NAP_SECONDS}") < habit.awake


def _daylight(at: float) -> float:
    """From 0.3 at night to 1.0 in the afternoon, by UTC."""
    return 0.65 + 0.35 * math.sin(2 * math.pi * (at % DAY / DAY - 0.33))


def counted(rate: float, seconds: float, job: JobId) -> float:
    """What a counter shows after so long, that grows at this rate and swings a little. It never falls."""
    if seconds <= 0:
        return 0.0
    turn = 2 * math.pi / _SLOW_SECONDS
    phase = 2 * math.pi * _phase(job)
    swing = 0.08 / turn * (math.cos(phase) - math.cos(turn * seconds + phase))
    return rate * (seconds + swing)


def places(seats: tuple[Seat, ...]) -> list[tuple[str, int]]:
    """The devices of a gang, in the order of the ledger."""
    return sorted({(seat.node, device) for seat in seats for device in seat.devices})
