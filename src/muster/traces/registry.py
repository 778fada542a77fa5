"""One door to all readers: finds out which format a file is in, by its header and name."""

from collections.abc import Callable

import msgspec

from muster.model.errors import BadInput, UnknownChoice
from muster.traces import muri, openb, philly, sacct, swf
from muster.traces.lines import File, has_columns, load
from muster.traces.trace import Trace


class Format(msgspec.Struct, frozen=True):
    """A format: what it is, how a file in it is known, and its reader."""

    what: str
    recognises: Callable[[File], bool]
    parse: Callable[[File], Trace]


FORMATS = {
    "openb": Format(
        "Alibaba openb pods, csv", lambda file: has_columns(file, openb.POD_COLUMNS), openb.parse
    ),
    "muri": Format("Muri's Philly jobs, csv", lambda file: has_columns(file, muri.COLUMNS), muri.parse),
    "philly": Format("Philly jobs, csv", lambda file: has_columns(file, philly.COLUMNS), philly.parse),
    "sacct": Format("Slurm's sacct -P", lambda file: has_columns(file, sacct.REQUIRED, "|"), sacct.parse),
    "swf": Format("Standard Workload Format", swf.recognises, swf.parse),
}


def read_trace(path: str, format: str | None = None) -> Trace:  # noqa: A002
    """The trace in a file, whose format is ``format`` or found out."""
    if format is not None and format not in FORMATS:
        raise UnknownChoice("trace format", format, list(FORMATS))
    file = load(path)
    return FORMATS[format or _detect(file)].parse(file)


def _detect(file: File) -> str:
    for name, known in FORMATS.items():
        if known.recognises(file):
            return name
    formats = "; ".join(f"{name} ({known.what})" for name, known in FORMATS.items())
    raise BadInput(
        f"{file.path} is in no format that is known: its first line is {file.first_line[:60]!r}. "
        f"Known: {formats}"
    )
