"""A gang of unlike parts, as Slurm has it: a heterogeneous job, of one component for each run of like parts.

Slurm starts the components together or not at all, under numbers of their own. The first of them leads: it
has the script, and what is done to it is done to all. Each component gets nodes of its own. So unlike parts
can't sit on one node: where Muster had put them on one, Slurm finds another for those that come later. How
close components are to each other can't be said. And only Slurm's backfill starts them.
"""

from collections.abc import Sequence
from itertools import groupby

import msgspec

from muster.model.events import Seat
from muster.model.job import Gang, Job, Shape, Together
from muster.model.units import MILLI

_MOST = 128  # components that Slurm takes of one job
_ONE_PLACE = frozenset((Together.RACK, Together.SWITCH))


class Component(msgspec.Struct, frozen=True):
    """Like parts whose ranks follow each other, and the seats that were chosen for them, if any were."""

    shape: Shape
    count: int
    seats: tuple[Seat, ...] = ()

    @property
    def cpus(self) -> int:
        """Of each part: Slurm gives whole ones."""
        return max(1, -(-self.shape.cpus_milli // MILLI))


def components_of(gang: Gang, seats: Sequence[Seat] = ()) -> tuple[Component, ...]:
    """In the order of ranks. Who would share a node with one before it has no seats."""
    left, taken = list(seats), set[str]()
    found = []
    for shape, parts in groupby(gang.parts, lambda part: part.shape):
        count = sum(part.count for part in parts)
        chosen = [seat for seat in left if seat.shape == shape][:count]
        for seat in chosen:
            left.remove(seat)
        nodes = {seat.node for seat in chosen}
        found.append(Component(shape, count, tuple(chosen) if nodes.isdisjoint(taken) else ()))
        taken |= nodes
    return tuple(found)


def why_no_shape(job: Job, node_count: int, *, places: bool) -> str | None:
    """Why Slurm has no way to run what it asks for; None: it has. ``places``: Muster says on which nodes."""
    gang = job.gang
    if any(part.shape.shares_gpu for part in gang.parts):
        return "it asks for a share of a GPU, and Slurm gives only whole ones: ask for 1"
    kinds = len(components_of(gang))
    if kinds == 1:
        return None
    if gang.together is Together.NODE or (gang.together in _ONE_PLACE and not places):
        return (
            f"its unlike parts are to be on one {gang.together}, and Slurm places each kind by itself, "
            "on other nodes than the rest: make them alike, or let them be anywhere"
        )
    if kinds > _MOST:
        return f"it has {kinds} kinds of parts, and Slurm takes {_MOST} at most: order like parts together"
    if node_count and kinds > node_count:
        return (
            f"it has {kinds} kinds of parts, and Slurm gives each kind nodes of its own, of which there are "
            f"{node_count} here: make some of them alike"
        )
    return None
