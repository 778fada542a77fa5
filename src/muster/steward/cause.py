"""How an attempt ended, as far as it is known, and why: what triage takes and what it gives."""

import enum
from collections.abc import Mapping

import msgspec

from muster.model.events import Outcome
from muster.model.job import JobId
from muster.steward.faults import Fault

MOST_LINES, MOST_BYTES = 200, 64 << 10  # of the log that triage looks at


class Kind(enum.StrEnum):
    HOST_OUT_OF_MEMORY = "host out of memory"
    GPU_OUT_OF_MEMORY = "GPU out of memory"
    TIME_LIMIT = "time limit"
    PREEMPTED = "preempted"
    NODE_FAULT = "node fault"
    GPU_FAULT = "GPU fault"
    MISSING_FILE = "missing file"
    MISSING_MODULE = "missing module"
    NAN = "NaN"
    KILLED_BY_USER = "killed by its user"
    KILLED_BY_OTHER = "killed by someone else"
    NOT_EXECUTED = "could not be executed"
    OWN_ERROR = "its own error"


class How(enum.StrEnum):
    STOPPED = "stopped"  # for good
    EVICTED = "evicted"  # it goes back to the queue
    OVER_GPU_MEMORY = "over its GPU memory"  # stopped by the watchdog: it endangered its neighbours


class Told(msgspec.Struct, frozen=True):
    """That it was told to end."""

    how: How
    because: str
    by: str | None = None  # a person; None: Muster itself


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that is over. What is not known is None."""

    job: JobId
    owner: str
    outcome: Outcome | None  # None: it left its seats and waits again
    exit_code: int | None = None
    signal: int | None = None
    told: Told | None = None
    out_of_memory: int | None = None  # counter: processes of it that the kernel killed for want of memory
    log: tuple[str, ...] = ()  # its last lines; see ``signs.last_lines``
    log_first_line: int | None = 1  # the number of the first of them
    reported: Mapping[str, float] = {}  # the last value under each name
    faults: tuple[Fault, ...] = ()  # of its node and devices, while it ran
    memory_peak_bytes: int | None = None
    memory_limit_bytes: int | None = None
    gpu_memory_peak_bytes: int | None = None  # of the device on which it took most
    gpu_memory_limit_bytes: int | None = None  # what it was granted of each, or what each has
    ran_seconds: float | None = None
    limit_seconds: float | None = None


class Evidence(msgspec.Struct, frozen=True):
    """What the cause was seen by: a line of the log, or a fact."""

    text: str
    line: int | None = None  # its number; None for facts, and where the log's beginning is not known

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


class Cause(msgspec.Struct, frozen=True):
    """Why an attempt failed, and what to do."""

    kind: Kind
    evidence: Evidence
    action: str  # a sentence
    peak_bytes: int | None = None  # of the memory that it ran out of
    limit_bytes: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} ({self.evidence}). {self.action}"
