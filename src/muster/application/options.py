"""The flat options: one key, one parser, whichever source the value comes from.

Values are as typed: text or numbers. Amounts are bounded here; whether a machine has that much is the
scheduler's to say.
"""

import re
import signal
from collections.abc import Callable, Mapping
from typing import Any, get_args

from muster.application.asked import Asked
from muster.application.charter import parse_budget, parse_purpose
from muster.application.many import Sweep, parse_array, parse_param, parse_sweep, within_bounds
from muster.application.metrics import made, parse_metrics
from muster.application.names import nearest, parse_job_id, parse_name
from muster.application.times import parse_begin, parse_end, parse_limit
from muster.model.charter import Progress
from muster.model.errors import BadInput, UnknownChoice
from muster.model.job import Checkpoint, Priority, Together
from muster.model.run import Metrics, Notice
from muster.model.units import DAY, KIB, MIB, MILLI, parse_bytes, parse_milli, parse_number, parse_seconds
from muster.steward.exits import normal

MOST_GPUS, MOST_CPUS, MOST_PARTS, MOST_RETRIES, MOST_PIDS = 100_000, 1_000_000, 10_000, 1000, 4_194_304
_MOST_LETTERS = 1 << 16
_MOST_LISTED = 1000
_MOST_PATH = 4000
_NOTICE = re.compile(r"(?:SIG)?([A-Z0-9]+)(?:@(.+))?", re.ASCII | re.IGNORECASE)
_NOTICE_SECONDS = 60.0
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def read_options(options: Mapping[str, object], now: float) -> Asked:
    """Options as they were given; those that are null say nothing."""
    return Asked(**dict(read_option(key, value, now) for key, value in options.items() if value is not None))


def read_option(key: str, value: object, now: float) -> tuple[str, Any]:
    """The field of ``Asked`` that a key means, and its value."""
    if key == "begin":
        return "begin_at", _named(key, lambda given: parse_begin(_text(given), now), value)
    if key == "until":
        return "until", _named(key, lambda given: parse_end(_text(given), now), value)
    if key not in _KEYS:
        raise BadInput(f"unknown option {key[:80]!r}; {nearest(key, known_options())}")
    field, parse = _KEYS[key]
    return field, _named(key, parse, value)


def known_options() -> list[str]:
    return [*_KEYS, "begin"]


def _named(key: str, parse: Callable[[object], object], value: object) -> object:
    try:
        return parse(value)
    except BadInput as error:
        raise BadInput(f"{key}: {error}") from None


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput("expected a text or a number, a single one")
    if isinstance(value, int) and value.bit_length() > 1000:
        raise BadInput("the number is absurdly large")
    text = str(value)
    if len(text) > _MOST_LETTERS:
        raise BadInput(f"a value of {len(text):,} letters is too long")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput("the value has characters that no text has")
    return text


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts, or a single one."""
    listed = value if isinstance(value, list | tuple) else [value]
    if len(listed) > _MOST_LISTED:
        raise BadInput(f"{len(listed):,} values are too many; {_MOST_LISTED:,} are the most")
    return tuple(map(_text, listed))


def _flag(value: object) -> bool:
    said = value if isinstance(value, bool) else _WORDS.get(_text(value).strip().lower())
    if said is None:
        raise BadInput(f"expected true or false, not {value!r}")
    return said


def _of(parse: Callable[[str], Any]) -> Callable[[object], Any]:
    return lambda value: parse(_text(value))


def _listed(parse: Callable[[str], str]) -> Callable[[object], tuple[str, ...]]:
    """Each of a list, where a text may hold several with commas between."""
    return lambda value: tuple(parse(part) for text in _texts(value) for part in text.split(","))


def _counted(most: int, least: int = 0) -> Callable[[object], int]:
    def parse(value: object) -> int:
        number = parse_number(_text(value))
        if number != int(number):
            raise BadInput(f"{value} is not a whole number")
        if not least <= number <= most:
            raise BadInput(f"{value} is not between {least:,} and {most:,}")
        return int(number)

    return parse


def _progress(text: str) -> str:
    """What shows that it goes on."""
    if text.strip() not in get_args(Progress):
        raise UnknownChoice("sign of progress", text.strip(), list(get_args(Progress)))
    return text.strip()


def _gpus(value: object) -> int:
    """Whole ones, or a share of one."""
    milli = parse_milli(_text(value))
    if milli > MOST_GPUS * MILLI:
        raise BadInput(f"{value} GPUs are more than anybody has")
    if milli > MILLI and milli % MILLI:
        raise BadInput(
            f"{value} GPUs can't be had: several are asked whole, and only one can be shared, like 0.5"
        )
    if milli == 0 and parse_number(_text(value)) > 0:
        raise BadInput(f"{value} of a GPU is too little; a thousandth is the least")
    return milli


def _cpus(value: object) -> int:
    milli = parse_milli(_text(value))
    if not 0 < milli <= MOST_CPUS * MILLI:
        raise BadInput(f"{value} cpus can't be had; ask for one or more, or for a part of one, like 0.5")
    return milli


def _memory(value: object) -> int:
    size = parse_bytes(_text(value))
    if size < MIB:
        raise BadInput(f"{value} is less than a megabyte; write the unit, like 512M or 64G")
    return size


def _log_bytes(value: object) -> int:
    size = parse_bytes(_text(value))
    if size < KIB:
        raise BadInput(f"{value} is less than a kilobyte; write the unit, like 64M or 1G")
    return size


def _grace(value: object) -> float:
    seconds = parse_seconds(_text(value))
    if seconds > DAY:
        raise BadInput(f"{value} is longer than a day")
    return seconds


def _notice(value: object) -> Notice:
    """``USR1@2m``: this signal, that long before the job is told to end."""
    text = _text(value).strip()
    match = _NOTICE.fullmatch(text)
    number = _signal_number(match[1].upper()) if match else None
    if match is None or number is None:
        raise BadInput(f"{text[:80]!r} is not a signal and a time; write it like USR1@2m")
    return Notice(number, _grace(match[2]) if match[2] else _NOTICE_SECONDS)


def _signal_number(name: str) -> int | None:
    if name.isdigit():
        return int(name) if len(name) < 3 and int(name) in set(signal.Signals) else None
    known = signal.Signals.__members__.get(f"SIG{name}")
    return None if known is None else int(known)


def _path(value: object) -> str:
    text = _text(value)
    if not text.strip() or len(text) > _MOST_PATH or not text.isprintable():
        raise BadInput("expected the path of a file, printable and not too long")
    return text


def _priority(value: object) -> Priority:
    text = _text(value).strip()
    known = {priority.name.lower(): priority for priority in Priority}
    if text.lower() not in known:
        raise UnknownChoice("priority", text[:80], list(known))
    return known[text.lower()]


def _together(value: object) -> Together:
    text = _text(value).strip()
    if text not in set(Together):
        raise UnknownChoice("distance", text[:80], [t.value for t in Together])
    return Together(text)


def _conditions(value: object) -> tuple[str, ...]:
    """Each in its one spelling, and each once."""
    return tuple(dict.fromkeys(map(normal, _texts(value))))


def _sweep(value: object) -> Sweep:
    if not isinstance(value, dict):
        return parse_sweep(_texts(value))
    return within_bounds(dict(parse_param(_text(name), _texts(values)) for name, values in value.items()))


def _checkpoint(value: object) -> Checkpoint:
    every = parse_seconds(_text(value))
    if every <= 0:
        raise BadInput("a job can't save all the time; write it like 30m")
    return Checkpoint(every_seconds=every)


def _metrics(value: object) -> Metrics:
    """A text, or a table as in application.yaml."""
    if isinstance(value, dict):
        return made({_text(key): _text(given) for key, given in value.items()})
    return parse_metrics(_text(value))


_KEYS: dict[str, tuple[str, Callable[[object], object]]] = {
    "name": ("name", _of(parse_name)),
    "team": ("team", _of(parse_name)),
    "owner": ("owner", _of(parse_name)),
    "effort": ("effort", _of(parse_name)),
    "priority": ("priority", _priority),
    "gpus": ("gpus_milli", _gpus),
    "gpu_memory": ("gpu_memory_bytes", _memory),
    "gpu_model": ("gpu_models", _listed(parse_name)),
    "cpus": ("cpus_milli", _cpus),
    "memory": ("memory_bytes", _memory),
    "disk": ("disk_bytes", _memory),
    "time": ("time_limit_seconds", _of(parse_limit)),
    "nodes": ("parts", _counted(MOST_PARTS, 1)),
    "together": ("together", _together),
    "labels": ("labels", _listed(parse_name)),
    "hold": ("held", _flag),
    "right_size": ("right_size", _flag),
    "array": ("array", _of(parse_array)),
    "params": ("sweep", _sweep),
    "after_ok": ("after_ok", _listed(parse_job_id)),
    "after_any": ("after_any", _listed(parse_job_id)),
    "after_not_ok": ("after_not_ok", _listed(parse_job_id)),
    "retry": ("retries", _counted(MOST_RETRIES)),
    "for": ("purpose", _of(parse_purpose)),
    "success": ("success", _conditions),
    "progress": ("progress", _listed(_progress)),
    "failure": ("failure", _conditions),
    "budget": ("budget", _of(parse_budget)),
    "cpu_cap": ("cpu_cap", _flag),
    "pids": ("pids", _counted(MOST_PIDS, 1)),
    "warn": ("notice", _notice),
    "grace": ("grace_seconds", _grace),
    "checkpoint_every": ("checkpoint", _checkpoint),
    "output": ("output", _path),
    "log_limit": ("log_bytes", _log_bytes),
    "cwd": ("cwd", _path),
    "metrics": ("metrics", _metrics),
}
