"""The control groups that Slurm makes for its jobs, in version 1 and 2.

In version 1 each controller has a tree, ``…/slurm/uid_0/job_12``; in version 2 there is one,
``…/system.slice/slurmstepd.scope/job_12``. Where several slurmd share a machine, the name of the node is in
that of the folder: ``slurm_node1``, ``node1_slurmstepd.scope``. A container may have put it all deeper, so it
is searched for, a few folders deep. That folder is there as long as slurmd is: it is searched for again only
while there is none.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

# Who is in a job is best told by the first of these that is there.
_V1 = ("freezer", "memory", "cpuacct", "cpu", "blkio", "cpuset", "devices")
_UNIFIED = ""
_DEEPEST = 3  # below where a tree is mounted
_MOST_FOLDERS = 20_000  # looked through in a search
_JOB = re.compile(r"job_([0-9]{1,19})")
_USER = re.compile(r"uid_[0-9]+")


class JobGroup(NamedTuple):
    """The groups of one job: controller → folder. ``incarnation`` tells them from earlier ones so named."""

    version: int
    folders: Mapping[str, str]
    incarnation: int


class Groups:
    """Finds them, again and again. ``mountinfo`` is the text of the file of that name in /proc/self."""

    def __init__(self, node: str, mountinfo: str | None = None) -> None:
        self._node, self._mountinfo = node, mountinfo
        self._roots: dict[str, str] = {}  # controller → the folder that Slurm's groups are in

    @property
    def are_there(self) -> bool:
        """Whether Slurm has any, with or without jobs."""
        if not all(map(os.path.isdir, self._roots.values())):
            self._roots = {}
        if not self._roots:
            self._roots = dict(self._search())
        return bool(self._roots)

    def jobs(self) -> dict[int, JobGroup]:
        """By number, those that are there now."""
        if not self.are_there:
            return {}
        by_controller = {controller: _jobs_in(root) for controller, root in self._roots.items()}
        found: dict[int, JobGroup] = {}
        for number in dict.fromkeys(n for jobs in by_controller.values() for n in jobs):
            folders = {c: jobs[number] for c, jobs in by_controller.items() if number in jobs}
            version = 2 if _UNIFIED in folders else 1
            try:
                found[number] = JobGroup(version, folders, os.stat(next(iter(folders.values()))).st_ino)
            except OSError:
                continue  # it has just ended
        return found

    def _search(self) -> Iterator[tuple[str, str]]:
        """Of version 1, if it has any; else of version 2."""
        mounts = parse_mounts(_own_mounts() if self._mountinfo is None else self._mountinfo)
        roots = {c: root for c, point in mounts.items() if (root := self._root_in(point)) is not None}
        first = [c for c in _V1 if c in roots]
        yield from ((c, roots[c]) for c in first or roots)

    def _root_in(self, point: str) -> str | None:
        """The node's own, or the one that has no name."""
        own = (f"slurm_{self._node}", f"{self._node}_slurmstepd.scope")
        plain = ("slurm", "slurmstepd.scope")
        found = [folder for folder in _below(point) if os.path.basename(folder) in (*own, *plain)]
        found.sort(key=lambda folder: (os.path.basename(folder) not in own, folder.count("/"), folder))
        return found[0] if found else None


def parse_mounts(mountinfo: str) -> dict[str, str]:
    """Controller → where its tree is mounted; version 2 is the controller ""."""
    mounts: dict[str, str] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words, kinds = before.split(" "), after.split(" ", 2)
        if len(words) < 5 or len(kinds) < 3:
            continue
        point = words[4].replace("\\040", " ")
        if kinds[0] == "cgroup2":
            mounts.setdefault(_UNIFIED, point)
        elif kinds[0] == "cgroup":
            mounts |= {option: point for option in kinds[2].split(",") if option in _V1}
    return mounts


def _own_mounts() -> str:
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        return file.read()


def _below(point: str) -> Iterator[str]:
    """Folders in it, a few deep, those above first. Not those that are Slurm's or a job's own."""
    level, left = [point], _MOST_FOLDERS
    for _ in range(_DEEPEST):
        level = [folder for above in level for folder in _folders(above)][:left]
        left -= len(level)
        yield from level
        level = [folder for folder in level if "slurm" not in os.path.basename(folder)]


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _jobs_in(root: str) -> dict[int, str]:
    inside = _folders(root)
    users = [folder for folder in inside if _USER.fullmatch(os.path.basename(folder))]
    return dict(_numbered([*inside, *(folder for user in users for folder in _folders(user))]))


def _numbered(folders: Iterable[str]) -> Iterator[tuple[int, str]]:
    for folder in folders:
        named = _JOB.fullmatch(os.path.basename(folder))
        if named is not None:
            yield int(named[1]), folder
