"""Slurm's jobs by their processes, where it makes no groups for them (``ProctrackType=proctrack/linuxproc``).

Every process of a job has its number in the environment. Of another user's only root may read that, so others
find their own. A process is read once: whoever is known already costs no more than a look at a list.
"""

import os
from collections.abc import Callable, Iterable

import msgspec

from muster.monitor.meters.files import Gone, whole
from muster.monitor.meters.lives import parse_stat
from muster.monitor.meters.parts import PartSeen
from muster.monitor.meters.texts import count

Numbers = dict[int, int | None]  # by process, that of its job; None: it is of none


class _Known(msgspec.Struct):
    inode: int
    started: int
    parent: int
    number: int | None = None


class Processes:
    """``ask`` reads environments, and gives None while it can't: that may stand still."""

    def __init__(self, ask: Callable[[list[int]], Numbers | None], proc: str = "/proc") -> None:
        self._ask, self._proc = ask, proc
        self._known: dict[int, _Known] = {}

    def jobs(self) -> dict[int, tuple[PartSeen, ...]]:
        """By number, the processes that are not started by others of the same job."""
        self._look()
        found: dict[int, tuple[PartSeen, ...]] = {}
        for pid, known in sorted(self._known.items()):
            if known.number is not None and not self._is_child(known):
                found[known.number] = (*found.get(known.number, ()), PartSeen(pid, known.started))
        return found

    def _is_child(self, known: _Known) -> bool:
        parent = self._known.get(known.parent)
        return parent is not None and parent.number == known.number

    def _look(self) -> None:
        with os.scandir(self._proc) as entries:
            inodes = {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}
        known = self._known
        self._known = {pid: known[pid] for pid, i in inodes.items() if pid in known and known[pid].inode == i}
        fresh = [pid for pid in inodes if pid not in self._known and pid != os.getpid()]
        numbers = (self._ask(fresh) or {}) if fresh else {}
        for pid, number in numbers.items():  # who was not asked is the next time
            self._meet(pid, inodes[pid], number)

    def _meet(self, pid: int, inode: int, number: int | None) -> None:
        try:
            life = parse_stat(whole(f"{self._proc}/{pid}/stat"))
        except (Gone, OSError):
            return
        if life is not None:
            self._known[pid] = _Known(inode, life.started, life.parent, number)


def read_numbers(node: str, pids: Iterable[int], proc: str = "/proc") -> Numbers:
    """This may stand still: a process's memory can be locked."""
    return {pid: _number_of(node, pid, proc) for pid in pids}


def _number_of(node: str, pid: int, proc: str) -> int | None:
    try:
        return parse_number(whole(f"{proc}/{pid}/environ"), node)
    except (Gone, OSError):
        return None


def parse_number(environ: bytes, node: str) -> int | None:
    """Of the job that it is in. Several slurmd may share a machine: then it says which is its own."""
    variables = dict(variable.partition(b"=")[::2] for variable in environ.split(b"\0"))
    if variables.get(b"SLURMD_NODENAME", node.encode()) != node.encode():
        return None
    return count(variables.get(b"SLURM_JOB_ID", b""))
