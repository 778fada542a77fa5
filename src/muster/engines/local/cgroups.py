"""Control groups, version 1 or 2, whichever is there and writable.

A part of a job is *born* into its group: the keeper enters the group, starts the process, and goes back.
So nothing ever runs outside, and no code has to run between fork and exec, which is what makes starting
cheap: on the machine where this was decided, a start costs 0.7 ms of cpu with ``posix_spawn``, 0.9 ms from
within groups of three controllers, 1.9 ms when a forked Python joins them, and 2.2 ms through a shell that
does. How many processes there may be is limited before: nothing must get away by forking. The other limits
are written once the keeper is out again: they are not meant for it, and a job that is beyond them by then is
found there. Only version 1's cpu is not entered: among busy processes, whoever changes its cpu group waits
for a turn in it, for a millisecond or three. The child is moved there instead, and with it whomever it has
started by then, which the group of pids tells.

A group that a job has left as it found it is handed on to the next job of its line, if the limits are the
same: nothing has to be made, written or removed, and the files that are needed at each start stay open.

In version 1 each controller is a tree of its own, and only those are made that are of use. The freezer is
made when a job is first suspended. In version 2 there is one tree; groups that have members may not have
subgroups with controllers, so the keeper moves to a group of its own beside the jobs'.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from muster.engines.local import processes

CONTROLLERS = ("pids", "cpu", "memory", "devices", "freezer")
_V2_CONTROLLERS = ("pids", "cpu", "memory")
_CPU_PERIOD_US = 100_000
_LEAST_QUOTA_US = 1000
_GATHER_SECONDS, _FREEZE_SECONDS = 0.01, 1.0  # how long those who fork are run after


# What a job of version 1 leaves behind in its group, and what makes it as new.
_COUNTED = (
    ("cpu", "cpuacct.usage"),
    ("memory", "memory.force_empty"),
    ("memory", "memory.max_usage_in_bytes"),
)


class Limits(NamedTuple):
    """What a part may take. 0 or empty: no word about it."""

    cpus_milli: int = 0
    memory_bytes: int = 0
    pids: int = 0
    cpu_cap: bool = False
    denied_devices: tuple[str, ...] = ()  # such as "c 195:1"


class Setting(NamedTuple):
    """A value for a file of a controller. What may be missing does not matter if it is."""

    controller: str
    file: str
    value: str
    may_be_missing: bool = False


# --- Finding them ---------------------------------------------------------------------------------


def parse_mounts(mountinfo: str) -> dict[str, tuple[str, str]]:
    """Controller → (where its tree is mounted, which of its folders is). Version 2 is the controller ""."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, point, *_ = before.split(" ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            mounts.setdefault("", (point, root))
        elif kind == "cgroup":
            for option in options.split(","):
                if option in CONTROLLERS:
                    mounts.setdefault(option, (point, root))
    return mounts


def parse_membership(cgroup: str) -> dict[str, str]:
    """/proc/PID/cgroup: controller → path in its tree."""
    paths: dict[str, str] = {}
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def own_folders(mountinfo: str, cgroup: str) -> dict[str, str]:
    """Controller → the folder of the group that we are in. In a container only a part may be mounted."""
    paths = parse_membership(cgroup)
    folders: dict[str, str] = {}
    for controller, (point, root) in parse_mounts(mountinfo).items():
        path = paths.get(controller)
        if path is None:
            continue
        if root != "/" and (path == root or path.startswith(root + "/")):
            path = path[len(root) :]
        folders[controller] = os.path.normpath(point + "/" + path)
    return folders


def settings(version: int, limits: Limits) -> list[Setting]:
    """What to write for these limits, in this order."""
    return list(_settings_v1(limits) if version == 1 else _settings_v2(limits))


def _settings_v1(limits: Limits) -> Iterator[Setting]:
    if limits.pids:
        yield Setting("pids", "pids.max", str(limits.pids))
    if limits.cpus_milli:
        yield Setting("cpu", "cpu.shares", str(max(2, limits.cpus_milli * 1024 // 1000)))
        if limits.cpu_cap:
            yield Setting("cpu", "cpu.cfs_period_us", str(_CPU_PERIOD_US))
            yield Setting("cpu", "cpu.cfs_quota_us", str(_quota_us(limits)))
    if limits.memory_bytes:
        yield Setting("memory", "memory.limit_in_bytes", str(limits.memory_bytes))
        yield Setting("memory", "memory.memsw.limit_in_bytes", str(limits.memory_bytes), may_be_missing=True)
    for device in limits.denied_devices:
        yield Setting("devices", "devices.deny", f"{device} rwm")


def _settings_v2(limits: Limits) -> Iterator[Setting]:
    if limits.pids:
        yield Setting("pids", "pids.max", str(limits.pids))
    if limits.cpus_milli:
        yield Setting("cpu", "cpu.weight", str(min(10_000, max(1, limits.cpus_milli // 10))))
        if limits.cpu_cap:
            yield Setting("cpu", "cpu.max", f"{_quota_us(limits)} {_CPU_PERIOD_US}")
    if limits.memory_bytes:
        yield Setting("memory", "memory.swap.max", "0", may_be_missing=True)
        yield Setting("memory", "memory.oom.group", "1", may_be_missing=True)
        yield Setting("memory", "memory.max", str(limits.memory_bytes))


def _quota_us(limits: Limits) -> int:
    return max(_LEAST_QUOTA_US, limits.cpus_milli * _CPU_PERIOD_US // 1000)


def parse_counter(text: str, name: str) -> int:
    """A line such as ``oom_kill 1``."""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


# --- Groups ---------------------------------------------------------------------------------------


class Group:
    """The group of one part: a folder in each tree that it is in."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version, self.folders = version, folders
        self._kept_open: dict[str, int] = {}  # path → descriptor, of a group that was handed on

    @property
    def _first(self) -> str:
        return next(iter(self.folders.values()))

    def limit(self, limits: Limits) -> list[Setting]:
        """Write the limits; those that could not be."""
        failed: list[Setting] = []
        for setting in settings(self.version, limits):
            folder = self.folders.get(setting.controller)
            if folder is None:
                continue
            try:
                _write(f"{folder}/{setting.file}", setting.value)
            except OSError:
                failed += [] if setting.may_be_missing else [setting]
        return failed

    def enter(self, controller: str, file: str) -> None:
        """The keeper goes in, itself."""
        self._put(f"{self.folders[controller]}/{file}", "0")

    def members(self) -> list[int]:
        """Those in the group and in groups that the job has made below."""
        pids: list[int] = []
        for folder, _, _ in os.walk(self._first):
            with contextlib.suppress(FileNotFoundError):
                pids += map(int, _read(f"{folder}/cgroup.procs").split())
        return pids

    def kill(self) -> None:
        """Kill all. First nobody may fork any more, so that it comes to an end."""
        if "pids" in self.folders:
            with contextlib.suppress(OSError):
                _write(f"{self.folders['pids']}/pids.max", "0")
        processes.kill_all(self.members())
        self.thaw()  # who is frozen does not die

    def out_of_memory(self) -> bool:
        """Whether someone in it was killed since there was no memory left."""
        folder = self.folders.get("memory")
        if folder is None:
            return False
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        with contextlib.suppress(OSError):
            return parse_counter(_read(f"{folder}/{file}"), "oom_kill") > 0
        return False

    def is_vacant(self) -> bool:
        """Whether nobody is in it or below it. Who counts as one that is left may be about to vanish."""
        try:
            return self._count() == 0
        except (OSError, ValueError):
            return False

    def hand_on(self) -> bool:
        """Make it ready for the next, as if it were new; False if that can't be."""
        used = "freezer" in self.folders or "pids" not in self.folders or self.out_of_memory()
        if self.version != 1 or used:  # of version 2, what was counted can't be forgotten
            return False
        try:
            for controller, file in _COUNTED:
                with contextlib.suppress(FileNotFoundError, KeyError):
                    _write(f"{self.folders[controller]}/{file}", "0")
            self._keep_open()
        except OSError:
            return False
        return True

    def _keep_open(self) -> None:
        if self._kept_open:
            return
        paths = [f"{folder}/tasks" for controller, folder in self.folders.items() if controller != "cpu"]
        paths += [f"{self.folders['cpu']}/cgroup.procs"] if "cpu" in self.folders else []
        for path in paths:
            self._kept_open[path] = os.open(path, os.O_WRONLY)
        count = f"{self.folders['pids']}/pids.current"
        self._kept_open[count] = os.open(count, os.O_RDONLY)

    def _count(self) -> int:
        """How many processes and threads are in it or below it."""
        path = f"{self.folders['pids']}/pids.current"
        descriptor = self._kept_open.get(path)
        return int(_read(path) if descriptor is None else os.pread(descriptor, 32, 0))

    def _put(self, path: str, value: str) -> None:
        descriptor = self._kept_open.get(path)
        if descriptor is None:
            _write(path, value)
        else:
            os.write(descriptor, value.encode())

    def close(self) -> None:
        for descriptor in self._kept_open.values():
            os.close(descriptor)
        self._kept_open.clear()

    def remove(self) -> bool:
        """Remove the group; False if someone is in it still."""
        self.close()
        for folder in dict.fromkeys(self.folders.values()):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                if not _remove_below(folder):
                    return False
        return True

    # --- Standing still ---------------------------------------------------------------------------

    def freeze(self, freezer: str | None) -> bool:
        """Let all stand still; False if there is no way to. ``freezer``: version 1's folder to use for it."""
        try:
            if self.version == 2:
                _write(f"{self._first}/cgroup.freeze", "1")
                return True
            if freezer is None:
                return False
            if "freezer" not in self.folders:
                os.makedirs(freezer, exist_ok=True)
                self.folders["freezer"] = freezer
            if not self._gather(freezer, _FREEZE_SECONDS):
                return False
            _write(f"{freezer}/freezer.state", "FROZEN")
        except OSError:
            return False
        return True

    def settle_in(self, pid: int) -> bool:
        """Move the newly born to where the keeper did not go itself; False if some were not caught."""
        if self.version != 1 or "cpu" not in self.folders:
            return True
        folder = self.folders["cpu"]
        with contextlib.suppress(OSError, ValueError):
            self._put(f"{folder}/cgroup.procs", str(pid))
            if self._count() > 1:
                return self._gather(folder, _GATHER_SECONDS)
        return True

    def thaw(self) -> None:
        with contextlib.suppress(OSError):
            if self.version == 2:
                _write(f"{self._first}/cgroup.freeze", "0")
            elif "freezer" in self.folders:
                _write(f"{self.folders['freezer']}/freezer.state", "THAWED")

    def _gather(self, folder: str, seconds: float) -> bool:
        """Move all there. Who forks meanwhile leaves a child behind: so until nobody does, or time is up."""
        deadline = time.monotonic() + seconds
        while True:
            there = set(map(int, _read(f"{folder}/cgroup.procs").split()))
            missing = [pid for pid in self.members() if pid not in there]
            if not missing:
                return True
            for pid in missing:
                if time.monotonic() > deadline:
                    return False
                with contextlib.suppress(ProcessLookupError):
                    _write(f"{folder}/cgroup.procs", str(pid))


class Cgroups:
    """Where groups for jobs can be made. With no controllers: nowhere."""

    def __init__(self, version: int, bases: dict[str, str], own: dict[str, str]) -> None:
        self.version, self.bases = version, bases
        entry = "tasks" if version == 1 else "cgroup.procs"
        self._back = {c: os.open(f"{folder}/{entry}", os.O_WRONLY) for c, folder in own.items()}
        self._entry = entry

    @property
    def by(self) -> str:
        return f"cgroup v{self.version}"

    def make(self, name: str, limits: Limits) -> Group | None:
        """A group for these limits; None if groups can't be made here."""
        wanted = [c for c in self.bases if self.version == 2 or _of_use(c, limits)]
        folders = {c: f"{self.bases[c]}/{name}" for c in wanted}
        if not folders:
            return None
        try:
            for folder in dict.fromkeys(folders.values()):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder)
            if limits.pids and "pids" in folders:
                _write(
                    f"{folders['pids']}/pids.max", str(limits.pids + 1)
                )  # the keeper is there at first, too
        except OSError:
            Group(self.version, folders).remove()
            return None
        return Group(self.version, folders)

    def freezer_of(self, name: str) -> str | None:
        base = self.bases.get("freezer")
        return f"{base}/{name}" if base is not None else None

    @contextlib.contextmanager
    def inside(self, group: Group | None) -> Iterator[None]:
        """Whoever is started in here is born into the group."""
        if group is None:
            yield
            return
        entered: list[str] = []
        try:
            for controller in group.folders:
                if controller != "cpu" if self.version == 1 else not entered:
                    group.enter(controller, self._entry)
                    entered.append(controller)
            yield
        finally:
            for controller in reversed(entered):
                os.write(self._back[controller], b"0")

    def close(self) -> None:
        """Leave no empty groups behind."""
        for folder in dict.fromkeys(self.bases.values()):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        for descriptor in self._back.values():
            os.close(descriptor)
        self._back.clear()


def find(tag: str) -> Cgroups:
    """The groups that can be made below our own, in folders with this tag."""
    folders = own_folders(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"))
    v1 = {c: folders[c] for c in CONTROLLERS if c in folders}
    bases = {c: base for c, own in v1.items() if (base := _made(f"{own}/muster-{tag}")) is not None}
    if "pids" in bases:
        return Cgroups(1, bases, {c: v1[c] for c in bases})
    if not v1 and "" in folders:
        return _find_v2(folders[""], tag)
    return Cgroups(0, {}, {})


def _find_v2(own: str, tag: str) -> Cgroups:
    """Beside the jobs' groups the keeper has one of its own. Refused if others are in the group with us."""
    ours, base = f"{own}/keeper-{tag}", f"{own}/muster-{tag}"
    if _made(ours) is None or _made(base) is None:
        return Cgroups(0, {}, {})
    try:
        _write(f"{ours}/cgroup.procs", "0")
        enabled = [c for c in _V2_CONTROLLERS if _enabled(own, c) and _enabled(base, c)]
    except OSError:
        enabled = []
    if "pids" not in enabled:
        with contextlib.suppress(OSError):
            _write(f"{own}/cgroup.procs", "0")
        for folder in (ours, base):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return Cgroups(0, {}, {})
    return Cgroups(2, dict.fromkeys(enabled, base), dict.fromkeys(enabled, ours))


def _enabled(folder: str, controller: str) -> bool:
    try:
        _write(f"{folder}/cgroup.subtree_control", f"+{controller}")
    except OSError:
        return False
    return True


def _of_use(controller: str, limits: Limits) -> bool:
    """Which trees of version 1 a part joins. That of pids always: it says who belongs to the job."""
    uses: dict[str, object] = {
        "pids": True,
        "cpu": limits.cpus_milli,
        "memory": limits.memory_bytes,
        "devices": limits.denied_devices,
    }
    return bool(uses.get(controller))


def _made(folder: str) -> str | None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _remove_below(folder: str) -> bool:
    """Remove what a job has made in its group, and the group."""
    below: Iterable[str] = [found for found, _, _ in os.walk(folder, topdown=False)]
    try:
        for found in below:
            os.rmdir(found)
    except OSError:
        return False
    return True


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
