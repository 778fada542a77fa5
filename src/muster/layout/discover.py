"""What can be found on this machine: processors, memory, GPUs and where they are plugged in, each with its
source.

Everything is read from ``/sys`` and ``/proc`` below a folder, and from NVIDIA's library where there is one.
What can't be read is not known, and nothing is said of it. Here is the hardware as it is, not what jobs are
given of it: that is the engine's ``inventory``.
"""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from muster.engines.local import nvml
from muster.engines.local.inventory import parse_memory_total
from muster.engines.local.nvml import Lost, Nvml
from muster.layout.found import gpu_facts
from muster.layout.parts import CORES, GPUS, RAM, Fact, Found, Gpu, Value
from muster.layout.ranges import unfold
from muster.model.errors import BadInput

_CPUS, _PCI, _NODES = "sys/devices/system/cpu", "sys/bus/pci/devices", "sys/devices/system/node"
_MOST_CPUS = 100_000
_NVIDIA, _AMD = "0x10de", "0x1002"
_DRAWS, _COMPUTES, _ACCELERATES = "0x0300", "0x0302", "0x1200"  # classes of PCI devices
# A display controller of AMD's is more often part of the processor than something to compute on.
_GPU_CLASSES = {_NVIDIA: (_DRAWS, _COMPUTES), _AMD: (_COMPUTES, _ACCELERATES)}


def discover(root: Path = Path("/"), library: Nvml | None = None, name: str | None = None) -> Found:
    """This machine, or one whose files are below ``root``. ``library``: NVIDIA's, opened."""
    looked: list[tuple[str, Value | None, str]] = [
        (CORES, _cores(root / _CPUS), f"/{_CPUS}"),
        ("threads", _threads(root / _CPUS), f"/{_CPUS}"),
        ("sockets", _sockets(root / _CPUS), f"/{_CPUS}"),
        ("NUMA nodes", _numa_nodes(root / _NODES), f"/{_NODES}"),
        (RAM, _ram_bytes(root), "/proc/meminfo"),
        ("machine", _text(root / "sys/class/dmi/id/product_name"), "/sys/class/dmi/id"),
    ]
    facts = tuple(Fact(about, value, source) for about, value, source in looked if value is not None)
    gpus, further = _gpus(root, library)
    return Found(name or socket.gethostname().split(".")[0] or "localhost", (*facts, *further), gpus)


def discover_here() -> Found:
    library = nvml.opened()
    try:
        return discover(library=library)
    finally:
        if library is not None:
            library.close()


# --- Processors and memory ------------------------------------------------------------------------------


def _threads(cpus: Path) -> int | None:
    online = _text(cpus / "online")
    if online is None:
        return None
    with contextlib.suppress(BadInput):
        return len(unfold(f"[{online}]", _MOST_CPUS))
    return None


def _cores(cpus: Path) -> int | None:
    return len({tuple(pair) for pair in _topology(cpus)}) or None


def _sockets(cpus: Path) -> int | None:
    return len({package for package, _ in _topology(cpus)}) or None


def _topology(cpus: Path) -> Iterator[tuple[str, str]]:
    """Of each thread, its package and its core there; two threads of one core say the same."""
    for folder in sorted(cpus.glob("cpu[0-9]*/topology")):
        package, core = _text(folder / "physical_package_id"), _text(folder / "core_id")
        if package is not None and core is not None:
            yield package, core


def _numa_nodes(nodes: Path) -> int | None:
    return sum(1 for _ in nodes.glob("node[0-9]*")) or None


def _ram_bytes(root: Path) -> int | None:
    with contextlib.suppress(ValueError):
        return parse_memory_total(_text(root / "proc/meminfo") or "")
    return None


# --- GPUs -----------------------------------------------------------------------------------------------


def _gpus(root: Path, library: Nvml | None) -> tuple[tuple[Gpu, ...] | None, tuple[Fact, ...]]:
    """From NVIDIA's library, which counts them as jobs do; otherwise from the bus. None: neither can tell."""
    bus = f"/{_PCI}"
    plugged = tuple(_plugged(root)) if (root / _PCI).is_dir() else None
    count = None if library is None else library.count()
    if library is None or not count:
        return plugged, (() if plugged is None else gpu_facts(plugged, bus))
    told = tuple(_told(root, library, index) for index in range(count))
    lost = (Fact(GPUS, len(plugged), bus),) if plugged is not None and len(plugged) > count else ()
    return told, (*gpu_facts(told, "NVML"), *lost)


def _told(root: Path, library: Nvml, index: int) -> Gpu:
    """One that does not answer is there, and keeps its number."""
    try:
        handle = library.handle(index)
        if handle is None:
            return Gpu(index, seen=True)
        name = library.text("nvmlDeviceGetName", handle)
        memory_bytes = library.field("nvmlDeviceGetMemoryInfo", handle, "total")
        bus = str(library.field("nvmlDeviceGetPciInfo", handle, "busId") or "").lower()[-12:] or None
    except Lost:
        return Gpu(index, seen=True)
    model = None if name is None else name.removeprefix("NVIDIA ")
    return Gpu(index, model, memory_bytes, _numa(root, bus), bus, seen=True)


def _plugged(root: Path) -> Iterator[Gpu]:
    """Devices on the bus that are GPUs, in the order of their addresses."""
    number = 0
    for folder in sorted((root / _PCI).iterdir()):
        vendor, kind = _text(folder / "vendor") or "", (_text(folder / "class") or "")[:6]
        if kind in _GPU_CLASSES.get(vendor, ()):
            device = (_text(folder / "device") or "").removeprefix("0x")
            yield Gpu(
                number, f"{vendor[2:]}:{device}", None, _numa(root, folder.name), folder.name, seen=True
            )
            number += 1


def _numa(root: Path, bus: str | None) -> int | None:
    """The memory node next to it; the kernel writes -1 where there is none."""
    text = None if bus is None else _text(root / _PCI / bus / "numa_node")
    return int(text) if text is not None and text.isdigit() else None


def _text(path: Path) -> str | None:
    """Of a file, without the line's end; None if it is not there or says nothing."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip() or None
    return None
