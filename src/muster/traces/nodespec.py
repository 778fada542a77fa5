"""Nodes for the command line, in a few words: ``6x8 A100:80G rack=2, 10x0 cpus=128``.

A group is a count of nodes × GPUs in each, a GPU model with its memory, and what else they have.
Groups are separated by commas and lettered: a1, a2, … b1, …. Racks and switches are numbered on
through the groups, so that two groups never share one.
"""

import re
from pathlib import Path
from string import ascii_lowercase

from muster.model.errors import BadInput, UnknownChoice
from muster.model.node import Device, Node
from muster.model.units import GIB, MILLI, parse_bytes
from muster.traces import openb
from muster.traces.lines import whole

EXAMPLE = "100x4 A40:48G cpus=64 mem=256G rack=10, 10x0 cpus=128"
_KEYS = ("cpus", "mem", "rack", "switch")
_SIZE = re.compile(r"([0-9]{1,9})[xX×]([0-9]{1,9})")
_MODEL = re.compile(r"([\w.-]+)(?::(\S+))?")
_CPUS_PER_GPU, _CPUS_WITHOUT_GPUS = 16, 64
_BYTES_PER_CPU = 4 * GIB
_MOST_NODES, _MOST_GPUS, _MOST_CPUS = 100_000, 64, 100_000


def read_or_parse(spec: str) -> tuple[Node, ...]:
    """The nodes of an openb node list, where ``spec`` is a path to one, or of a spec in words."""
    return openb.read_nodes(spec) if _is_path(spec) else parse_nodes(spec)


def _is_path(spec: str) -> bool:
    try:
        return spec.endswith(".csv") or Path(spec).is_file()
    except (OSError, ValueError):  # too long or too odd to name a file
        return False


def parse_nodes(spec: str) -> tuple[Node, ...]:
    groups = spec.split(",")
    if len(groups) > len(ascii_lowercase):
        raise BadInput(f"{len(groups)} groups of nodes are too many; 26 is the most")
    nodes: list[Node] = []
    racks = switches = 0
    for letter, text in zip(ascii_lowercase, groups, strict=False):
        group = _Group(text)
        nodes += (group.node(letter, index, racks, switches) for index in range(group.count))
        racks += _ceil_div(group.count, group.per_rack)
        switches += _ceil_div(group.count, group.per_switch)
    return tuple(nodes)


class _Group:
    """Equal nodes, as one stretch of the spec tells them."""

    def __init__(self, text: str) -> None:
        size, *words = text.split() or [""]
        settings = _settings([word for word in words if "=" in word])
        self.count, gpus = _size(size, text)
        self.devices = _devices([word for word in words if "=" not in word], gpus, text)
        cpus = settings.get("cpus", gpus * _CPUS_PER_GPU or _CPUS_WITHOUT_GPUS)
        self.cpus_milli = cpus * MILLI
        self.memory_bytes = settings.get("mem", cpus * _BYTES_PER_CPU)
        self.per_rack, self.per_switch = settings.get("rack"), settings.get("switch")

    def node(self, letter: str, index: int, racks: int, switches: int) -> Node:
        return Node(
            name=f"{letter}{index + 1}",
            cpus_milli=self.cpus_milli,
            memory_bytes=self.memory_bytes,
            devices=self.devices,
            rack=f"r{racks + index // self.per_rack + 1}" if self.per_rack else None,
            switch=f"s{switches + index // self.per_switch + 1}" if self.per_switch else None,
        )


def _ceil_div(count: int, size: int | None) -> int:
    return -(-count // size) if size else 0


def _size(word: str, group: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(word)
    if match is None:
        raise _misread(group, "expected nodes x GPUs first")
    count, gpus = int(match[1]), int(match[2])
    if not 1 <= count <= _MOST_NODES or gpus > _MOST_GPUS:
        raise _misread(group, f"expected 1 to {_MOST_NODES} nodes with up to {_MOST_GPUS} GPUs")
    return count, gpus


def _devices(words: list[str], gpus: int, group: str) -> tuple[Device, ...]:
    if not words:
        return (Device(),) * gpus
    match = _MODEL.fullmatch(words[0])
    if match is None or len(words) > 1:
        raise _misread(group, "expected one GPU model")
    if not gpus:
        raise _misread(group, "expected no GPU model where there are no GPUs")
    return (Device(match[1], parse_bytes(match[2]) if match[2] else None),) * gpus


def _settings(words: list[str]) -> dict[str, int]:
    return dict(_setting(*word.split("=", 1)) for word in words)


def _setting(key: str, value: str) -> tuple[str, int]:
    if key not in _KEYS:
        raise UnknownChoice("setting of nodes", key, list(_KEYS))
    if key == "mem":
        return key, parse_bytes(value)
    amount = whole(value, key, _MOST_CPUS if key == "cpus" else _MOST_NODES)
    if not amount:
        raise BadInput(f"expected {key} of 1 or more, found {value!r}")
    return key, amount


def _misread(group: str, expected: str) -> BadInput:
    return BadInput(f"can't read {group.strip()!r} as nodes: {expected}, like {EXAMPLE!r}")
