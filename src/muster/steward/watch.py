"""What the steward looks at: an attempt, what it holds, its minutes, and its signs of progress."""

import msgspec
from msgspec.structs import replace

from muster.model.charter import Progress
from muster.model.job import Job
from muster.model.resources import Resources
from muster.model.usage import Rollup, Sample


class Sign(msgspec.Struct, frozen=True):
    """One kind of progress as it was seen in an attempt: so much of the past as is needed, and no more.

    A kind that nobody looks for has no Sign at all: not seen because not looked for is no evidence.
    """

    kind: Progress
    watched_from: float  # without a break until now; what came before is not known
    count: int = 0
    first_at: float | None = None
    last_at: float | None = None
    # From one to the next, at most. Not the mean, which is short for a log that comes in bursts.
    longest_seconds: float = 0.0

    def again(self, at: float) -> "Sign":
        """It was seen once more. What a clock that was set back shows is no news."""
        if self.last_at is None or self.first_at is None:
            return replace(self, count=1, first_at=at, last_at=at)
        if at <= self.last_at:
            return self
        longest = max(self.longest_seconds, at - self.last_at)
        return replace(self, count=self.count + 1, last_at=at, longest_seconds=longest)


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that runs, and what is known of it."""

    job: Job
    attempt: int
    started_at: float
    resumed_at: float | None = None  # the last time, if it ever stood still
    is_suspended: bool = False
    held: Resources = Resources()
    devices: tuple[int, ...] = ()  # their numbers, in order
    # Of each device, what it may take at most; None: all of it. Empty: all of all.
    gpu_granted_bytes: tuple[int | None, ...] = ()
    gpu_metric: str | None = None  # what the meter calls "busy"
    # Oldest first, and as far back as a finding shall tell: at least the window, and before the last sign the
    # time that makes a habit.
    minutes: tuple[Rollup, ...] = ()
    newest: Sample | None = None
    signs: tuple[Sign, ...] = ()

    @property
    def began_at(self) -> float:
        """Since when it has been going without standing still."""
        return self.started_at if self.resumed_at is None else max(self.started_at, self.resumed_at)

    def granted_bytes(self, place: int) -> int | None:
        """Of the device at this place among its own."""
        return self.gpu_granted_bytes[place] if place < len(self.gpu_granted_bytes) else None
