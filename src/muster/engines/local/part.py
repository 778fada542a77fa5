"""One member of a gang: a process and its tree, its group, and its log.

To the tree belong all that are in the group or, without groups, those in the session of the main process,
below it, or marked as its own by their environment.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

from muster.engines.local import logs, processes
from muster.engines.local.cgroups import Group, Limits
from muster.engines.local.processes import Process
from muster.engines.local.records import Entry

UNKNOWN = -1  # the status of a process that ended while no keeper was there


class Part:
    """What is known of it, and what can be done to it."""

    def __init__(
        self, mark: tuple[bytes, ...], limits: Limits, group: Group | None, log: logs.Log | None
    ) -> None:
        self.limits, self.group, self.log = limits, group, log
        self._mark = mark
        self.pid = 0  # 0: none was started
        self.started: int | None = None  # as /proc tells it; None: not looked at yet
        self.pidfd: int | None = None  # of one that is not our child
        self.status: int | None = None  # as wait tells it; None: it runs
        self.spent: tuple[float, int] | None = None  # seconds of cpu, and bytes of its largest process
        self.adopted = False  # from another keeper
        self.out_of_memory = False
        self.gone = False  # nothing is left of its tree
        self._killed = False
        self._new = True  # its group was made for it, and has no limits yet
        self._settled = True  # all of its tree are where they belong
        self._log_size = 0

    @property
    def runs(self) -> bool:
        return self.status is None

    @property
    def failed(self) -> bool:
        return self.status is not None and self.status != 0

    @property
    def kept_group(self) -> Any:
        """As the records keep it."""
        return None if self.group is None else (self.group.version, self.group.folders)

    @property
    def whereabouts(self) -> dict[str, Any]:
        """Where a meter finds it."""
        group = self.group
        return {
            "version": 0 if group is None else group.version,
            "group": None if group is None else group.folders,
            "pid": self.pid,
            "started": self.started,
        }

    # --- Its tree ---------------------------------------------------------------------------------

    def members(self) -> list[int]:
        """Everybody of the tree."""
        if self.group is not None:
            return self.group.members()
        return [process.pid for process in self.tree()]

    def tree(self) -> list[Process]:
        """As /proc shows it. Of a process that ended unseen, the number may be somebody else's by now."""
        roots = (self.pid,) if self.pid and self.status != UNKNOWN else ()
        return processes.tree(roots, self._mark)

    def signal(self, signal: int) -> None:
        if not self.gone:
            for pid in self.members():
                processes.send(pid, signal)

    def kill(self) -> None:
        self._killed = True
        if self.group is not None:
            self.group.kill()
        elif not self.gone:
            processes.kill_tree(self.tree())
            processes.run_after(self._mark)

    def sweep(self, has_orphans: Callable[[], bool], *, is_followed: bool) -> None:
        """Find out whether anything is left of it, now that its main process has ended.

        The group of one that is followed by another stays, if nobody is in it: see ``spare_group``.
        """
        if self.group is not None:
            self.out_of_memory = self.out_of_memory or (self.failed and self.group.out_of_memory())
            self.gone = (is_followed and self.group.is_vacant()) or self.group.remove()
        else:
            may_be = self.adopted or has_orphans()
            self.gone = not (may_be and (self.members() or processes.orphan(self._mark) is not None))

    def spare_group(self, limits: Limits) -> Group | None:
        """Our group, for another with the same limits, if it is as we have found it."""
        group, undisturbed = self.group, self.status == 0 and not self._killed
        if group is None or not undisturbed or limits != self.limits or limits.cpu_cap or limits.pids < 2:
            return None
        if not group.hand_on():
            return None
        self.group = None
        return group

    def go_on_with(self, group: Group) -> None:
        """Have the group of another, limits and all."""
        self.group, self._new = group, False

    def settle_in(self) -> None:
        """Once it runs, its limits are set. One that is beyond them already is killed for it."""
        if self.group is None:
            return
        for setting in self.group.limit(self.limits) if self._new else ():
            self.say(f"{setting.file} could not be set to {setting.value}")
            if setting.controller == "memory":
                self.out_of_memory = True
                self.group.kill()
        self._settled = self.group.settle_in(self.pid)

    def watch(self) -> bool:
        """Finish what could not be done at its start; whether there is news."""
        if self.group is not None and not self._settled:
            self._settled = self.group.settle_in(self.pid)
        return self._note_start()

    # --- Taking over ------------------------------------------------------------------------------

    def recognise(self, pid: int, started: int | None) -> bool:
        """Whether the main process, as another keeper has noted it, still runs.

        One whose start was not noted must belong to the tree; if not even its number was, it is the first.
        """
        self.adopted, self.status = True, UNKNOWN
        self.pid, self.started = pid or min(self.members(), default=0), started
        with contextlib.suppress(OSError):
            self.pidfd = os.pidfd_open(self.pid) if self.pid else None
        process = processes.look(self.pid) if self.pidfd is not None else None
        if process is None or process.state == "Z":
            return False
        if process.started == started or (started is None and self.pid in self.members()):
            self.status = None
        return self.runs

    def _note_start(self) -> bool:
        """Look when it started; whether that is news.

        Not done at once: /proc answers late of a process that is just executing its program.
        """
        if self.started is not None:
            return False
        process = processes.look(self.pid)
        self.started = process.started if process is not None else None
        return True

    # --- Its log ----------------------------------------------------------------------------------

    def say(self, sentence: str) -> None:
        if self.log is not None:
            self.log.say(sentence)

    def bound_log(self, seconds: float) -> bool:
        """Keep the log within its limit; whether it would be past it within a second."""
        if self.log is None:
            return False
        size, before = self.log.size(), self._log_size
        full = self.log.bound()
        self._log_size = self.log.most_bytes if full else size
        return full or size + (size - before) / seconds > self.log.most_bytes

    def close(self) -> None:
        if self.group is not None:
            self.group.remove()
        if self.log is not None:
            self.log.bound()
            os.close(self.log.descriptor)
            self.log = None
        self.close_pidfd()

    def close_pidfd(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


def recalled(entry: Entry, index: int, mark: tuple[bytes, ...]) -> Part:
    """A part that another keeper has started."""
    path, device, inode = entry["logs"][index]
    kept = entry["groups"][index]
    cpus_milli, memory_bytes, pids, cpu_cap, denied = entry["limits"][index]
    limits = Limits(cpus_milli, memory_bytes, pids, cpu_cap, tuple(denied))
    group = Group(kept[0], dict(kept[1])) if kept else None
    log = logs.reopen(path, entry["terms"]["log_bytes"], (device, inode))
    return Part(mark, limits, group, log)
