"""Slurm's tasks, nodes and GPUs, as what one part of a gang needs and how many parts there are.

A part is what runs on one node: the cpus and GPUs of all tasks of a node are its own.
"""

import math
import re
from collections.abc import Iterator

import msgspec

from muster.application.located import located
from muster.model.errors import BadInput
from muster.model.units import parse_bytes

TASK_OPTIONS = frozenset(
    [
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "cpus-per-task",
        "mem",
        "mem-per-cpu",
        "mem-per-gpu",
        "gres",
        "gpus",
        "gpus-per-node",
        "gpus-per-task",
    ]
)
_MOST = 1_000_000
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_GPUS = re.compile(r"(?:([A-Za-z][\w.-]*)(?::|$))?([0-9]{1,9})?", re.ASCII)

Meaning = tuple[str, object, int]  # an option of Muster, its value, and the line that asks for it


class Option(msgspec.Struct, frozen=True):
    """One option of a script, by its long name, and the line it is on."""

    name: str
    value: str
    line: int


class Tasks:
    """Reads the options that depend on one another."""

    def __init__(self, options: dict[str, Option], script: str) -> None:
        self._options = options
        self._script = script
        self._parts = self._count("nodes") or 1
        per_node = self._count("ntasks-per-node")
        self._tasks = per_node or math.ceil((self._count("ntasks") or 1) / self._parts)
        self._cpus = (self._count("cpus-per-task") or 1) * self._tasks

    def meant(self) -> Iterator[Meaning]:
        if nodes := self._options.get("nodes"):
            yield "nodes", self._parts, nodes.line
            if self._parts > 1:
                yield "together", "spread", nodes.line
        if said := self._first("cpus-per-task", "ntasks-per-node", "ntasks"):
            yield "cpus", self._cpus, said.line
        gpus = 0
        if said := self._first("gres", "gpus-per-node", "gpus", "gpus-per-task"):
            with located(self._script, said.line):
                model, gpus = self._gpus(said)
            yield "gpus", gpus, said.line
            if model:
                yield "gpu_model", model, said.line
        yield from self._memory(gpus)

    def _first(self, *names: str) -> Option | None:
        return next((self._options[name] for name in names if name in self._options), None)

    def _count(self, name: str) -> int | None:
        option = self._options.get(name)
        if option is None:
            return None
        with located(self._script, option.line):
            if not _COUNT.fullmatch(option.value) or not 0 < int(option.value) <= _MOST:
                raise BadInput(
                    f"--{name}={option.value[:80]} is not a number that can be had; write one, like 2"
                )
        return int(option.value)

    def _gpus(self, option: Option) -> tuple[str | None, int]:
        """The model, if one is named, and how many a part needs."""
        value = option.value
        if option.name == "gres":
            kind, _, value = value.partition(":")
            if kind != "gpu" or "," in value:
                raise BadInput(
                    f"--gres={option.value[:80]} is not understood; write it like gpu:2 or gpu:a100:2"
                )
        match = _GPUS.fullmatch(value)
        if match is None:
            raise BadInput(
                f"--{option.name}={option.value[:80]} is not a number of GPUs; write it like 2 or a100:2"
            )
        count = int(match[2] or 1)
        return match[1], self._per_part(option.name, count)

    def _per_part(self, name: str, count: int) -> int:
        if name == "gpus-per-task":
            return count * self._tasks
        if name != "gpus":
            return count
        if count % self._parts:
            raise BadInput(
                f"--gpus={count} can't be dealt out evenly to {self._parts} nodes; use --gpus-per-node"
            )
        return count // self._parts

    def _memory(self, gpus: int) -> Iterator[Meaning]:
        for name, times in (("mem", 1), ("mem-per-cpu", self._cpus), ("mem-per-gpu", gpus)):
            option = self._options.get(name)
            if option is None:
                continue
            with located(self._script, option.line):
                size = _slurm_bytes(option.value) * times
            if size:  # none: as much as there is, which is no limit
                yield "memory", size, option.line


def _slurm_bytes(value: str) -> int:
    """Megabytes, where no unit is said."""
    return parse_bytes(f"{value}M" if _COUNT.fullmatch(value) else value)
