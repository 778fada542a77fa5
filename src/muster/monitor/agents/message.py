"""What an agent tells of its node, and whether that can be.

A job is known by its number in Slurm (``Reading.job``), and which incarnation of its group was read by the
inode of that (``Reading.attempt``): a group that was removed and made again counts from zero. Devices are
numbered as the kernel does, since NVIDIA's library counts only those that it may see. Times are those of the
node; what the server makes of them is its own affair.

An agent may lie, or be somebody else. So everything has a size, a number is a number and not negative, and
what breaks that is refused as a whole.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from muster.model.errors import BadInput
from muster.model.usage import GpuReading, NodeReading, Reading

MOST_JOBS = 4096
LONGEST_PERIOD_SECONDS = 600
_MOST_GPUS = 256
_MOST_FOREIGN = 1024
_MOST_LETTERS = 1024
_MOST = float(1 << 62)  # nothing that is counted here is ever as much
_LONGEST_NUMBER = 19

Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One look of an agent."""

    node: Annotated[str, Meta(min_length=1, max_length=255)]
    since_boot_seconds: Seconds  # when it was sent, by the clock of the readings
    period_seconds: Annotated[float, Meta(gt=0, le=LONGEST_PERIOD_SECONDS)] = 5.0  # how often it looks
    only: Count | None = None  # the one job that it looks at; None: all that are there
    readings: Annotated[tuple[Reading, ...], Meta(max_length=MOST_JOBS)] = ()
    own: NodeReading | None = None  # of the node itself
    silent: Annotated[tuple[str, ...], Meta(max_length=16)] = ()  # meters that do not answer


class Heard(msgspec.Struct, frozen=True):
    """What the server made of it."""

    period_seconds: float  # how often it looks itself
    knows_node: bool
    taken: int  # jobs that are known to be there
    ignored: int  # and others


def check(told: Told) -> None:
    """Raise ``BadInput`` with what is wrong."""
    numbers = [reading.job for reading in told.readings]
    for number in numbers:
        if not (number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER):
            raise BadInput(f"{number[:40]!r} is not a number of a job in Slurm")
    if len(set(numbers)) < len(numbers):
        raise BadInput("a job is told of twice; tell of it once")
    if told.only is not None and any(int(number) != told.only for number in numbers):
        raise BadInput(f"an agent of job {told.only} tells of that job alone")
    for gpus in (*(reading.gpus for reading in told.readings), _gpus(told)):
        if len(gpus) > _MOST_GPUS:
            raise BadInput(f"a node with {len(gpus):,} GPUs is not believed in; {_MOST_GPUS} are the most")
    if any(len(gpu.foreign or ()) > _MOST_FOREIGN for gpu in _gpus(told)):
        raise BadInput(f"more than {_MOST_FOREIGN:,} processes on a GPU are not believed in")
    _check_values(told)


def _gpus(told: Told) -> tuple[GpuReading, ...]:
    return () if told.own is None else told.own.gpus


def _check_values(told: Told) -> None:
    for value in _values(told):
        if isinstance(value, str):
            if len(value) > _MOST_LETTERS:
                raise BadInput(
                    f"a text of {len(value):,} letters is too long; {_MOST_LETTERS:,} are the most"
                )
        elif not (math.isfinite(value) and 0 <= value < _MOST):
            raise BadInput(f"{value} is not a figure that a meter shows: they are finite and not negative")


def _values(told: Any) -> Iterator[str | float]:
    """All texts and numbers that are in it."""
    if isinstance(told, msgspec.Struct):
        for name in told.__struct_fields__:
            yield from _values(getattr(told, name))
    elif isinstance(told, tuple):
        for one in told:
            yield from _values(one)
    elif isinstance(told, str | float) or (isinstance(told, int) and not isinstance(told, bool)):
        yield told
