"""Where a job of Slurm's sits, as Muster says it: a seat for each part."""

from collections.abc import Sequence

from muster.engines.slurm.answers import SlurmJob, SlurmSeat
from muster.engines.slurm.components import Component, components_of
from muster.model.events import Seat
from muster.model.job import Job, Shape
from muster.model.units import MILLI


def seats_of(job: Job, found: SlurmJob, proposed: Sequence[Seat]) -> tuple[Seat, ...] | None:
    """The seats of its parts in the order of their ranks; None: Slurm does not say enough."""
    kinds, records = components_of(job.gang), found.components or (found,)
    if len(kinds) != len(records):
        return None
    each = [_of_component(kind, record, proposed) for kind, record in zip(kinds, records, strict=True)]
    return None if None in each else tuple(seat for some in each for seat in some or ())


def _of_component(kind: Component, found: SlurmJob, proposed: Sequence[Seat]) -> list[Seat] | None:
    """Those of one node together.

    How many parts sit on a node follows from its cpus. Which GPUs they have, some versions do not say of a
    job that is about to end: then it is those that were proposed, or the first.
    """
    told = [one for one in found.seats if one.cpus is None or one.cpus > 0]
    counts = [1] if kind.count == 1 and len(told) == 1 else [(one.cpus or 0) // kind.cpus for one in told]
    if sum(counts) != kind.count:
        counts = _spread(kind.count, len(told))
    if not told or sum(counts) != kind.count:
        return None
    return [
        seat
        for one, count in zip(told, counts, strict=True)
        for seat in _on(one, count, kind.shape, proposed)
    ]


def _spread(parts: int, nodes: int) -> list[int]:
    """A node may give more cpus than were asked, where only whole ones are given."""
    if not nodes:
        return []
    return [parts // nodes + (place < parts % nodes) for place in range(nodes)]


def _on(one: SlurmSeat, count: int, shape: Shape, proposed: Sequence[Seat]) -> list[Seat]:
    devices = _devices(one, count * shape.gpus, proposed)
    milli = MILLI if shape.gpus else 0
    each = [devices[place * shape.gpus : (place + 1) * shape.gpus] for place in range(count)]
    return [Seat(one.node, shape, tuple(some), milli) for some in each]


def _devices(one: SlurmSeat, wanted: int, proposed: Sequence[Seat]) -> list[int]:
    indices = [index for gpus in one.gpus or () for index in gpus.indices or ()]
    if len(indices) != wanted:
        indices = [device for seat in proposed if seat.node == one.node for device in seat.devices]
    return indices if len(indices) == wanted else list(range(wanted))
