"""Scores of nodes for a part."""

from typing import Protocol

import numpy as np

from muster.model.events import Seat
from muster.model.job import Shape
from muster.model.mix import Mix
from muster.model.policy import Placement
from muster.model.room import Floats, Hardware, Index, Room
from muster.model.units import MILLI
from muster.schedule.row import Row


class Score(Protocol):
    uses_mix: bool

    def nodes(self, room: Room, shape: Shape, nodes: Index) -> Floats: ...

    def seat(self, shape: Shape, node: int, row: Row) -> Seat | None: ...


class BestFit:
    uses_mix = False

    def __init__(self, hw: Hardware) -> None:
        self._cpus = max((n.cpus_milli for n in hw.nodes), default=1) or 1
        self._gpus = max(hw.width, 1) * MILLI

    def nodes(self, room: Room, shape: Shape, nodes: Index) -> Floats:
        cpus = (room.cpus[nodes] - shape.cpus_milli) / self._cpus
        gpus = (room.gpu[nodes].sum(axis=1) - shape.gpus * shape.gpu_milli) / self._gpus
        scores: Floats = np.ceil(50 * (cpus + gpus))
        return scores

    def seat(self, shape: Shape, node: int, row: Row) -> Seat | None:
        return None


def scorer(place: Placement, hw: Hardware, mix: Mix, seed: int) -> Score:
    return BestFit(hw)
