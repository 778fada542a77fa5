"""Which source an attempt's reports come from, by what its job says of its metrics."""

import functools
from collections.abc import Callable, Mapping

import msgspec

from muster.model.job import Job
from muster.model.run import How, Metrics
from muster.model.template import Template
from muster.monitor.reports.lines import Understand, json_line, pattern_line
from muster.monitor.reports.report import Source
from muster.monitor.reports.tail import Tail

_AUTO = Metrics()


class Teller(msgspec.Struct, frozen=True):
    """An attempt that tells how it is doing, and what is needed to hear it."""

    job: Job
    attempt: int
    log: str  # the path of its first part's
    since: float  # when it began, by the clock that nobody sets
    position: bytes = b""  # at which an earlier source stood


Maker = Callable[[Teller], Source]


def source_of(teller: Teller, makers: Mapping[How, Maker]) -> Source | None:
    """None: nobody has to look; it tells everything by itself, with ``muster.report``."""
    make = makers.get((teller.job.metrics or _AUTO).how)
    return None if make is None or teller.job.run is None else make(teller)


def _output(teller: Teller) -> Source:
    job, said = teller.job, teller.job.metrics or _AUTO
    assert job.run is not None
    understand = _found_by(said.pattern) if said.how == "pattern" else json_line
    return Tail(
        job.id,
        teller.attempt,
        teller.log,
        understand,
        log_bytes=job.run.log_bytes,
        position=teller.position,
    )


@functools.lru_cache(1000)
def _found_by(pattern: str) -> Understand:
    """The members of an array have one together."""
    return pattern_line(Template(pattern))


OUTPUT: Mapping[How, Maker] = {"auto": _output, "json-lines": _output, "pattern": _output}
