"""Which of the nodes that fit is best: a score per node, lower is better, remembered per shape.

Scores depend on one node's free resources, the shape and the mix, nothing else. So they are kept from
one use to the next, and from one cycle to the next, and only nodes that changed are scored again.
"""

from typing import NamedTuple

import numpy as np

from muster.model.events import Seat
from muster.model.job import Shape
from muster.model.policy import Policy
from muster.model.room import Floats, Nodes, Room
from muster.model.snapshot import Snapshot
from muster.schedule.fit import ALL, feasible
from muster.schedule.row import Row, seat_in
from muster.schedule.score import scorer
from muster.schedule.scratch import Scratch


_MOST_KEPT = 1024  # shapes whose scores are remembered


class _Kept(NamedTuple):
    scores: Floats
    mark: int  # where in the room's log they were made


def lowest(scores: Floats) -> int | None:
    """The node with the lowest score, the first of equals; None if it fits nowhere."""
    if not scores.size:
        return None
    node = int(scores.argmin())
    return node if scores[node] < np.inf else None


class Ranker:
    """Scores of the nodes of one scratch."""

    def __init__(self, scratch: Scratch, policy: Policy, snap: Snapshot) -> None:
        self._scratch = scratch
        self._snap = snap
        self._score = scorer(policy.place, snap.hardware, snap.mix, policy.seed)
        self._prefix = (policy.place, snap.mix.version if self._score.uses_mix else 0)
        self._mine: dict[Shape, _Kept] = {}

    def scores(self, shape: Shape) -> Floats:
        """By node; infinite where the part does not fit. Belongs to the ranker: copy before changing."""
        kept = self._mine.get(shape)
        if kept is None:
            kept = self._from_memo(shape)
        log = self._scratch.room.log
        if kept.mark != log.end:
            changed = log.since(kept.mark)
            assert changed is not None
            self._refresh(kept.scores, shape, changed, self._scratch.room)
            kept = _Kept(kept.scores, log.end)
        self._mine[shape] = kept
        return kept.scores

    def best(self, scores: Floats) -> int | None:
        return lowest(scores)

    def seat(self, shape: Shape, node: int) -> Seat:
        """The devices on the chosen node."""
        row = Row.of(self._scratch.room, node)
        seat = self._score.seat(shape, node, row) if shape.shares_gpu else None
        seat = seat or seat_in(self._snap.hardware, node, row, shape)
        assert seat is not None
        return seat

    def _from_memo(self, shape: Shape) -> _Kept:
        """Scores as of the snapshot, remembered from earlier generations."""
        room, memo = self._snap.room, self._snap.memo
        end = self._scratch.room.log.base
        key = (*self._prefix, shape)
        kept = memo.get(key)
        if not isinstance(kept, _Kept) or kept.mark > end:
            changed = None
        else:
            changed = room.log.since(kept.mark)
        if isinstance(kept, _Kept) and changed is not None:
            if changed:
                self._refresh(kept.scores, shape, changed, room)
        else:
            if len(memo) >= _MOST_KEPT:
                memo.clear()
            kept = _Kept(self._fresh(shape, ALL, room), end)
        memo[key] = _Kept(kept.scores, end)
        return _Kept(kept.scores.copy(), end)

    def _refresh(self, scores: Floats, shape: Shape, changed: list[int], room: Room) -> None:
        nodes = np.array(changed if len(changed) == 1 else sorted(set(changed)), np.intp)
        scores[nodes] = self._fresh(shape, nodes, room)

    def _fresh(self, shape: Shape, nodes: Nodes, room: Room) -> Floats:
        fits = feasible(self._snap.hardware, room, shape, nodes)
        scores = np.full(fits.shape, np.inf)
        if nodes is ALL:
            nodes = np.arange(fits.size)
        where = nodes[fits]
        if where.size:
            scores[fits] = self._score.nodes(room, shape, where)
        return scores
