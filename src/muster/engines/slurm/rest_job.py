"""The options of sbatch → the job that slurmrestd is told of, in the words of its interface.

Only what means the same is translated. For an option that has no such word there, ``Unsayable`` names it:
the job is then handed over by sbatch, or refused where there is none. Interface 38 (Slurm 22.05) was tried
option by option: it ignores ``requeue: false``, takes no ``B:`` before a signal, and means a least number of
nodes by a list; so it is told ``no_requeue``, a range as text, and such a signal not at all.

sbatch puts some options into the job's environment, where programs look for them; so do we.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from muster.engines.slurm.rest_api import Api
from muster.model.units import GIB, KIB, MIB, TIB

_OPTION = re.compile(r"--([a-z][a-z-]*)(?:=(.*))?", re.ASCII | re.DOTALL)
_SIZE = re.compile(r"([0-9]{1,15})([KMGT]?)", re.ASCII)
_UNITS = {"": MIB, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_NODES = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", re.ASCII)
_SIGNAL = re.compile(r"(B:)?([A-Z0-9]{1,10})@([0-9]{1,5})", re.ASCII)
_GPUS = re.compile(r"(?:([\w.-]+):)?([0-9]{1,5})", re.ASCII)
_TYPED_TASKS = 41  # since when GPUs of a task are told as gres/gpu:a40=1

# Alike in all: what is a text, and what a number.
_TEXTS = {
    "job-name": "name",
    "comment": "comment",
    "account": "account",
    "qos": "qos",
    "partition": "partition",
    "output": "standard_output",
    "error": "standard_error",
    "input": "standard_input",
    "chdir": "current_working_directory",
    "constraint": "constraints",
    "licenses": "licenses",
    "dependency": "dependency",
    "reservation": "reservation",
    "wckey": "wckey",
    "prefer": "prefer",
}
_NUMBERS = {
    "ntasks": "tasks",
    "cpus-per-task": "cpus_per_task",
    "ntasks-per-node": "tasks_per_node",
    "nice": "nice",
}
_IN_ENVIRONMENT = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
    "gpus-per-task": "SLURM_GPUS_PER_TASK",
}

Pairs = Iterator[tuple[str, Any]]


class Unsayable(Exception):
    """An option that the interface has no word for."""

    def __init__(self, option: str) -> None:
        super().__init__(option)
        self.option = option


def job_of(options: Sequence[str], script: str, environment: Mapping[str, str], api: Api) -> dict[str, Any]:
    """What is posted to hand it over."""
    job: dict[str, Any] = {}
    found = dict(environment)
    for option in options:
        name, value = _parted(option)
        pairs = dict(_said(name, value, option, api))
        if api.takes is not None and not api.takes.issuperset(pairs):
            raise Unsayable(option)
        job.update(pairs)
        if name in _IN_ENVIRONMENT and value is not None:
            found[_IN_ENVIRONMENT[name]] = value
    if api.is_old:
        return {"script": script, "job": {**job, "environment": found}}
    named = [f"{name}={value}" for name, value in found.items()]
    return {"job": {**job, "environment": named, "script": script}}


def _parted(option: str) -> tuple[str, str | None]:
    match = _OPTION.fullmatch(option)
    if match is None:
        raise Unsayable(option)
    return match[1], match[2]


def _said(name: str, value: str | None, option: str, api: Api) -> Pairs:
    if name in _FLAGS and value is None:
        yield from _FLAGS[name](api)
    elif value is None:
        raise Unsayable(option)
    elif name in _TEXTS:
        yield _TEXTS[name], value
    elif name in _NUMBERS and value.isascii() and value.isdecimal():
        yield _NUMBERS[name], int(value)
    elif name in _VALUES:
        try:
            yield from _VALUES[name](value, api)
        except ValueError:
            raise Unsayable(option) from None
    else:
        raise Unsayable(option)


# --- One by one: each raises ValueError for what it can't say --------------------------------------


def _number(value: int, api: Api) -> object:
    return value if api.is_old else {"set": True, "infinite": False, "number": value}


def _found(pattern: re.Pattern[str], value: str) -> re.Match[str]:
    match = pattern.fullmatch(value)
    if match is None:
        raise ValueError(value)
    return match


def _mebibytes(value: str) -> int:
    match = _found(_SIZE, value)
    return -(-int(match[1]) * _UNITS[match[2]] // MIB)


def _memory(key: str) -> Callable[[str, Api], Pairs]:
    def say(value: str, api: Api) -> Pairs:
        yield key, _number(_mebibytes(value), api)

    return say


def _time(value: str, api: Api) -> Pairs:
    """Minutes. What is written with colons is left to sbatch."""
    if not value.isdecimal():
        raise ValueError(value)
    yield "time_limit", _number(int(value), api)


def _nodes(value: str, api: Api) -> Pairs:
    match = _found(_NODES, value)
    if api.is_old:
        yield "nodes", value
    else:
        yield "minimum_nodes", int(match[1])
        yield "maximum_nodes", int(match[2] or match[1])


def _nodelist(value: str, api: Api) -> Pairs:
    yield ("nodelist", value) if api.is_old else ("required_nodes", value.split(","))


def _exclude(value: str, api: Api) -> Pairs:
    if api.is_old:
        raise ValueError(value)
    yield "excluded_nodes", value.split(",")


def _gres(value: str, api: Api) -> Pairs:
    parts = value.split(",")
    yield ("gres", value) if api.is_old else ("tres_per_node", ",".join(f"gres/{one}" for one in parts))


def _gpus_per_task(value: str, api: Api) -> Pairs:
    model, count = _found(_GPUS, value).groups()
    if api.is_old:
        yield "gpus_per_task", value
    elif api.number < _TYPED_TASKS:
        raise ValueError(value)
    else:
        yield "tres_per_task", f"gres/gpu:{model}={count}" if model else f"gres/gpu={count}"


def _tmp(value: str, api: Api) -> Pairs:
    mebibytes = _mebibytes(value)
    yield "temporary_disk_per_node", f"{mebibytes}M" if api.is_old else mebibytes


def _signal(value: str, api: Api) -> Pairs:
    to_script, signal, seconds = _found(_SIGNAL, value).groups()
    if api.is_old:
        if to_script:
            raise ValueError(value)
        yield "signal", value
        return
    yield "kill_warning_signal", signal
    yield "kill_warning_delay", _number(int(seconds), api)
    if to_script:
        yield "kill_warning_flags", ["BATCH_JOB"]


def _switches(value: str, api: Api) -> Pairs:
    if api.is_old or not value.isdecimal():
        raise ValueError(value)
    yield "required_switches", _number(int(value), api)


def _open_mode(value: str, api: Api) -> Pairs:
    if value not in ("append", "truncate"):
        raise ValueError(value)
    yield "open_mode", value if api.is_old else [value.upper()]


def _export(value: str, api: Api) -> Pairs:  # noqa: ARG001 - it is said by the environment itself
    if value != "ALL":
        raise ValueError(value)
    yield from ()


def _requeue(api: Api) -> Pairs:  # noqa: ARG001 - one word in all
    yield "requeue", True


def _no_requeue(api: Api) -> Pairs:
    yield ("no_requeue", True) if api.is_old else ("requeue", False)


def _hold(api: Api) -> Pairs:  # noqa: ARG001 - one word in all
    yield "hold", True


_VALUES: dict[str, Callable[[str, Api], Pairs]] = {
    "mem": _memory("memory_per_node"),
    "mem-per-cpu": _memory("memory_per_cpu"),
    "time": _time,
    "nodes": _nodes,
    "nodelist": _nodelist,
    "exclude": _exclude,
    "gres": _gres,
    "gpus-per-task": _gpus_per_task,
    "tmp": _tmp,
    "signal": _signal,
    "switches": _switches,
    "open-mode": _open_mode,
    "export": _export,
}
_FLAGS: dict[str, Callable[[Api], Pairs]] = {
    "requeue": _requeue,
    "no-requeue": _no_requeue,
    "hold": _hold,
}
