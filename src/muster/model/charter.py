"""The charter: who answers for a job, what it is for, and how it ends.

The scheduler carries it from the first day; acting on it is the steward's part.
"""

import enum
from typing import Literal

import msgspec

Progress = Literal["report", "log", "checkpoint"]  # muster.report, a log that grows, a checkpoint written


class Verdict(enum.StrEnum):
    """How work under a charter has ended, by its own words."""

    WON = "won"
    LOST = "lost"
    OUT_OF_BUDGET = "out-of-budget"
    OUT_OF_TIME = "out-of-time"
    UNDEFENDED = "undefended"


class Charter(msgspec.Struct, frozen=True):
    """An owner, a purpose in a sentence, and an end written before the start."""

    owner: str | None = None
    purpose: str | None = None
    success: tuple[str, ...] = ()  # conditions, any of which ends the work as won
    failure: tuple[str, ...] = ()  # conditions, any of which ends the work as lost
    budget: str | None = None  # such as "200 GPUh"
    until: float | None = None  # the date by which it ends, in seconds since the epoch
    progress: tuple[Progress, ...] = ()  # its signs of life; empty: whichever it has shown before

    @property
    def has_end(self) -> bool:
        return bool(self.success or self.failure or self.budget or self.until is not None)
