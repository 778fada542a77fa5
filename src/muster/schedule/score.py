"""Scores of nodes for a part, lower is better: the published placement policies. Ours is in ``waste``.

Each is a function of a node's free resources and the shape (and, for ``fgd`` and ours, the mix). Whole
GPUs take the first idle devices; a shared one the tightest that fits, unless the score itself chooses
(it then returns the device with the score). The published ones are rounded to whole points, as in the
study that compared them (Weng et al., ATC'23): the rounding makes ties, and ties go to the first node,
which matters.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from muster.model.job import Shape
from muster.model.mix import Mix
from muster.model.room import Floats, Hardware, Index, Ints, Room
from muster.model.units import MILLI
from muster.schedule.fit import device_need, usable_devices

Devices = npt.NDArray[np.intp]
Scored = tuple[Floats, Devices | None]


class Score(Protocol):
    """How good nodes are for a shape that fits on them."""

    uses_mix: bool
    is_kept: bool  # a node gets the same score until it changes

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        """Scores, and the device of each node that a shared GPU should use, if the score chooses."""
        ...

    def one(self, room: Room, shape: Shape, node: int) -> tuple[float, int]:
        """The same for a single node, of which there are many more."""
        ...


class Published:
    """What the published scores share: the largest node as a yardstick."""

    uses_mix = False
    is_kept = True

    def __init__(self, hw: Hardware) -> None:
        self._hw = hw
        self._most_cpus = hw.most_cpus_milli
        self._most_gpus = max(hw.width, 1) * MILLI

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        raise NotImplementedError

    def one(self, room: Room, shape: Shape, node: int) -> tuple[float, int]:
        scores, devices = self.many(room, shape, np.array([node]))
        return float(scores[0]), 0 if devices is None else int(devices[0])

    def _free(self, room: Room, nodes: Index) -> tuple[Floats, Floats]:
        """Free cpus and GPUs as parts of the largest node."""
        return room.cpus[nodes] / self._most_cpus, room.gpu[nodes].sum(axis=1) / self._most_gpus

    def _asked(self, shape: Shape) -> tuple[float, float]:
        return shape.cpus_milli / self._most_cpus, shape.gpus * shape.gpu_milli / self._most_gpus


class BestFit(Published):
    """Where the least is left over."""

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        cpus, gpus = self._free(room, nodes)
        asked_cpus, asked_gpus = self._asked(shape)
        return -np.floor(100 - 50 * (cpus - asked_cpus) - 50 * (gpus - asked_gpus)), None


class DotProduct(Published):
    """Where what is free looks least like what is asked."""

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        cpus, gpus = self._free(room, nodes)
        asked_cpus, asked_gpus = self._asked(shape)
        return -np.floor(100 - 50 * (cpus * asked_cpus + gpus * asked_gpus)), None


class Packing(Published):
    """Shares on GPUs that are shared already, whole GPUs on nodes that are used already."""

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        if not shape.gpus:
            return np.zeros(len(nodes)), None
        gpu = room.gpu[nodes]
        idle = (gpu == MILLI).sum(axis=1)
        there = (self._hw.gpu_model[nodes] >= 0).sum(axis=1)
        points: Ints = np.full(len(nodes), max(50 - shape.gpus, 33))
        if shape.shares_gpu:
            usable = usable_devices(self._hw, room, shape, nodes)
            tightest = np.where(usable, gpu, 2 * MILLI).min(axis=1)
            points = np.maximum(100 - tightest * 100 // MILLI // 10, 50)
            points = np.where(tightest == MILLI, 49, points)
        return -np.where(idle == there, np.maximum(33 - idle, idle), points).astype(float), None


class Clustering(Published):
    """Parts of one kind together: shares, single GPUs, pairs, more."""

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        if not shape.gpus:
            return np.zeros(len(nodes)), None
        kinds = room.kinds[nodes] > 0
        how_many = kinds.sum(axis=1)
        same = np.where(how_many == 1, 75, 50)
        other = np.where(how_many == 0, 25, 0)
        base = np.where(kinds[:, room.kind_of(shape)], same, other)
        free = room.gpu[nodes].sum(axis=1)
        return -(base + 25 * (self._most_gpus - free) // self._most_gpus).astype(float), None


class Random(Published):
    """Anywhere. The luck is a hash of the seed, the state of the room, and the node."""

    is_kept = False

    def __init__(self, hw: Hardware, seed: int) -> None:
        super().__init__(hw)
        self._seed = seed

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        drawn = self._seed * 1_000_003 + room.log.end
        scores = _hash(nodes.astype(np.uint64), 2 * drawn)
        if not shape.shares_gpu:
            return scores, None
        luck = _hash(np.arange(len(nodes) * self._hw.width, dtype=np.uint64), 2 * drawn + 1)
        usable = usable_devices(self._hw, room, shape, nodes)
        return scores, np.where(usable, luck.reshape(usable.shape), -1.0).argmax(axis=1)


def _hash(values: npt.NDArray[np.uint64], salt: int) -> Floats:
    """A well-mixed number in [0, 1) for each value."""
    x = values * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt * 0xBF58476D1CE4E5B9 % (1 << 64))
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    return (x >> np.uint64(11)) / float(1 << 53)


class Fragmentation(Published):
    """Fragmentation gradient descent: where room that the mix can't use grows least.

    For a class of the mix, all free GPU of a node counts as fragmented if the class can't run there, and
    otherwise what is free on devices too small for it.
    """

    uses_mix = True
    _COVERS = 0.95

    def __init__(self, hw: Hardware, mix: Mix) -> None:
        super().__init__(hw)
        classes = mix.classes_by(_class_of, self._COVERS)
        total = sum(part for _, part in classes) or 1.0
        self._weights = np.array([part / total for _, part in classes])
        self._cpus = np.array([c[0] for c, _ in classes], np.int64)
        self._gpus = np.array([c[1] for c, _ in classes], np.int64)
        self._milli = np.array([c[2] for c, _ in classes], np.int64)
        allowed = [[not c[3] or m in c[3] for c, _ in classes] for m in hw.models]
        self._allowed = np.array(allowed or [[True] * len(classes)], np.bool_)
        self._model = np.maximum(hw.gpu_model[:, 0], 0) if hw.width else np.zeros(hw.count, int)

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        gpu, cpus = room.gpu[nodes], room.cpus[nodes]
        model = self._model[nodes]
        before = self._fragmented(gpu, cpus, model)
        cpus = cpus - shape.cpus_milli
        usable = usable_devices(self._hw, room, shape, nodes)
        if not shape.shares_gpu:
            taken = usable & (usable.cumsum(axis=1) <= shape.gpus)
            after = self._fragmented(np.where(taken, 0, gpu), cpus, model)
            return -self._points(before - after), None
        need = np.broadcast_to(np.asarray(device_need(self._hw, shape, nodes)), gpu.shape)
        points = np.full(gpu.shape, -1.0)
        for g in range(gpu.shape[1]):
            if usable[:, g].any():
                left = gpu.copy()
                left[:, g] -= need[:, g]
                after = self._fragmented(left, cpus, model)
                points[:, g] = np.where(usable[:, g], self._points(before - after), -1.0)
        return -points.max(axis=1), points.argmax(axis=1)

    def _fragmented(self, gpu: Ints, cpus: Ints, model: Ints) -> Floats:
        free: Ints = gpu.sum(axis=1)
        if not self._weights.size:
            return free.astype(np.float64)
        large = gpu[:, None, :] >= self._milli[:, None]
        fits = large.sum(axis=2) >= self._gpus
        fits &= (cpus[:, None] >= self._cpus) & (self._gpus > 0) & self._allowed[model]
        small = free[:, None] - (gpu[:, None, :] * large).sum(axis=2)
        found: Floats = np.where(fits, small, free[:, None]) @ self._weights
        return found

    @staticmethod
    def _points(less: Floats) -> Floats:
        points: Floats = np.floor(100 / (1 + np.exp(-less / MILLI)))
        return points


def _class_of(shape: Shape) -> tuple[int, int, int, tuple[str, ...]]:
    """What makes parts alike for placement: memory hardly ever binds beside GPUs."""
    return (shape.cpus_milli, shape.gpus, shape.gpu_milli, shape.gpu_models)
