"""The least that can be left unallocated: a bound on what any placement could do, for comparison.

Whoever knew all arrivals in advance, and yet had to place everything that comes until 90 % of the
GPUs were asked for (or the most that fits, where that is less), would leave at least this much. It
is a linear program over *patterns*: how many shares of each size one device holds. So it is exact
about how shares combine on a device, and relaxed about the rest: parts may be split, the cpus of
equal nodes are pooled, memory is free. Patterns are too many to list; they are generated where the
prices of the program (its duals) show that one would pay, which is a knapsack per type of node.

Needs scipy, which only the bench uses.
"""

import importlib
import importlib.util
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from muster.model.job import Shape
from muster.model.node import Node
from muster.model.room import Floats
from muster.model.units import MILLI

_MUST_PLACE = (0.9, 0.85, 0.8, 0.7, 0.6, 0.0)  # of the GPUs; the first that is possible counts
_UNPLACED = 20.0  # the price of leaving out a part that must be placed: more than any part is worth
_PAYS = 1e-6  # a pattern that gains less than this would not change the outcome
_MOST_ROUNDS = 100


def is_available() -> bool:
    return importlib.util.find_spec("scipy") is not None


def gpus_left(nodes: Sequence[Node], arrivals: Sequence[Shape]) -> float:
    """GPUs that stay unallocated in the best case."""
    total_milli = sum(len(node.devices) for node in nodes) * MILLI
    arrived = np.cumsum([shape.asked().gpus_milli for shape in arrivals])
    for part in _MUST_PLACE:
        must = int(np.searchsorted(arrived, part * total_milli, "right")) if part else 0
        placed = _Program(nodes, arrivals, must).most_placed()
        if placed is not None:
            return total_milli / MILLI - placed
    raise AssertionError("nothing has to be placed, and yet nothing can be")


class _Type(NamedTuple):
    """Nodes that are equal here."""

    cpus_milli: int
    gpus: int
    model: str

    @classmethod
    def of(cls, node: Node) -> "_Type":
        model = node.devices[0].model if node.devices else ""
        return cls(node.cpus_milli, len(node.devices), model)

    def suits(self, kind: Shape) -> bool:
        allowed = not kind.gpu_models or self.model in kind.gpu_models
        return allowed and self.gpus >= kind.gpus and self.cpus_milli >= kind.cpus_milli


class _Program:
    """Which parts of each kind go to which type of node, on devices of which pattern.

    Rows are limits: for each kind how many there are, and how many must be placed; for each type
    of node its devices, its cpus, and for each size of share the room that its patterns offer.
    """

    def __init__(self, nodes: Sequence[Node], arrivals: Sequence[Shape], must: int) -> None:
        counted = [msgspec.structs.replace(shape, memory_bytes=0) for shape in arrivals]
        there, due = Counter(counted), Counter(counted[:must])
        self._types = Counter(map(_Type.of, nodes))
        self._kinds = [kind for kind in there if any(t.suits(kind) for t in self._types)]
        self._sizes = sorted({kind.gpu_milli for kind in self._kinds if kind.shares_gpu})
        self._limits = [float(there[kind]) for kind in self._kinds]
        self._limits += [-float(due[kind]) for kind in self._kinds]
        for kind, count in self._types.items():
            self._limits += [kind.gpus * count, kind.cpus_milli / MILLI * count]
            self._limits += [0.0] * len(self._sizes)
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._amounts: list[float] = []
        self._costs: list[float] = []
        self._patterns: set[tuple[int, ...]] = set()
        self._add_parts()
        for at, size in enumerate(self._sizes):
            self._add_pattern(tuple(MILLI // size * (s == at) for s in range(len(self._sizes))))

    def most_placed(self) -> float | None:
        """GPUs; None if what must be placed can't be."""
        for _ in range(_MOST_ROUNDS):
            solved = self._solve()
            new = self._paying(solved) - self._patterns
            if not new:
                break
            for pattern in sorted(new):
                self._add_pattern(pattern)
        unplaced = solved.x[self._slack : self._slack + len(self._kinds)].sum()
        return None if unplaced > _PAYS else -float(solved.fun)

    # --- Columns ------------------------------------------------------------------------------------

    def _add_parts(self) -> None:
        """Parts of a kind on a type of node; then, at a price, parts left out that must be placed."""
        many = len(self._kinds)
        for t, node in enumerate(self._types):
            devices = self._first_row(t)
            for k, kind in enumerate(self._kinds):
                if node.suits(kind):
                    takes = [(k, 1.0), (many + k, -1.0), (devices + 1, kind.cpus_milli / MILLI)]
                    if kind.shares_gpu:
                        takes.append((devices + 2 + self._sizes.index(kind.gpu_milli), 1.0))
                    else:
                        takes.append((devices, float(kind.gpus)))
                    self._add(-kind.asked().gpus_milli / MILLI, takes)
        self._slack = len(self._costs)
        for k in range(many):
            self._add(_UNPLACED, [(many + k, -1.0)])

    def _add_pattern(self, pattern: tuple[int, ...]) -> None:
        """Devices of each type that hold these shares."""
        self._patterns.add(pattern)
        for t in range(len(self._types)):
            devices = self._first_row(t)
            offers = [(devices + 2 + s, -float(count)) for s, count in enumerate(pattern) if count]
            self._add(0.0, [(devices, 1.0), *offers])

    def _add(self, cost: float, takes: Iterable[tuple[int, float]]) -> None:
        for row, amount in takes:
            self._rows.append(row)
            self._columns.append(len(self._costs))
            self._amounts.append(amount)
        self._costs.append(cost)

    def _first_row(self, t: int) -> int:
        return 2 * len(self._kinds) + t * (2 + len(self._sizes))

    # --- Solving ------------------------------------------------------------------------------------

    def _solve(self) -> Any:
        shape = (len(self._limits), len(self._costs))
        sparse = importlib.import_module("scipy.sparse")
        limited = sparse.csr_matrix((self._amounts, (self._rows, self._columns)), shape=shape)
        optimize = importlib.import_module("scipy.optimize")
        return optimize.linprog(self._costs, A_ub=limited, b_ub=self._limits, method="highs")

    def _paying(self, solved: Any) -> set[tuple[int, ...]]:
        """For each type of node the best pattern at these prices, where it is worth its device."""
        prices = -solved.ineqlin.marginals[2 * len(self._kinds) :]
        prices = prices.reshape(len(self._types), 2 + len(self._sizes))
        worth, taken = _knapsacks(self._sizes, prices[:, 2:])
        paying = np.flatnonzero(worth > prices[:, 0] + _PAYS)
        return {tuple(taken[t].tolist()) for t in paying}


def _knapsacks(sizes: Sequence[int], prices: Floats) -> tuple[Floats, Any]:
    """The most that shares on one device are worth, and how many of each size; a row per type."""
    unit = math.gcd(MILLI, *sizes)
    best = np.zeros((MILLI // unit + 1, len(prices)))
    taken = np.zeros((*best.shape, len(sizes)), int)
    for room in range(1, len(best)):
        best[room], taken[room] = best[room - 1], taken[room - 1]
        for s, size in enumerate(sizes):
            rest = room - size // unit
            if rest >= 0:
                better = best[rest] + prices[:, s] > best[room] + _PAYS / MILLI
                best[room, better] = best[rest, better] + prices[better, s]
                taken[room, better] = taken[rest, better]
                taken[room, better, s] += 1
    return best[-1], taken[-1]
