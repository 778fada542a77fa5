"""The processes of a job, on this machine.

An engine tells where parts are: a control group, or a main process and when it started. What it tells of
another machine is not to be found here: no group of that name, no process that has that number and began
then. Of such parts the processes are not known.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from muster.engines.base import Key
from muster.engines.local import processes
from muster.engines.local.cgroups import Group
from muster.home import Home
from muster.monitor.meters.aside import Aside
from muster.monitor.meters.files import Gone, whole
from muster.monitor.meters.lives import parse_status
from muster.monitor.meters.nvml import Gpu, GpuMeter, introduce
from muster.monitor.meters.parts import PartSeen
from muster.server.answers_map import ProcessView

_PATIENCE_SECONDS = 2.0
_MOST_SHOWN = 1000


class Peek:
    """Looks at processes. It may stand still, as /proc and drivers do: for a thread."""

    def __init__(self, home: Home, gpus: Callable[[], tuple[Gpu, ...]] | None = None) -> None:
        self._home = os.path.realpath(home.path)
        ask = gpus or GpuMeter().read
        self._gpus: Aside[tuple[Gpu, ...]] = Aside(
            ask, patience_seconds=_PATIENCE_SECONDS, now=time.monotonic
        )

    def __call__(self, attempts: Mapping[Key, Sequence[PartSeen]], *, gpus: bool) -> list[ProcessView] | None:
        """All processes of these parts; None if some of them are not to be found here."""
        pids: set[int] = set()
        for key, parts in attempts.items():
            members = self._members(key, parts)
            if members is None:
                return None
            pids.update(members)
        return self._seen(sorted(pids)[:_MOST_SHOWN], self._gpu_bytes() if gpus else {})

    def _members(self, key: Key, parts: Sequence[PartSeen]) -> set[int] | None:
        """Of one attempt: who is in its groups, or in the trees of its main processes."""
        grouped = [part for part in parts if part.group]
        if not all(os.path.isdir(folder) for part in grouped for folder in (part.group or {}).values()):
            return None
        members = {pid for part in grouped for pid in Group(part.version, dict(part.group or {})).members()}
        bare = [part for part in parts if not part.group]
        roots = [part.pid for part in bare if _is_here(part)]
        if bare and not roots:
            return None
        return members | (self._tree(key, roots) if roots else set())

    def _tree(self, key: Key, roots: Sequence[int]) -> set[int]:
        mark = (f"MUSTER_HOME={self._home}", f"MUSTER_JOB_ID={key[0]}", f"MUSTER_ATTEMPT={key[1]}")
        return {one.pid for one in processes.tree(roots, tuple(map(os.fsencode, mark)))}

    def _gpu_bytes(self) -> dict[int, int | None]:
        """What each process has on all GPUs together; None: the driver does not say."""
        taken: dict[int, int | None] = {}
        for gpu in self._gpus() or ():
            for pid, size in (gpu.processes or {}).items():
                before = taken.get(pid, 0)
                taken[pid] = None if size is None or before is None else before + size
        return taken

    def _seen(self, pids: Sequence[int], gpu_bytes: Mapping[int, int | None]) -> list[ProcessView]:
        """Those that still live."""
        return [
            ProcessView(pid, command, _memory_bytes(pid), gpu_bytes.get(pid))
            for pid, (_, command) in introduce(pids).items()
        ]


def _is_here(part: PartSeen) -> bool:
    main = processes.look(part.pid)
    return main is not None and main.started == part.started


def parts_seen(parts: Sequence[Mapping[str, object]]) -> list[PartSeen]:
    return [msgspec.convert(part, PartSeen) for part in parts]


def _memory_bytes(pid: int) -> int | None:
    try:
        held = parse_status(whole(f"/proc/{pid}/status"))
    except (Gone, OSError):
        return None
    return None if held is None else held.private_bytes + held.shared_bytes
