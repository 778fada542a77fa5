"""What this machine has, as far as we may use it: cpus, memory, disk, GPUs.

We may be confined ourselves, by affinity or by groups above us: what they leave is what there is.
"""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec

from muster.engines.local import cgroups, nvml
from muster.engines.local.nvml import Lost, Nvml
from muster.model.node import Device, Node
from muster.model.units import KIB, MILLI

_NO_LIMIT_BYTES = 1 << 62  # version 1 writes a number that no machine has


class Gpu(msgspec.Struct, frozen=True):
    """A device and its number among the system's files; None if it is not known."""

    device: Device
    minor: int | None = None


class Machine(msgspec.Struct, frozen=True):
    """The node that we are, and what is known of its GPUs besides."""

    node: Node
    gpu_minors: tuple[int | None, ...] = ()

    def told(self, node: Node) -> "Machine":
        """The machine as somebody says it is; of GPUs that are made up, nothing is known besides."""
        return Machine(node, self.gpu_minors if node.devices == self.node.devices else ())


def here(scratch: Path) -> Machine:
    """This machine, with the disk that this folder is on."""
    folders = cgroups.own_folders(_text("/proc/self/mountinfo"), _text("/proc/self/cgroup"))
    found = gpus()
    node = Node(
        name=socket.gethostname().split(".")[0] or "localhost",
        cpus_milli=_cpus_milli(folders),
        memory_bytes=_memory_bytes(folders),
        disk_bytes=_disk_bytes(scratch),
        devices=tuple(gpu.device for gpu in found),
    )
    return Machine(node, tuple(gpu.minor for gpu in found))


# --- Cpus, memory, disk ---------------------------------------------------------------------------


def parse_memory_total(meminfo: str) -> int:
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * KIB
    raise ValueError("/proc/meminfo does not tell MemTotal")


def parse_limit_bytes(text: str) -> int | None:
    """``memory.max`` or ``memory.limit_in_bytes``; None: none."""
    text = text.strip()
    if text in ("", "max") or int(text) >= _NO_LIMIT_BYTES:
        return None
    return int(text)


def parse_cpu_max_milli(text: str) -> int | None:
    """Version 2's ``cpu.max``, ``200000 100000``; None: no limit."""
    quota, _, period = text.strip().partition(" ")
    return None if quota in ("", "max") else int(quota) * MILLI // int(period)


def parse_cfs_milli(quota: str, period: str) -> int | None:
    """Version 1's ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us``; None: no limit."""
    if not quota.strip() or int(quota) < 0:
        return None
    return int(quota) * MILLI // int(period)


def _cpus_milli(folders: dict[str, str]) -> int:
    limits = [len(os.sched_getaffinity(0)) * MILLI]
    for folder in _upwards(folders.get("cpu")):
        quota = parse_cfs_milli(_text(f"{folder}/cpu.cfs_quota_us"), _text(f"{folder}/cpu.cfs_period_us"))
        limits += [quota] if quota is not None else []
    for folder in _upwards(folders.get("")):
        quota = parse_cpu_max_milli(_text(f"{folder}/cpu.max"))
        limits += [quota] if quota is not None else []
    return min(limits)


def _memory_bytes(folders: dict[str, str]) -> int:
    limits = [parse_memory_total(_text("/proc/meminfo"))]
    for controller, file in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        for folder in _upwards(folders.get(controller)):
            limit = parse_limit_bytes(_text(f"{folder}/{file}"))
            limits += [limit] if limit is not None else []
    return min(limits)


def _disk_bytes(folder: Path) -> int:
    """All of it: what is free changes all the time, and a node does not."""
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize


def _upwards(folder: str | None) -> Iterator[str]:
    """The group and those above it."""
    while folder is not None and os.path.exists(f"{folder}/cgroup.procs"):
        yield folder
        folder = os.path.dirname(folder)


def _text(path: str) -> str:
    """Of a file; "" if it is not there."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8")
    return ""


# --- GPUs -----------------------------------------------------------------------------------------


def gpus() -> list[Gpu]:
    """What NVIDIA's library tells, in its order; none without it."""
    library = nvml.opened()
    if library is None:
        return []
    try:
        return [_gpu(library, index) for index in range(library.count() or 0)]
    finally:
        library.close()


def _gpu(library: Nvml, index: int) -> Gpu:
    """One that does not answer keeps its number, and nothing is to be started on it."""
    try:
        handle = library.handle(index)
        if handle is None:
            return Gpu(Device(healthy=False))
        name = library.text("nvmlDeviceGetName", handle) or "gpu"
        memory_bytes = library.field("nvmlDeviceGetMemoryInfo", handle, "total")
        bus_id = library.field("nvmlDeviceGetPciInfo", handle, "busId")
        minor = library.number("nvmlDeviceGetMinorNumber", of=handle)
    except Lost:
        return Gpu(Device(healthy=False))
    return Gpu(Device(name.removeprefix("NVIDIA "), memory_bytes, _numa_of(bus_id or "")), minor)


def _numa_of(bus_id: str) -> int | None:
    """NVML writes the domain with eight digits, the kernel with four."""
    text = _text(f"/sys/bus/pci/devices/{bus_id.lower()[-12:]}/numa_node").strip()
    return int(text) if text.isdigit() else None
