"""A trial copy of the room. What is tried and not committed is undone when the trial ends.

with scratch.trial() as trial:
    ...scratch.sit(seat)...
    trial.commit()
"""

from collections.abc import Iterable
from types import TracebackType

from muster.model.events import Seat
from muster.model.room import Hardware, Room


class Scratch:
    """The room as it would be after what has been decided so far."""

    __slots__ = ("_undo", "hw", "room")

    def __init__(self, hw: Hardware, room: Room) -> None:
        self.hw = hw
        self.room = room.copy()
        self._undo: list[tuple[Seat, int]] | None = None

    def sit(self, seat: Seat) -> None:
        """Somebody takes a seat."""
        self.room.take(self.hw.index[seat.node], seat.shape, seat.devices, seat.device_milli)
        if self._undo is not None:
            self._undo.append((seat, 1))

    def leave(self, seat: Seat) -> None:
        """Somebody's seat is free again."""
        self.room.give(self.hw.index[seat.node], seat.shape, seat.devices, seat.device_milli)
        if self._undo is not None:
            self._undo.append((seat, -1))

    def sit_all(self, seats: Iterable[Seat]) -> None:
        for seat in seats:
            self.sit(seat)

    def leave_all(self, seats: Iterable[Seat]) -> None:
        for seat in seats:
            self.leave(seat)

    def trial(self) -> "Trial":
        return Trial(self)


class Trial:
    """Undoes everything on leaving, unless committed. Trials nest."""

    __slots__ = ("_committed", "_outer", "_scratch")

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._committed = False

    def commit(self) -> None:
        self._committed = True

    def __enter__(self) -> "Trial":
        self._outer = self._scratch._undo
        self._scratch._undo = []
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        scratch = self._scratch
        steps = scratch._undo or []
        scratch._undo = None
        if self._committed and kind is None:
            if self._outer is not None:
                self._outer.extend(steps)
        else:
            for seat, sign in reversed(steps):
                (scratch.leave if sign > 0 else scratch.sit)(seat)
        scratch._undo = self._outer
