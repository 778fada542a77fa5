"""Where a gang goes: the best-ranked node for each part, all parts or none, as close as asked.

Room that is promised to somebody (see ``backfill``) is guarded: a job that would still be there when the
promise falls due is put on a guarded node only if it fits beside the promised one.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from muster.model.events import Seat
from muster.model.job import Gang, Part, Shape, Together
from muster.model.room import Bools, Floats, Ints
from muster.schedule.fit import by_group, capacity
from muster.schedule.row import Row, seat_in
from muster.schedule.scratch import Scratch


class Ranks(Protocol):
    """What knows which node is best, and which devices on it (see ``rank``)."""

    def scores(self, shape: Shape) -> Floats: ...

    def best(self, scores: Floats) -> int | None: ...

    def seat(self, shape: Shape, node: int) -> Seat: ...


Guarded = dict[int, Row]  # node → what is left of it when a promise falls due, the promised one seated
NO_GUARDS: Guarded = {}


class Placer:
    """Puts gangs on a scratch, with a ranker that knows which node is best."""

    def __init__(self, scratch: Scratch, ranker: Ranks) -> None:
        self.scratch, self.ranker = scratch, ranker

    def place(self, gang: Gang, guarded: Guarded = NO_GUARDS) -> tuple[Seat, ...] | None:
        """Seats for the whole gang, taken on the scratch; None, and nothing taken, if it does not fit."""
        if len(gang.parts) == 1 and gang.parts[0].count == 1:
            seat = self._seat(gang.parts[0].shape, None, guarded)
            return None if seat is None else (seat,)
        with self.scratch.trial() as trial:
            for within in self._places(gang):
                seats = self._fill(gang, within, guarded)
                if seats is not None:
                    trial.commit()
                    return seats
        return None

    def fits_somewhere(self, shape: Shape) -> bool:
        return self.ranker.best(self.ranker.scores(shape)) is not None

    def _fill(self, gang: Gang, within: Bools | None, guarded: Guarded) -> tuple[Seat, ...] | None:
        """All parts inside ``within``, or nothing."""
        seats: list[Seat] = []
        guarded = {node: row.copy() for node, row in guarded.items()}
        with self.scratch.trial() as trial:
            for part in gang.parts:
                for _ in range(part.count):
                    seat = self._seat(part.shape, within, guarded)
                    if seat is None:
                        return None
                    seats.append(seat)
                    row = guarded.get(self.scratch.hw.index[seat.node])
                    if row is not None:
                        row.take(seat)  # the next part must fit beside this one, too
                    if gang.together is Together.SPREAD:
                        within = self._without(within, seat)
            trial.commit()
        return tuple(seats)

    def _seat(self, shape: Shape, within: Bools | None, guarded: Guarded) -> Seat | None:
        """The best node for one part, taken at once."""
        scores = self.ranker.scores(shape)
        if within is not None:
            scores = np.where(within, scores, np.inf)
        node = self.ranker.best(scores)
        while node is not None and node in guarded:
            row = Row.of(self.scratch.room, node).least(guarded[node])
            seat = seat_in(self.scratch.hw, node, row, shape)
            if seat is not None:
                self.scratch.sit(seat)
                return seat
            scores = scores.copy()
            scores[node] = np.inf
            node = self.ranker.best(scores)
        if node is None:
            return None
        seat = self.ranker.seat(shape, node)
        self.scratch.sit(seat)
        return seat

    def _without(self, within: Bools | None, seat: Seat) -> Bools:
        hw = self.scratch.hw
        rest = np.ones(hw.count, np.bool_) if within is None else within.copy()
        rest[hw.index[seat.node]] = False
        return rest

    def _places(self, gang: Gang) -> Iterator[Bools | None]:
        """Where to try: everywhere, or each node, rack or switch with room, the tightest first."""
        hw = self.scratch.hw
        if gang.together in (Together.ANYWHERE, Together.SPREAD):
            yield None
            return
        groups = {
            Together.NODE: np.arange(hw.count),
            Together.RACK: hw.racks,
            Together.SWITCH: hw.switches,
        }[gang.together]
        room_for = [self._by_group(groups, part) for part in gang.parts]
        enough = np.ones(room_for[0].size, np.bool_)
        for part, many in zip(gang.parts, room_for, strict=True):
            enough &= many >= part.count
        for group in sorted(np.flatnonzero(enough), key=lambda g: (room_for[0][g], g)):
            yield groups == group

    def _by_group(self, groups: Ints, part: Part) -> Ints:
        return by_group(groups, capacity(self.scratch.hw, self.scratch.room, part.shape))
