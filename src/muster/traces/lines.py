"""What the readers share: a file as lines, checked cells, and every complaint with its line.

A reader gives rows with their line numbers and a function that makes one row a job. That function
complains in sentences that know nothing of files (BadInput); here the file and line are added.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

import msgspec

from muster.model.errors import BadInput, BadTrace
from muster.model.node import Node
from muster.model.units import parse_number
from muster.traces.trace import Trace, TraceJob

MOST_SECONDS = 1e12
MOST_GPUS = 1_000_000
MOST_CPUS = 100_000_000
MOST_BYTES = 1 << 60
_LONGEST_SENTENCE = 300  # a broken file's cell may be as long as the file

Made = TypeVar("Made")
Cells = tuple[str, ...]
Numbered = Iterable[tuple[int, Cells]]


class File(msgspec.Struct, frozen=True):
    """A text file that was read whole."""

    path: str
    lines: list[str]

    @property
    def name(self) -> str:
        """What the trace is called: the file's name without the endings that tell its format."""
        name = Path(self.path).name
        for ending in (".gz", ".csv", ".swf", ".txt"):
            name = name.removesuffix(ending)
        return name

    @property
    def first_line(self) -> str:
        return next(line for line in self.lines if line.strip())


def load(path: str) -> File:
    """The lines of a file, unpacked where it is gzip. At least one of them is not blank."""
    data = _unpacked(path, _read(path))
    if b"\0" in data:
        raise BadInput(f"{path} is a binary file; expected a trace in text (UTF-8)")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if not text.strip():
        raise BadInput(f"{path} is empty; expected a trace with at least one job")
    return File(path, text.split("\n"))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"can't read {path}: {error.strerror or error}") from None
    except ValueError:
        raise BadInput(f"{path!r} is not a path to a file") from None


def _unpacked(path: str, data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        raise BadInput(f"{path} is a broken gzip file; copy or download it again") from None


def has_columns(file: File, names: Iterable[str], delimiter: str = ",") -> bool:
    header = file.first_line.split(delimiter)
    return {cell.strip().strip('"') for cell in header}.issuperset(names)


def cells(
    file: File, required: Sequence[str], optional: Sequence[str] = (), delimiter: str = ","
) -> Iterator[tuple[int, Cells]]:
    """Each row's line number and its cells of the named columns, blank where a column is absent."""
    rows = _rows(file, delimiter)
    line, row = next(rows, (1, []))
    header = [cell.strip() for cell in row]
    missing = [name for name in required if name not in header]
    if missing:
        raise broken(file, line, f"expected the columns {', '.join(required)}; missing: {', '.join(missing)}")
    blank = len(header)  # every row gets one blank cell more, which stands for the absent columns
    take = itemgetter(*(header.index(name) if name in header else blank for name in (*required, *optional)))
    for line, row in rows:
        if len(row) != len(header):
            raise broken(file, line, f"expected {len(header)} fields, found {len(row)}")
        row.append("")
        yield line, take(row)


def _rows(file: File, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    # Commas come with quotes, as spreadsheets write them; pipes come as they are, as sacct does.
    quote = '"' if delimiter == "," else None
    reader = csv.reader(file.lines, delimiter=delimiter, quotechar=quote, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise broken(file, reader.line_num, f"expected plain fields: {error}") from None


def trace(
    file: File,
    rows: Numbered,
    make: Callable[[int, Cells], TraceJob | None],
    nodes: tuple[Node, ...] = (),
) -> Trace:
    """The trace of the rows' jobs, by submission. ``make`` gives None for a job to pass over."""
    found = collect(file, rows, make, "job", lambda entry: entry.job.id if entry else "")
    jobs = sorted((entry for entry in found if entry), key=lambda entry: entry.job.submitted_at)
    if not jobs:
        raise BadInput(f"{file.path} holds no job that ran; expected at least one")
    return Trace(file.name, tuple(jobs), nodes, passed_over=len(found) - len(jobs))


def collect(
    file: File,
    rows: Numbered,
    make: Callable[[int, Cells], Made],
    what: str,
    name: Callable[[Made], str],
) -> list[Made]:
    """What ``make`` makes of each row; complaints get their line, and no name may come twice."""
    found: list[Made] = []
    first_lines: dict[str, int] = {}
    for line, row in rows:
        try:
            one = make(line, row)
        except BadInput as wrong:
            raise broken(file, line, str(wrong)) from None
        found.append(one)
        if called := name(one):
            first = first_lines.setdefault(called, line)
            if first != line:
                again = f"expected every {what} once, found {called!r} of line {first} again"
                raise broken(file, line, again)
    return found


def broken(file: File, line: int, sentence: str) -> BadTrace:
    if len(sentence) > _LONGEST_SENTENCE:
        sentence = sentence[:_LONGEST_SENTENCE] + "…"
    return BadTrace(file.path, line, sentence)


def from_first(dated: Trace) -> Trace:
    """The same trace with time counted from its first submission, for formats that tell dates."""
    start = dated.jobs[0].job.submitted_at
    replace = msgspec.structs.replace
    jobs = tuple(
        TraceJob(replace(entry.job, submitted_at=entry.job.submitted_at - start), entry.run_seconds)
        for entry in dated.jobs
    )
    return replace(dated, jobs=jobs)


def named(text: str, what: str) -> str:
    if not text.strip():
        raise BadInput(f"expected a {what}, found a blank")
    return text


def number(text: str, what: str, most: float) -> float:
    """A number from 0 to ``most``."""
    return within(parse_number(text, what), what, most)


def within(value: float, what: str, most: float) -> float:
    if not 0 <= value <= most:
        raise BadInput(f"expected {what} from 0 to {most:.6g}, found {value:.6g}")
    return value


def whole(text: str, what: str, most: int) -> int:
    """A whole number from 0 to ``most``."""
    value = number(text, what, most)
    if not value.is_integer():
        raise BadInput(f"expected {what} as a whole number, found {text!r}")
    return int(value)


def instant(text: str, what: str) -> float:
    """An ISO date and time → seconds since the epoch. Without a zone it is taken as UTC."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"expected {what} like 2026-01-05T10:00:00, found {text!r}") from None
    return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
