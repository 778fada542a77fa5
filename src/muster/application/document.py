"""application.yaml: one file that says what to run, with what, what for, and how it ends.

Its keys are the fields of these types. Each value is read by the same parser as the option of the same name.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from muster.application.asked import Asked
from muster.application.located import located
from muster.application.names import nearest, parse_name
from muster.application.options import read_option
from muster.application.yaml_text import Path, Written, line_of
from muster.model.errors import BadInput

Text = str | int | float
Texts = str | int | float | list[str | int | float]
LATER = ("Service", "Effort")


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping whose keys are known; what is left out says nothing."""


class Compute(Table, frozen=True):
    gpus: Text | None = None
    gpu_model: Texts | None = None
    gpu_memory: Text | None = None
    cpus: Text | None = None
    memory: Text | None = None
    disk: Text | None = None
    time: Text | None = None
    nodes: Text | None = None
    together: str | None = None
    labels: Texts | None = None
    cpu_cap: bool | None = None
    pids: Text | None = None


class Volume(Table, frozen=True):
    path: str
    read: bool = True
    write: bool = False


class Network(Table, frozen=True):
    ports: Texts | None = None
    outside: bool | None = None


class Saving(Table, frozen=True):
    """How the job keeps its work: how often, the signal that asks for it, and the time it then has."""

    every: Text | None = None
    signal: str | None = None
    grace: Text | None = None


class Metrics(Table, frozen=True):
    source: str | None = msgspec.field(default=None, name="from")
    pattern: str | None = None
    path: str | None = None
    url: str | None = None


class AfterOthers(Table, frozen=True):
    ok: Texts | None = None
    any: Texts | None = None
    not_ok: Texts | None = None


class Document(Table, frozen=True):
    kind: str = "Job"
    name: Text | None = None
    team: Text | None = None
    owner: Text | None = None
    effort: Text | None = None
    purpose: Text | None = msgspec.field(default=None, name="for")
    success: Texts | None = None
    failure: Texts | None = None
    progress: Texts | None = None
    budget: Text | None = None
    until: Text | None = None
    priority: str | None = None
    compute: Compute = Compute()
    storage: dict[str, Any] = {}  # scratch: how much; any other name: a Volume
    network: Network | None = None
    checkpoint: Saving = Saving()
    metrics: Metrics | str | None = None
    run: str | list[str] | None = None
    array: Text | None = None
    params: dict[str, Texts] | list[str] | str | None = None
    after: AfterOthers | Texts | None = None
    retry: Text | None = None
    begin: Text | None = None
    hold: bool | None = None
    warn: str | None = None
    grace: Text | None = None
    output: str | None = None
    log_limit: Text | None = None
    cwd: str | None = None


class Described(msgspec.Struct, frozen=True):
    """What a file asks for and runs, and what it says that nobody acts on yet."""

    asked: Asked
    run: str | tuple[str, ...] | None
    warnings: tuple[str, ...]


_TABLES: dict[str, type[Table]] = {
    "compute": Compute,
    "network": Network,
    "checkpoint": Saving,
    "metrics": Metrics,
    "after": AfterOthers,
}
_AS_THEY_ARE = [
    "name",
    "team",
    "owner",
    "effort",
    "for",
    "success",
    "failure",
    "progress",
    "budget",
    "until",
    "priority",
    "array",
    "params",
    "retry",
    "begin",
    "hold",
    "warn",
    "grace",
    "output",
    "log_limit",
    "cwd",
]


def read_document(written: Written, name: str, now: float) -> Described:
    """A file's meaning, or a sentence with the file and the line."""
    document = _checked(written, name)
    fields = {}
    for path, key, value in _options(document):
        with located(name, line_of(written.lines, path)):
            field, read = read_option(key, value, now)
            fields[field] = read
    run = document.run
    return Described(
        Asked(**fields),
        tuple(run) if isinstance(run, list) else run,
        tuple(_unheeded(document, written, name)),
    )


def _checked(written: Written, name: str) -> Document:
    value, lines = written.value, written.lines
    if not isinstance(value, dict):
        with located(name, line_of(lines, ())):
            raise BadInput("expected keys and values, like 'run: python train.py'")
    if value.get("kind") in LATER:
        with located(name, line_of(lines, ("kind",))):
            raise BadInput(f"kind {value['kind']} comes later; only 'kind: Job' is understood yet")
    _check_keys(value, Document, (), lines, name)
    for key, table in _TABLES.items():
        if isinstance(value.get(key), dict):
            _check_keys(value[key], table, (key,), lines, name)
    try:
        document = msgspec.convert({k: v for k, v in value.items() if v is not None}, Document)
    except msgspec.ValidationError as error:
        path = _path_in(str(error))
        with located(name, line_of(lines, path)):
            raise BadInput(_in_words(str(error), path)) from None
    if document.kind != "Job":
        with located(name, line_of(lines, ("kind",))):
            raise BadInput(f"unknown kind {document.kind[:80]!r}; write 'kind: Job'")
    return document


def _check_keys(
    value: dict[str, Any], table: type[Table], at: Path, lines: dict[Path, int], name: str
) -> None:
    known = [field.encode_name for field in msgspec.structs.fields(table)]
    for key in value:
        if key not in known:
            inside = f" in {at[0]}" if at else ""
            with located(name, line_of(lines, (*at, key))):
                raise BadInput(f"unknown key {str(key)[:80]!r}{inside}; {nearest(str(key), known)}")


def _options(document: Document) -> Iterator[tuple[Path, str, object]]:
    """Where each option was written, its key, and its value; those that were not are left out."""
    everything = (
        *_plain(document),
        *_after(document),
        *_saving(document.checkpoint),
        *_metrics(document.metrics),
    )
    return ((path, key, value) for path, key, value in everything if value is not None)


def _plain(document: Document) -> Iterator[tuple[Path, str, object]]:
    for key in _AS_THEY_ARE:
        yield (key,), key, document.purpose if key == "for" else getattr(document, key)
    for key in Compute.__struct_fields__:
        yield ("compute", key), key, getattr(document.compute, key)
    yield ("storage", "scratch"), "disk", document.storage.get("scratch")


def _after(document: Document) -> Iterator[tuple[Path, str, object]]:
    after = document.after
    if isinstance(after, AfterOthers):
        for key in AfterOthers.__struct_fields__:
            yield ("after", key), f"after_{key}", getattr(after, key)
    else:
        yield ("after",), "after_ok", after


def _saving(saving: Saving) -> Iterator[tuple[Path, str, object]]:
    """With a signal, ``grace`` is the time from that signal on; without, the time after SIGTERM."""
    yield ("checkpoint", "every"), "checkpoint_every", saving.every
    if saving.signal is None:
        yield ("checkpoint", "grace"), "grace", saving.grace
    else:
        span = "" if saving.grace is None else f"@{saving.grace}"
        yield ("checkpoint", "signal"), "warn", f"{saving.signal}{span}"


def _metrics(metrics: Metrics | str | None) -> Iterator[tuple[Path, str, object]]:
    if isinstance(metrics, Metrics):
        said = {"from": metrics.source, "pattern": metrics.pattern, "path": metrics.path, "url": metrics.url}
        yield ("metrics",), "metrics", {key: value for key, value in said.items() if value is not None}
    else:
        yield ("metrics",), "metrics", metrics


def _unheeded(document: Document, written: Written, name: str) -> Iterator[str]:
    """Checks what is accepted for later, and says that it has no effect yet."""
    for key, value in document.storage.items():
        if key != "scratch":
            with located(name, line_of(written.lines, ("storage", key))):
                _check_volume(key, value)
            yield f"storage {key!r} is not mounted by Muster yet; the job sees the folders of its node"
    if document.network is not None:
        yield "network is not restricted by Muster yet; the job has the network of its node"


def _check_volume(key: str, value: object) -> None:
    parse_name(key)
    try:
        volume = msgspec.convert(value, Volume)
    except msgspec.ValidationError:
        raise BadInput(f"storage {key!r} should be like {{path: /data/weights, read: true}}") from None
    if not volume.path.startswith("/") or not volume.path.isprintable():
        raise BadInput(f"storage {key!r} needs an absolute path")


_AT = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_SAID = {
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def _path_in(message: str) -> Path:
    """msgspec's path, up to where it no longer names keys."""
    found = _AT.search(message)
    steps = _STEP.finditer(found[1].partition("[...]")[0]) if found else ()
    return tuple(step[1] if step[1] else int(step[2]) for step in steps)


def _in_words(message: str, path: Path) -> str:
    what = ".".join(map(str, path)) or "a value"
    found = _EXPECTED.match(message)
    if found is None:
        return f"{what} is not right: {message.partition(' - at ')[0]}"
    kinds = [_SAID.get(kind, kind) for kind in found[1].split(" | ") if kind != "null"]
    return f"{what} should be {' or '.join(dict.fromkeys(kinds))}, not {_SAID.get(found[2], found[2])}"
