"""Our placement score: put a part where the waste to be expected grows least.

``fgd`` asks of a node whether one more part of each kind would fit. We ask what the node's free room
will end up worth if the mix goes on filling it, somewhat choosily. The waste to be expected of a node is

    3 · Σ over devices of hole[free share]  +  strand[cpus, usable GPU]  +  0.3 · broken[cpus, idle devices]

- ``hole[g]``: of a share g free on one device, how much will stay unused. A part of the mix comes (or,
  for an unpopular g, none does in time), takes its share, and leaves a smaller hole; fillings that leave
  less are preferred. Nothing fits: all of it is waste.
- ``strand[c, u]``: of the usable GPU left (free less holes), how much will be stranded for want of cpus:
  the same recursion over the whole node.
- ``broken[c, k]``: of k idle devices, how many jobs of several GPUs could not use.

So complementary shares find each other, cpus stay beside free GPUs, and cpu-only parts go where no GPU
is left. A small best-fit term decides between equals. The tables follow from the mix alone, one set per
GPU model; scoring a node is a few look-ups.
"""

import math
from typing import NamedTuple

import numpy as np

from muster.model.job import Shape
from muster.model.mix import Mix
from muster.model.room import Floats, FreeRow, Hardware, Index, Ints, Room
from muster.model.units import MILLI
from muster.schedule.fit import device_need, usable_devices
from muster.schedule.row import device_needs
from muster.schedule.score import Scored

_HOLE, _BROKEN, _TIGHT = 3.0, 0.3, 12.0  # weights, against 1 for what is stranded
_TIGHTER = 1e-6  # of equal devices, the fuller one
_COVERS = 0.95  # of the parts asked for; all kinds with several GPUs besides

_OFFERS, _CHOOSY = (
    45.0,
    40.0,
)  # a hole sees so many offers; what leaves 40 more is a third as likely
_NODE_OFFERS, _NODE_CHOOSY = 7.0, 250.0  # the same for the node as a whole
_CPU_ROWS = 256
_GRAIN = 65536  # holes are multiples of 1/65536, so that their sums are exact in any order
_STEP = 100  # thousandths of a GPU per column of ``strand``


class _Class(NamedTuple):
    cpus: int
    gpus: int
    milli: int
    models: tuple[str, ...]


class _Node(NamedTuple):
    """A node's numbers, and the row they were made from."""

    row: FreeRow
    hole: float
    idle: int
    free: int
    waste: float


class Waste:
    """The growth of expected waste, by node."""

    uses_mix = True
    is_kept = True

    def __init__(self, hw: Hardware, mix: Mix) -> None:
        self._hw = hw
        self._cpu_step = max(-(-hw.most_cpus_milli // _CPU_ROWS), 1)
        self._rows = hw.most_cpus_milli // self._cpu_step + 1
        self._steps = hw.width * MILLI // _STEP + 2
        self._per_cpu = _TIGHT / hw.most_cpus_milli
        self._per_gpu = _TIGHT / (hw.width * MILLI)
        # The tables are laid out flat, with the offsets of each node's model: one look-up, one index.
        holes, strands, broken = (table.ravel() for table in self._build(mix))
        self._hole, self._strand, self._broken = holes, strands, broken
        model = np.maximum(hw.gpu_model, 0).astype(np.intp)
        self._hole_at = model * (MILLI + 1)
        self._row_at = model[:, 0] * self._rows
        # The same once more as plain lists, for one node at a time.
        self._holes, self._strands, self._brokens = (
            holes.tolist(),
            strands.tolist(),
            broken.tolist(),
        )
        self._hole_ats, self._row_ats = self._hole_at.tolist(), self._row_at.tolist()
        self._known: dict[int, _Node] = {}

    # --- Scoring many nodes -------------------------------------------------------------------------

    def many(self, room: Room, shape: Shape, nodes: Index) -> Scored:
        gpu, cpus = room.gpu[nodes], room.cpus[nodes]
        holes = self._hole.take(self._hole_at[nodes] + gpu)
        hole, free, idle = holes.sum(axis=1), gpu.sum(axis=1), (gpu == MILLI).sum(axis=1)
        row = self._row_at[nodes] + cpus // self._cpu_step
        before = self._waste(row, free, hole, idle)
        left = cpus - shape.cpus_milli
        row = self._row_at[nodes] + left // self._cpu_step
        device = None
        if shape.shares_gpu:
            usable = usable_devices(self._hw, room, shape, nodes)
            then = np.where(usable, gpu - device_need(self._hw, shape, nodes), gpu)
            holes = hole[:, None] - holes + self._hole.take(self._hole_at[nodes] + then)
            frees = free[:, None] + (then - gpu)
            idles = idle[:, None] - (gpu == MILLI)
            after = self._waste(row[:, None], frees, holes, idles) + gpu * _TIGHTER
            after = np.where(usable, after, np.inf)
            device = after.argmin(axis=1)
            at = np.arange(len(nodes))
            free, after = frees[at, device], after[at, device]
        else:
            hole = hole - shape.gpus * self._hole.take(self._hole_at[nodes, 0] + MILLI)
            free, idle = free - shape.gpus * MILLI, idle - shape.gpus
            after = self._waste(row, free, hole, idle)
        return after - before + left * self._per_cpu + free * self._per_gpu, device

    def _waste(self, row: Ints, free: Ints, hole: Floats, idle: Ints) -> Floats:
        """Where nothing is free, all three terms are zero."""
        usable = (free - hole) * (1 / _STEP)
        column = usable.astype(np.intp)
        at = row * self._steps + column
        low = self._strand.take(at)
        stranded = low + (self._strand.take(at + 1) - low) * (usable - column)
        broken = self._broken.take(row * (self._hw.width + 1) + idle)
        found: Floats = _HOLE * hole + stranded + _BROKEN * broken
        return found

    # --- Scoring one node: the same in plain numbers, many times faster for one ----------------------

    def one(self, room: Room, shape: Shape, node: int) -> tuple[float, int]:
        row = room.row(node)
        known = self._known.get(node)
        if known is None or known.row is not row:
            known = self._known[node] = self._numbers(node, row)
        left = row[0] - shape.cpus_milli
        cpu_row = self._row_ats[node] + left // self._cpu_step
        if not shape.shares_gpu:
            hole = known.hole - shape.gpus * self._holes[self._hole_ats[node][0] + MILLI]
            free = known.free - shape.gpus * MILLI
            after, device = self._waste_of(cpu_row, free, hole, known.idle - shape.gpus), 0
        else:
            after, device, free = self._best_device(shape, node, known, cpu_row)
        return after - known.waste + left * self._per_cpu + free * self._per_gpu, device

    def _best_device(self, shape: Shape, node: int, known: _Node, cpu_row: int) -> tuple[float, int, int]:
        """Waste after, device, and what is free after, for the device that is best."""
        best, device, free = math.inf, 0, 0
        tried: set[int] = set()
        needs, offsets, holes = (
            device_needs(self._hw, node, shape),
            self._hole_ats[node],
            self._holes,
        )
        for g, have in enumerate(known.row[3]):
            need = needs[g]
            if not need or have < need or (have in tried and offsets[g] == offsets[0]):
                continue
            tried.add(have)
            hole = known.hole - holes[offsets[g] + have] + holes[offsets[g] + have - need]
            idle = known.idle - (have == MILLI)
            waste = self._waste_of(cpu_row, known.free - need, hole, idle) + have * _TIGHTER
            if waste < best:
                best, device, free = waste, g, known.free - need
        return best, device, free

    def _numbers(self, node: int, row: FreeRow) -> _Node:
        gpu = row[3]
        hole = sum([self._holes[at + have] for at, have in zip(self._hole_ats[node], gpu, strict=True)])
        free, idle = sum(gpu), gpu.count(MILLI)
        waste = self._waste_of(self._row_ats[node] + row[0] // self._cpu_step, free, hole, idle)
        return _Node(row, hole, idle, free, waste)

    def _waste_of(self, row: int, free: int, hole: float, idle: int) -> float:
        usable = (free - hole) * (1 / _STEP)
        column = int(usable)
        at = row * self._steps + column
        low = self._strands[at]
        stranded = low + (self._strands[at + 1] - low) * (usable - column)
        broken: float = self._brokens[row * (self._hw.width + 1) + idle]
        found: float = _HOLE * hole + stranded + _BROKEN * broken
        return found

    # --- Tables -------------------------------------------------------------------------------------

    def _build(self, mix: Mix) -> tuple[Floats, Floats, Floats]:
        """The three tables, by model."""
        kinds = mix.classes_by(self._class_of, _COVERS, always=lambda c: c.gpus > 1)
        asking = [(c, part) for c, part in kinds if c.gpus]
        total = sum(part for _, part in asking) or 1.0
        popular = [(c, part / total) for c, part in asking]
        made: dict[tuple[bool, ...], tuple[Floats, Floats, Floats]] = {}
        tables = []
        for model in self._hw.models:
            allowed = tuple(not c.models or model in c.models for c, _ in popular)
            if allowed not in made:
                here = [entry for entry, ok in zip(popular, allowed, strict=True) if ok]
                made[allowed] = (self._hole_table(here), self._strand_table(here), self._broken_table(here))
            tables.append(made[allowed])
        holes, strands, broken = (np.stack(table) for table in zip(*tables, strict=True))
        return holes, strands, broken

    def _class_of(self, shape: Shape) -> _Class:
        milli = shape.gpu_milli
        if shape.gpus and not milli:  # asked by memory: its share of the largest device
            most = max(int(self._hw.gpu_memory.max()), 1)
            milli = min(-(-shape.gpu_memory_bytes * MILLI // most), MILLI)
        return _Class(shape.cpus_milli, shape.gpus, milli, shape.gpu_models)

    @staticmethod
    def _hole_table(popular: list[tuple[_Class, float]]) -> Floats:
        by_share: dict[int, float] = {}
        for c, part in popular:
            if c.gpus == 1:
                by_share[c.milli] = by_share.get(c.milli, 0.0) + part
        shares = np.array(sorted(by_share), np.int64)
        parts = np.array([by_share[s] for s in sorted(by_share)])
        hole = np.arange(MILLI + 1, dtype=float)
        for g in range(1, MILLI + 1):
            fit = int(np.searchsorted(shares, g, "right"))
            if fit:
                then = hole[g - shares[:fit]]
                weight = parts[:fit] * np.exp(-then / _CHOOSY)
                none = np.exp(-_OFFERS * parts[:fit].sum())
                hole[g] = none * g + (1 - none) * (weight @ then) / weight.sum()
        return np.round(hole * _GRAIN) / _GRAIN

    def _strand_table(self, popular: list[tuple[_Class, float]]) -> Floats:
        rows, columns = self._rows, self._steps
        ones = [(c, part) for c, part in popular if c.gpus == 1]
        strand = np.zeros((rows, columns))
        for u in range(1, columns):
            come, sums, weights = np.zeros(rows), np.zeros(rows), np.zeros(rows)
            for c, part in ones:
                low = (c.cpus + self._cpu_step // 2) // self._cpu_step
                if low >= rows:
                    continue
                column = min(max(int(u - c.milli / _STEP + 0.5), 0), u - 1)
                then = strand[: rows - low, column]
                weight = part * np.exp(-then / _NODE_CHOOSY)
                come[low:] += part
                sums[low:] += weight * then
                weights[low:] += weight
            none = np.exp(-_NODE_OFFERS * come)
            filled = none * u * _STEP + (1 - none) * sums / np.maximum(weights, 1e-300)
            strand[:, u] = np.where(weights > 0, filled, u * _STEP)
        return strand

    def _broken_table(self, popular: list[tuple[_Class, float]]) -> Floats:
        cpus = np.arange(self._rows)[:, None] * self._cpu_step
        idle = np.arange(self._hw.width + 1)[None]
        broken = np.zeros((cpus.size, idle.size))
        for c, part in popular:
            if c.gpus > 1:
                fit = np.minimum(idle // c.gpus, cpus // max(c.cpus, 1))
                broken += part * MILLI * (idle - c.gpus * fit)
        return broken
