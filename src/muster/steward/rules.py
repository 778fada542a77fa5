"""The rules by which the steward calls an attempt idle, stuck or too large on a GPU, and what it does then.

Every definition states its window, its thresholds and its meters, so that a finding can be checked by
whoever it concerns. Acting is a policy: a note, a warning (twice at most), standing still, or an end.
"""

from typing import Literal, get_args

import msgspec

from muster.model.errors import BadInput
from muster.model.units import DAY, HOUR, MIB, MINUTE

Act = Literal["note", "warn", "suspend", "stop"]
Further = Literal["io", "memory", "gpu-memory"]

ACTS: tuple[Act, ...] = get_args(Act)  # from the mildest on
MOST_WARNINGS = 2  # whatever the policy says: who is warned often stops reading


class Response(msgspec.Struct, frozen=True):
    """What to do about one kind of finding."""

    act: Act = "warn"
    warnings: int = MOST_WARNINGS  # given before the act
    between_seconds: float = HOUR  # from one warning to the next
    grace_seconds: float = HOUR  # from the last warning to the act

    def __post_init__(self) -> None:
        if not 1 <= self.warnings <= MOST_WARNINGS:
            raise BadInput(
                f"{self.warnings} warnings can't be given before an act; write 1 or {MOST_WARNINGS}"
            )
        if min(self.between_seconds, self.grace_seconds) < 0:
            raise BadInput("the time between warnings and the grace after them can't be less than nothing")

    @property
    def lead_seconds(self) -> float:
        """How long a finding lasts before the act."""
        return (self.warnings - 1) * self.between_seconds + self.grace_seconds


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """When something is found, and what is done about it. The defaults are those of one machine."""

    # Idle: held, and not used for a window
    idle_seconds: float = HOUR  # of an attempt that holds GPUs
    idle_cpu_seconds: float = 2 * HOUR  # of one that holds none
    settle_seconds: float = 10 * MINUTE  # after a start nothing counts as idle: data is loaded
    # What is use, in a minute. GPUs and cpus must always agree that there was none; so must these.
    also: tuple[Further, ...] = ("io", "memory")
    gpu_busy: float = 0.002  # on average; low, since a service that is hardly asked is asked
    cpus: float = 0.1  # on average; of who holds less than one cpu, this part of it
    io_bytes: int = 10 * MIB  # read and written
    memory_bytes: int = 64 * MIB  # more or less taken, of the host's memory or a GPU's
    blips: float = 0.04  # part of the window that may be used, or not measured, and it is idle all the same
    covered: float = 0.8  # part of the window that must have been measured
    silent_seconds: float = 3 * MINUTE  # a meter whose last word is older than this says nothing

    # Stuck: no sign of progress
    stuck_seconds: float = 2 * HOUR  # if the charter says what is progress, and it was seen twice
    stuck_unsure_seconds: float = 4 * HOUR  # if only habit does, or how often it comes is not known yet
    stuck_intervals: float = 3.0  # and this many times as long as it ever took from one sign to the next
    habit_signs: int = 8  # fewer are no habit
    habit_seconds: float = HOUR  # nor is what lasted less
    phase: float = 4.0  # who works so many times as hard as when it last spoke has begun something else

    # Too much GPU memory: beyond the grant by more than both
    gpu_memory_over: float = 0.05  # part of the grant
    gpu_memory_over_bytes: int = 256 * MIB

    on_idle: Response = Response("warn")
    on_unused_gpu: Response = Response("note")  # of a job that uses the rest
    on_stuck: Response = Response("warn")
    on_gpu_memory: Response = Response("stop", warnings=1, grace_seconds=MINUTE)
    forget_seconds: float = DAY  # what has been gone for so long is new when it comes back

    def __post_init__(self) -> None:
        windows = (self.idle_seconds, self.idle_cpu_seconds, self.stuck_seconds, self.stuck_unsure_seconds)
        if min(windows) < MINUTE:
            raise BadInput("a window is at least a minute, since use is known by the minute")
        if min(self.gpu_busy, self.cpus, self.io_bytes, self.memory_bytes) <= 0:
            raise BadInput("a threshold of use must be above zero: nothing is used by nobody")
        if not (0 <= self.blips < 1 and 0 < self.covered <= 1):
            raise BadInput("blips and covered are parts of the window, from 0 to 1")
        if self.on_unused_gpu.act not in ("note", "warn"):
            raise BadInput("a job that uses the rest is not stopped for an unused GPU; write note or warn")
