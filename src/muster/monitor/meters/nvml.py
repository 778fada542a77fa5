"""GPUs, and whose processes are on them.

*Busy* is the share of the last moments in which something ran on the device: the driver's utilisation. A
device is known by its identity, not by its place: when one has fallen off the bus and the library starts
anew, the others move up. One that was there and is no longer listed is lost. On a divided device (MIG) the
driver tells no utilisation, but its processes all the same.

Process numbers are those of the machine. In a container with numbers of its own they mean nothing: then whose
the processes are is not known.
"""

import contextlib
import os
import pwd
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from muster.engines.local import nvml
from muster.engines.local.nvml import Handle, Lost, Nvml
from muster.model.usage import ForeignProcess, GpuReading, GpuShown
from muster.monitor.meters.files import Gone, whole
from muster.monitor.meters.shown import summed

METRIC = "nvml-utilization"
_MACHINES_OWN = 0xEFFFFFFC  # the inode of the machine's own numbers of processes, in every kernel
_HOTTEST_CELSIUS = 1000  # a temperature below zero is told as one far above
_COMMAND_CHARACTERS = 256


class Gpu(msgspec.Struct, frozen=True):
    """A device as it was read, and its processes with the bytes that they have there; None: not told."""

    shown: GpuReading
    processes: Mapping[int, int | None] | None = None


# --- Reading --------------------------------------------------------------------------------------


class GpuMeter:
    """Reads all devices. It may stand still: ask it aside."""

    def __init__(self, open_library: Callable[[], Nvml | None] = nvml.opened) -> None:
        self._open = open_library
        self._library: Nvml | None = None
        self._known: dict[int, GpuReading] = {}  # by the number that jobs know it by: what does not change

    def read(self) -> tuple[Gpu, ...]:
        """In the order of their numbers. If the library does not answer, none is believed to be lost."""
        count = self._count()
        if self._library is None or count is None:
            return tuple(Gpu(self._known[number]) for number in sorted(self._known))
        found = {number: Gpu(_lost(known)) for number, known in self._known.items()}
        for place in range(count):
            gpu = self._read_one(self._library, place)
            found[gpu.shown.index] = gpu
        return tuple(found[number] for number in sorted(found))

    def _count(self) -> int | None:
        """How many are listed. If that is not answered, the library is opened anew the next time."""
        if self._library is None:
            self._library = self._open()
        if self._library is None:
            return None
        count = self._library.count()
        if count is None:
            self._library.close()
            self._library = None
        return count

    def _read_one(self, library: Nvml, place: int) -> Gpu:
        known = self._known.get(place, GpuReading(index=place))
        try:
            handle = library.handle(place)
            if handle is None:
                return Gpu(known)
            known = self._recognised(library, handle, place)
            return Gpu(_figures(library, handle, known), _processes(library, handle))
        except Lost:
            return Gpu(_lost(known))

    def _recognised(self, library: Nvml, handle: Handle, place: int) -> GpuReading:
        uuid = library.text("nvmlDeviceGetUUID", handle)
        if uuid is None:
            known = self._known.get(place)
        else:
            known = next((known for known in self._known.values() if known.uuid == uuid), None)
        if known is None:
            number = place if place not in self._known else max(self._known) + 1
            name, minor = library.text("nvmlDeviceGetName", handle), "nvmlDeviceGetMinorNumber"
            known = GpuReading(index=number, minor=library.number(minor, of=handle), uuid=uuid, name=name)
            self._known[number] = known
        return known


def _lost(known: GpuReading) -> GpuReading:
    return msgspec.structs.replace(known, lost=True)


def _figures(library: Nvml, handle: Handle, known: GpuReading) -> GpuReading:
    percent = library.field("nvmlDeviceGetUtilizationRates", handle, "gpu")
    total = library.field("nvmlDeviceGetMemoryInfo", handle, "total")
    used = library.field("nvmlDeviceGetMemoryInfo", handle, "used")
    milliwatts = library.number("nvmlDeviceGetPowerUsage", of=handle)
    sensor = ("NVML_TEMPERATURE_GPU",)
    celsius = library.number("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature", of=handle, about=sensor)
    kinds = ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_AGGREGATE_ECC")
    return msgspec.structs.replace(
        known,
        metric=METRIC,
        busy=percent / 100 if percent is not None and percent <= 100 else None,
        memory_used_bytes=used if used is not None and total is not None and used <= total else None,
        memory_total_bytes=total,
        power_watts=None if milliwatts is None else milliwatts / 1000,
        temperature_celsius=celsius if celsius is not None and celsius < _HOTTEST_CELSIUS else None,
        uncorrected_errors=library.number("nvmlDeviceGetTotalEccErrors", of=handle, about=kinds),
        is_mig=library.is_divided(handle),
    )


def _processes(library: Nvml, handle: Handle) -> Mapping[int, int | None] | None:
    return library.processes(handle) if numbers_are_the_machines() else None


def numbers_are_the_machines() -> bool:
    try:
        return os.stat("/proc/self/ns/pid").st_ino == _MACHINES_OWN
    except OSError:
        return False


# --- Whose processes they are ---------------------------------------------------------------------


def shown_to(
    gpus: Mapping[int, Gpu], devices: Iterable[int], members: Collection[int]
) -> tuple[GpuShown, ...]:
    """What an attempt is shown of the devices that it holds."""
    return tuple(_shown(device, gpus.get(device), members) for device in sorted(devices))


def _shown(device: int, gpu: Gpu | None, members: Collection[int]) -> GpuShown:
    if gpu is None:
        return GpuShown(device)
    if gpu.processes is None:
        return GpuShown(device, gpu.shown.busy)
    own = [taken for pid, taken in gpu.processes.items() if pid in members]
    return GpuShown(device, gpu.shown.busy, summed(own))


def strangers(gpus: Iterable[Gpu], members: Collection[int]) -> set[int]:
    """Those on GPUs that are of no attempt."""
    return {pid for gpu in gpus for pid in gpu.processes or () if pid not in members}


Introduced = tuple[str | None, str | None]  # user and command


def with_foreign(gpu: Gpu, foreign: Mapping[int, Introduced]) -> GpuReading:
    """The device, and who is on it that Muster has not started."""
    if gpu.processes is None:
        return gpu.shown
    found = [(pid, taken) for pid, taken in gpu.processes.items() if pid in foreign]
    named = tuple(ForeignProcess(pid, *foreign[pid], taken) for pid, taken in sorted(found))
    return msgspec.structs.replace(gpu.shown, foreign=named)


def introduce(pids: Iterable[int]) -> dict[int, Introduced]:
    """Who they are, as far as we may know; without those that have ended.

    This may stand still, as /proc and lists of users do.
    """
    return {pid: (_user(pid), _command(pid)) for pid in pids if _lives(pid)}


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another user's, and there
        return True
    return True


def _user(pid: int) -> str | None:
    with contextlib.suppress(OSError, KeyError):
        return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    return None


def _command(pid: int) -> str | None:
    """As it was called; of one that hides that, its name."""
    for file in ("cmdline", "comm"):
        with contextlib.suppress(OSError, Gone):
            words = whole(f"/proc/{pid}/{file}").decode(errors="replace").split("\0")
            if text := " ".join(words).strip():
                return text[:_COMMAND_CHARACTERS]
    return None
