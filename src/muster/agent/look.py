"""One look at a node: all of Slurm's jobs that are there, or one, and the node itself.

What is told of GPUs is of all that can be seen, each by the number of its device file and with what the job's
own processes have there: which of them a job holds is Slurm's to say, and the server asks it.
"""

import functools
import os
import time
from collections.abc import Collection, Mapping

import msgspec

from muster.agent.groups import Groups
from muster.agent.processes import Processes, read_numbers
from muster.model.errors import MusterError
from muster.model.usage import GpuReading, GpuShown, NodeReading, Reading
from muster.monitor.agents.message import MOST_JOBS, Told
from muster.monitor.meters.aside import Aside
from muster.monitor.meters.gather import PATIENCE_SECONDS, Attended, Meters
from muster.monitor.meters.parts import PartSeen

_DAEMONS = ("slurmd", "slurmstepd")
_TELLS_NOTHING = frozenset(("job", "attempt", "at", "since_boot_seconds", "gpus", "by"))


class NoSlurm(MusterError):
    """Nothing of Slurm's is here."""


class Looker:
    """Looks at this node, which Slurm calls ``node``; at the job ``only``, if there is one."""

    def __init__(self, node: str, only: int | None = None, groups: Groups | None = None) -> None:
        self._node, self._only = node, only
        self._groups = groups or Groups(node)
        ask = functools.partial(read_numbers, node)
        self._processes = Processes(Aside(ask, patience_seconds=PATIENCE_SECONDS, now=time.time))
        self._meters = Meters("/")
        self._devices: tuple[int, ...] = ()  # those that were seen last

    def check(self) -> None:
        """Raise if this is no node of Slurm's."""
        if not (self._groups.are_there or _runs_here(_DAEMONS) or self._processes.jobs()):
            raise NoSlurm(
                "nothing of Slurm's is on this machine: no control groups of its jobs and no slurmd; "
                "run the agent on a compute node, once slurmd has started"
            )

    def look(self) -> Told:
        attended = self._attended()
        shown = self._meters.read(attended)
        minors = minor_numbers(shown.node.gpus)
        self._devices = tuple(gpu.index for gpu in shown.node.gpus)
        readings = (renumbered(one, minors) for one in shown.readings if _tells_anything(one))
        return Told(
            node=self._node,
            since_boot_seconds=time.clock_gettime(time.CLOCK_BOOTTIME),
            only=self._only,
            readings=tuple(readings),
            own=None if self._only is not None else _own(shown.node, minors),
            silent=tuple(sorted(self._meters.silent)),
        )

    def close(self) -> None:
        self._meters.close()

    def _attended(self) -> list[Attended]:
        """Of a job in groups the incarnation is the attempt: a group that was made anew has new meters."""
        if self._groups.are_there:
            found = [
                Attended(str(number), one.incarnation, (PartSeen(0, None, one.folders, one.version),))
                for number, one in self._groups.jobs().items()
            ]
        else:
            jobs = self._processes.jobs().items()
            found = [Attended(str(number), 0, parts) for number, parts in jobs]
        wanted = [one for one in found if self._only is None or one.job == str(self._only)]
        return [msgspec.structs.replace(one, devices=self._devices) for one in wanted[:MOST_JOBS]]


# --- Devices ---------------------------------------------------------------------------------------


def minor_numbers(gpus: Collection[GpuReading]) -> dict[int, int]:
    """NVIDIA's number of a device → the kernel's. Nothing, where some can't be told apart.

    Slurm counts the instances of a divided device one by one: then its numbers are not those of devices.
    """
    minors = {gpu.index: gpu.minor for gpu in gpus if gpu.minor is not None}
    if any(gpu.is_mig for gpu in gpus) or len(set(minors.values())) < len(minors):
        return {}
    return minors


def renumbered(reading: Reading, minors: Mapping[int, int]) -> Reading:
    gpus = (
        GpuShown(minors[gpu.device], gpu.busy, gpu.memory_bytes)
        for gpu in reading.gpus
        if gpu.device in minors
    )
    return msgspec.structs.replace(reading, gpus=tuple(sorted(gpus, key=lambda gpu: gpu.device)))


def _own(node: NodeReading, minors: Mapping[int, int]) -> NodeReading:
    gpus = (msgspec.structs.replace(gpu, index=minors[gpu.index]) for gpu in node.gpus if gpu.index in minors)
    return msgspec.structs.replace(node, gpus=tuple(sorted(gpus, key=lambda gpu: gpu.index)))


# --- Small things ----------------------------------------------------------------------------------


def _tells_anything(reading: Reading) -> bool:
    """One whose group went away before it was first read tells nothing."""
    names = (name for name in reading.__struct_fields__ if name not in _TELLS_NOTHING)
    return any(getattr(reading, name) is not None for name in names)


def _runs_here(names: Collection[str]) -> bool:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                if file.read().strip() in names:
                    return True
        except OSError:
            continue
    return False
