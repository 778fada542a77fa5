"""All meters together: one reading of each attempt, and one of the node.

GPUs are asked first. So whoever is on one by then, and lives, is found among the processes that are looked at
afterwards. Nothing that one meter does is felt by another: what it does not tell, or tells wrongly, is None;
and those that may stand still are asked aside. ``silent`` says which of them do not answer, and since when.
"""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from muster.model.job import JobId
from muster.model.usage import GpuReading, NodeReading, Reading
from muster.monitor.meters import census, host, nvml
from muster.monitor.meters.aside import Aside
from muster.monitor.meters.census import Census, Key, Root
from muster.monitor.meters.files import Room
from muster.monitor.meters.nvml import Gpu, GpuMeter
from muster.monitor.meters.parts import AttemptMeter, PartSeen

PATIENCE_SECONDS = 2.0


class Attended(msgspec.Struct, frozen=True):
    """An attempt that is to be read."""

    job: JobId
    attempt: int
    parts: tuple[PartSeen, ...]
    devices: tuple[int, ...] = ()  # those that it holds, by number
    checkpoint_of: JobId | None = None  # in whose folder it saves; None: its own
    nodes: tuple[str, ...] = ()  # on which it sits
    device_nodes: tuple[str, ...] = ()  # of each of its devices, the node that it is in
    since: float | None = None  # when it began


class Readings(msgspec.Struct, frozen=True):
    """What all meters show at one moment."""

    readings: tuple[Reading, ...]  # in the order in which they were asked for
    node: NodeReading
    nodes: Mapping[str, NodeReading] = {}  # by name, where there are several; else ``node`` is all there is


class Meters:
    """Reads attempts and the node, for as long as it is kept: it remembers the attempts of the last look.

    ``home`` is where Muster lives: its disk is the node's, and its jobs are known by it.
    """

    def __init__(
        self,
        home: str | os.PathLike[str],
        *,
        gpus: Callable[[], tuple[Gpu, ...]] | None = None,
        now: Callable[[], float] = time.time,
        patience_seconds: float = PATIENCE_SECONDS,
        room: Room | None = None,
    ) -> None:
        aside = functools.partial(Aside, patience_seconds=patience_seconds, now=now)
        home = os.path.realpath(home)
        read_marks = functools.partial(census.read_marks, os.fsencode(home))
        self._gpus: Aside[tuple[Gpu, ...]] = aside(gpus or GpuMeter().read)
        self._disk: Aside[host.Disk] = aside(functools.partial(host.disk_of, home))
        self._marks: Aside[dict[int, census.Mark | None]] = aside(read_marks)
        self._people: Aside[dict[int, nvml.Introduced]] = aside(nvml.introduce)
        self._now = now
        self._room = Room() if room is None else room
        self._host = host.HostMeter(self._disk, self._room)
        self._census = Census(self._marks)
        self._attempts: dict[tuple[JobId, int], AttemptMeter] = {}
        self._known_gpus: tuple[Gpu, ...] = ()

    @property
    def silent(self) -> dict[str, float]:
        """Meters that do not answer → since when."""
        asides: dict[str, Aside[Any]] = {
            "gpu": self._gpus,
            "disk": self._disk,
            "environment": self._marks,
            "people": self._people,
        }
        return {name: a.silent_since for name, a in asides.items() if a.silent_since is not None}

    def read(self, attended: Sequence[Attended]) -> Readings:
        """One look at all of them. For one thread at a time; it may take as long as there is patience."""
        gpus = self._read_gpus()
        self._forget({(one.job, one.attempt) for one in attended})
        members = self._count(attended)
        readings = [self._read_one(one, members, gpus) for one in attended]
        node = self._host.read(self._now())
        return Readings(tuple(readings), msgspec.structs.replace(node, gpus=self._with_foreign(gpus)))

    def close(self) -> None:
        self._forget(())
        self._host.close()

    # --- Attempts ---------------------------------------------------------------------------------

    def _forget(self, attended: Collection[tuple[JobId, int]]) -> None:
        for key in [key for key in self._attempts if key not in attended]:
            self._attempts.pop(key).close()

    def _count(self, attended: Iterable[Attended]) -> Mapping[Key, Collection[int]]:
        """Who belongs to the parts that have no groups."""
        roots = {
            (one.job, one.attempt, index): Root(part.pid, part.started)
            for one in attended
            for index, part in enumerate(one.parts)
            if not part.group
        }
        if not roots:
            return {}
        with contextlib.suppress(Exception):
            return self._census.members(roots)
        return {}

    def _read_one(
        self, one: Attended, members: Mapping[Key, Collection[int]], gpus: Mapping[int, Gpu]
    ) -> Reading:
        key = (one.job, one.attempt)
        if key not in self._attempts:
            self._attempts[key] = AttemptMeter(self._room)
        meter = self._attempts[key]
        at, since_boot_seconds = self._now(), time.clock_gettime(time.CLOCK_BOOTTIME)
        shown = meter.read([(part, members.get((*key, i), ())) for i, part in enumerate(one.parts)])
        return Reading(
            job=one.job,
            attempt=one.attempt,
            at=at,
            since_boot_seconds=since_boot_seconds,
            gpus=nvml.shown_to(gpus, one.devices, meter.members) if one.devices else (),
            **msgspec.structs.asdict(shown),
        )

    # --- GPUs -------------------------------------------------------------------------------------

    def _read_gpus(self) -> dict[int, Gpu]:
        """By number. While the driver stands still, those that were there, and nothing else of them."""
        gpus = self._gpus()
        if gpus is None:
            gpus = self._known_gpus
        else:
            self._known_gpus = tuple(Gpu(_without_figures(gpu.shown)) for gpu in gpus)
        return {gpu.shown.index: gpu for gpu in gpus}

    def _with_foreign(self, gpus: Mapping[int, Gpu]) -> tuple[GpuReading, ...]:
        known = {pid for meter in self._attempts.values() for pid in meter.members} if gpus else set()
        strangers = nvml.strangers(gpus.values(), known)
        foreign = self._people(strangers) if strangers else {}
        if foreign is None:
            foreign = dict.fromkeys(strangers, (None, None))
        return tuple(nvml.with_foreign(gpus[number], foreign) for number in sorted(gpus))


def _without_figures(gpu: GpuReading) -> GpuReading:
    return GpuReading(index=gpu.index, minor=gpu.minor, uuid=gpu.uuid, name=gpu.name)
