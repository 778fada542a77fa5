"""The meters of one attempt: of each part its group, and its processes for what that does not show."""

import contextlib
from collections.abc import Collection, Hashable, Mapping

import msgspec

from muster.monitor.meters.files import Gone, Room
from muster.monitor.meters.groups import GroupMeter
from muster.monitor.meters.shown import AMOUNTS, WAITS, Longest, Rising, Shown, summed
from muster.monitor.meters.trees import ALL, TreeMeter


class PartSeen(msgspec.Struct, frozen=True):
    """Where a part is to be found: its group (controller → folder), and its main process."""

    pid: int
    started: int | None = None  # of the process, as /proc tells it; None: not known
    group: Mapping[str, str] | None = None
    version: int = 0  # of the groups


class PartMeter:
    """Reads one part. When it has ended, its counters stay as they were."""

    def __init__(self, part: PartSeen, room: Room) -> None:
        self._group = GroupMeter(part.version, part.group, room) if part.group else None
        wants = ALL - (self._group.shows if self._group is not None else frozenset())
        self._tree = TreeMeter(wants, room) if wants else None
        self._rising = Rising()
        self.members: Collection[int] = ()

    def read(self, members: Collection[int]) -> Shown:
        """``members``: of a part without a group, who belongs to it."""
        try:
            self.members = members if self._group is None else self._group.members()
            return self._rising.checked(self._shown())
        except Gone:
            self.members = ()
            return self._rising.after_the_end()

    def _shown(self) -> Shown:
        shown = self._tree.read(self.members) if self._tree is not None else Shown()
        if self._group is not None:
            shown.processes = len(self.members)
            self._group.read(shown)
        return shown

    def close(self) -> None:
        for meter in (self._group, self._tree):
            if meter is not None:
                meter.close()


class AttemptMeter:
    """Reads all parts of one attempt, and sums up."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._parts: dict[Hashable, PartMeter] = {}
        self._waits = {name: Longest() for name in WAITS}

    @property
    def members(self) -> set[int]:
        """All of its processes at the last look."""
        return {pid for part in self._parts.values() for pid in part.members}

    def read(self, parts: Collection[tuple[PartSeen, Collection[int]]]) -> Shown:
        """Its parts, each with its members if it has no group. One that is not named any more has ended."""
        members_of: dict[Hashable, Collection[int]] = {}
        for part, members in parts:
            identity = next(iter(part.group.values())) if part.group else part.pid
            members_of[identity] = members
            if identity not in self._parts:
                self._parts[identity] = PartMeter(part, self._room)
        shown = {
            identity: _read(meter, members_of.get(identity, ())) for identity, meter in self._parts.items()
        }
        return self._summed(shown)

    def _summed(self, parts: Mapping[Hashable, Shown]) -> Shown:
        if len(parts) <= 1:
            return next(iter(parts.values()), Shown())
        shown = Shown()
        for name in AMOUNTS:
            setattr(shown, name, summed([getattr(part, name) for part in parts.values()]))
        for name in WAITS:
            waits = {identity: getattr(part, name) for identity, part in parts.items()}
            setattr(shown, name, self._waits[name].add(waits))
        return shown

    def close(self) -> None:
        for part in self._parts.values():
            part.close()


def _read(meter: PartMeter, members: Collection[int]) -> Shown:
    """Whatever is wrong with one part is not known of it, and nothing else follows."""
    with contextlib.suppress(Exception):
        return meter.read(members)
    return Shown()
