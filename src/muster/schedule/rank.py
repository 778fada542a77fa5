"""Which of the nodes that fit is best: a score per node, lower is better, remembered per shape.

A score depends on one node's free resources, the shape and the mix, and on nothing else (see ``score``).
So scores are kept from one use to the next, and from one cycle to the next, and only nodes that changed
since are scored again: a cycle costs what has changed, not what exists. What is remembered never changes
a plan.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from muster.model.events import Seat
from muster.model.job import Shape
from muster.model.policy import Policy
from muster.model.room import Floats, Hardware, Room
from muster.model.snapshot import Snapshot
from muster.schedule.fit import feasible
from muster.schedule.row import Row, device_needs, fits_one, seat_in
from muster.schedule.score import (
    BestFit,
    Clustering,
    Devices,
    DotProduct,
    Fragmentation,
    Packing,
    Random,
    Score,
)
from muster.schedule.scratch import Scratch
from muster.schedule.waste import Waste

_MOST_KEPT = 512  # shapes whose scores are remembered
_FEW = 24  # changed nodes that are quicker scored one by one


class _Kept(NamedTuple):
    scores: Floats  # infinite where the part does not fit
    devices: Devices | None  # for shares, where the score chooses the device
    mark: int  # where in the room's log they were made

    def copy(self) -> "_Kept":
        devices = None if self.devices is None else self.devices.copy()
        return _Kept(self.scores.copy(), devices, self.mark)


class _Book:
    """Scores of some shapes on all nodes of one room, brought up to date when asked for."""

    __slots__ = ("_hw", "_score", "kept")

    def __init__(self, hw: Hardware, score: Score) -> None:
        self._hw, self._score = hw, score
        self.kept: dict[Shape, _Kept] = {}

    def is_by(self, score: Score) -> bool:
        return self._score is score

    def scores(self, room: Room, shape: Shape) -> _Kept:
        kept = self.kept.get(shape)
        changed = None if kept is None or kept.mark > room.log.end else room.log.since(kept.mark)
        if kept is None or changed is None or not self._score.is_kept:
            kept = self.kept[shape] = self._fresh(room, shape)
        elif changed:
            self._refresh(room, shape, kept, set(changed))
            kept = self.kept[shape] = kept._replace(mark=room.log.end)
        return kept

    def _fresh(self, room: Room, shape: Shape) -> _Kept:
        fits = feasible(self._hw, room, shape)
        nodes = np.flatnonzero(fits)
        values, chosen = self._score.many(room, shape, nodes)
        scores = np.full(fits.shape, np.inf)
        scores[nodes] = values
        devices = None
        if chosen is not None:
            devices = np.zeros(fits.shape, np.intp)
            devices[nodes] = chosen
        return _Kept(scores, devices, room.log.end)

    def _refresh(self, room: Room, shape: Shape, kept: _Kept, changed: set[int]) -> None:
        """Score again, in place, the nodes that changed."""
        if len(changed) <= _FEW:
            for node in changed:
                self._refresh_one(room, shape, kept, node)
            return
        nodes = np.array(list(changed), np.intp)
        kept.scores[nodes] = np.inf
        nodes = nodes[feasible(self._hw, room, shape, nodes)]
        if nodes.size:
            kept.scores[nodes], chosen = self._score.many(room, shape, nodes)
            if chosen is not None and kept.devices is not None:
                kept.devices[nodes] = chosen

    def _refresh_one(self, room: Room, shape: Shape, kept: _Kept, node: int) -> None:
        if not room.is_open[node] or not fits_one(self._hw, node, room.row(node), shape):
            kept.scores[node] = np.inf
            return
        kept.scores[node], device = self._score.one(room, shape, node)
        if kept.devices is not None:
            kept.devices[node] = device


class Ranker:
    """Scores of the nodes of one scratch, built on what earlier generations remembered."""

    def __init__(self, scratch: Scratch, policy: Policy, snap: Snapshot) -> None:
        self._scratch, self._snap = scratch, snap
        self._score = _scorer(policy, snap)
        self._base = _remembered(policy, snap, self._score)
        self._mine = _Book(snap.hardware, self._score)

    def scores(self, shape: Shape) -> Floats:
        """By node. They belong to the ranker: copy before changing."""
        if shape not in self._mine.kept and self._score.is_kept:
            self._mine.kept[shape] = self._base.scores(self._snap.room, shape).copy()
        return self._mine.scores(self._scratch.room, shape).scores

    def best(self, scores: Floats) -> int | None:
        return lowest(scores)

    def seat(self, shape: Shape, node: int) -> Seat:
        """The devices on the chosen node."""
        hw = self._snap.hardware
        chosen = self._mine.kept[shape].devices
        if chosen is not None:
            g = int(chosen[node])
            return Seat(hw.nodes[node].name, shape, (g,), device_needs(hw, node, shape)[g])
        seat = seat_in(hw, node, Row.of(self._scratch.room, node), shape)
        assert seat is not None
        return seat


def _remembered(policy: Policy, snap: Snapshot, score: Score) -> _Book:
    """The scores kept for this placement and mix, or a new book."""
    key = ("scores", policy.place)
    book = snap.memo.get(key)
    if not isinstance(book, _Book) or not book.is_by(score) or len(book.kept) > _MOST_KEPT:
        book = snap.memo[key] = _Book(snap.hardware, score)
    return book


def _scorer(policy: Policy, snap: Snapshot) -> Score:
    """The score that the policy names, made once per mix."""
    key = ("scorer", policy.place, policy.seed)
    version, found = cast(tuple[int, Score | None], snap.memo.get(key, (0, None)))
    if found is None or (found.uses_mix and version != snap.mix.version):
        hw, mix = snap.hardware, snap.mix
        make: dict[str, Callable[[], Score]] = {
            "default": lambda: Waste(hw, mix) if hw.width else BestFit(hw),
            "fgd": lambda: Fragmentation(hw, mix),
            "best-fit": lambda: BestFit(hw),
            "dot-product": lambda: DotProduct(hw),
            "packing": lambda: Packing(hw),
            "clustering": lambda: Clustering(hw),
            "random": lambda: Random(hw, policy.seed),
        }
        found = make[policy.place]()
        snap.memo[key] = (snap.mix.version, found)
    return found


def lowest(scores: Floats) -> int | None:
    """The node with the lowest score, the first of equals; None if it fits nowhere."""
    if not scores.size:
        return None
    node = int(scores.argmin())
    return node if scores[node] < np.inf else None
