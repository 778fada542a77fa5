"""Who belongs to which part, where there are no groups to tell.

To a part belong its main process, those in its session, their descendants, and whoever carries the mark of
the attempt in the environment, as a daemon does that has left both. Whoever was found to belong goes on to,
even if its parent ends. A folder of /proc has another inode when its number is used again: so of those that
are known already nothing but that is looked at, and a look costs what is new. What was noted of a process may
be out of date; but nobody is a child, or in the session, of one that has started later.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from muster.model.job import JobId
from muster.monitor.meters.files import Gone, whole
from muster.monitor.meters.lives import parse_stat
from muster.monitor.meters.texts import count

Mark = tuple[JobId, int]  # job and attempt
Key = tuple[JobId, int, int]  # and which of its parts
Marks = Mapping[int, Mark | None]


class Root(NamedTuple):
    """The main process of a part."""

    pid: int
    started: int | None  # None: not known, so whoever has the number is believed to be it


class _Known(msgspec.Struct):
    """A process that was looked at."""

    inode: int
    parent: int
    session: int
    started: int
    owner: Key | None = None
    mark: Mark | None = None
    was_asked: bool = False  # for its mark


class Census:
    """All processes of the machine, and whose they are. ``ask`` reads marks; None while it can't."""

    def __init__(self, ask: Callable[[list[int]], Marks | None], proc: str = "/proc") -> None:
        self._ask, self._proc = ask, proc
        self._known: dict[int, _Known] = {}
        self._roots: dict[Key, Root] = {}
        self._marked: dict[Mark, Key] = {}  # which part gets whom only the mark tells: the first of them

    def members(self, roots: Mapping[Key, Root]) -> dict[Key, set[int]]:
        """Of each part, who belongs to it now."""
        fresh = self._count()
        if roots != self._roots:
            self._change_roots(roots)
            fresh = set(self._known)
        self._assign(fresh)
        if self._read_marks():
            self._assign(self._known)
        members: dict[Key, set[int]] = {key: set() for key in roots}
        for pid, known in self._known.items():
            if known.owner is not None:
                members[known.owner].add(pid)
        return members

    def _change_roots(self, roots: Mapping[Key, Root]) -> None:
        self._roots = dict(roots)
        self._marked = {key[:2]: key for key in sorted(roots, reverse=True)}
        for known in self._known.values():
            if known.owner not in roots:
                known.owner = None

    # --- Who there is -----------------------------------------------------------------------------

    def _count(self) -> set[int]:
        """Forget who is gone, and look at who is new."""
        with os.scandir(self._proc) as entries:
            inodes = {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}
        for pid in self._known.keys() - inodes.keys():
            del self._known[pid]
        known = self._known
        fresh = {pid for pid, inode in inodes.items() if pid not in known or known[pid].inode != inode}
        for pid in fresh:
            self._meet(pid, inodes[pid])
        return fresh

    def _meet(self, pid: int, inode: int) -> None:
        """An inode may change for less than a new process: the kernel forgets some when memory is short."""
        before = self._known.pop(pid, None)
        try:
            life = parse_stat(whole(f"{self._proc}/{pid}/stat"))
        except (Gone, OSError):
            return
        if life is None:
            return
        if before is not None and before.started == life.started:
            before.inode = inode
            self._known[pid] = before
        else:
            self._known[pid] = _Known(inode, life.parent, life.session, life.started)

    # --- Whose they are ---------------------------------------------------------------------------

    def _assign(self, pids: Iterable[int]) -> None:
        """Find the owners of those that have none: their own claim, or that of the nearest above."""
        mains = self._mains()
        visited: set[int] = set()
        for pid in pids:
            chain: list[_Known] = []
            known, owner = self._known.get(pid), None
            while known is not None and owner is None and pid not in visited:
                visited.add(pid)
                chain.append(known)
                owner = known.owner or self._claim(pid, known, mains)
                pid, known = known.parent, self._parent(known)
            if owner is None and known is not None:
                owner = known.owner  # was visited before
            for one in chain:
                one.owner = owner

    def _parent(self, known: _Known) -> _Known | None:
        parent = self._known.get(known.parent)
        return parent if parent is not None and parent.started <= known.started else None

    def _claim(self, pid: int, known: _Known, mains: Mapping[int, tuple[Key, int]]) -> Key | None:
        for number in (pid, known.session):
            if number in mains and mains[number][1] <= known.started:
                return mains[number][0]
        return None if known.mark is None else self._marked.get(known.mark)

    def _mains(self) -> dict[int, tuple[Key, int]]:
        """Main processes by number, and when they started. One whose number is another's by now is left out.

        While a session lasts, its number is not used again: if its leader is gone, it is still the same.
        """
        mains: dict[int, tuple[Key, int]] = {}
        for key, root in self._roots.items():
            known = self._known.get(root.pid)
            if known is None:
                mains[root.pid] = (key, root.started or 0)
            elif root.started in (None, known.started):
                mains[root.pid] = (key, known.started)
        return mains

    def _read_marks(self) -> bool:
        """Of those that are nobody's; whether one was found."""
        strangers = [pid for pid, known in self._known.items() if known.owner is None and not known.was_asked]
        marks = (self._ask(strangers) or {}) if strangers else {}
        for pid, mark in marks.items():
            self._known[pid].mark, self._known[pid].was_asked = mark, True
        return any(mark in self._marked for mark in marks.values())


# --- Marks ----------------------------------------------------------------------------------------


def parse_mark(environ: bytes, home: bytes) -> Mark | None:
    """What our keeper has put into the environment; there may be others on the machine, with their jobs."""
    variables = dict(variable.partition(b"=")[::2] for variable in environ.split(b"\0"))
    job, attempt = variables.get(b"MUSTER_JOB_ID"), count(variables.get(b"MUSTER_ATTEMPT", b""))
    if variables.get(b"MUSTER_HOME") != home or not job or attempt is None:
        return None
    return job.decode(errors="replace"), attempt


def read_marks(home: bytes, pids: Iterable[int]) -> dict[int, Mark | None]:
    """This may stand still: a process's memory can be locked."""
    return {pid: _read_mark(pid, home) for pid in pids}


def _read_mark(pid: int, home: bytes) -> Mark | None:
    try:
        return parse_mark(whole(f"/proc/{pid}/environ"), home)
    except (Gone, OSError):
        return None
