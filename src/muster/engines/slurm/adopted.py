"""A record of Slurm's queue as a Job of Muster's: ids, what it asks for, where it sits.

Ids can't collide with Muster's own numbers, and can be typed: ``s12`` is Slurm's job 12, ``s6_3`` task 3 of
its array 6, ``s12-2`` the second job that is called 12 there. The components of a heterogeneous job start
together or not at all, so they are one job, a gang of unlike parts, under the id of the first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

import msgspec

from muster.engines.slurm import hostlist
from muster.engines.slurm.answers import SlurmAttempt, SlurmJob, SlurmSeat, Tres
from muster.engines.slurm.naming import first_called
from muster.model.errors import BadInput
from muster.model.events import Seat
from muster.model.job import ArrayPlace, Gang, Job, JobId, Part, Shape
from muster.model.units import DAY, MILLI

ENGINE = "slurm"
MARK = "s"
_MOST_LETTERS = 128  # of a name
_A_YEAR_SECONDS = 365 * DAY
_MOST_PARTS = 10_000  # of what a waiting job asks for: each is looked at


class Unit(msgspec.Struct, frozen=True, gc=False):
    """What Muster takes for one job: a record, or those of a heterogeneous job, the leader first."""

    id: JobId
    records: tuple[SlurmJob, ...]

    @property
    def lead(self) -> SlurmJob:
        return self.records[0]


def id_of(record: SlurmJob | SlurmAttempt) -> JobId:
    """Of a record that stands for one job."""
    if record.array_id is not None and record.array_task is not None:
        return f"{MARK}{record.array_id}_{record.array_task}"
    own = record.id if isinstance(record, SlurmJob) else record.job
    return f"{MARK}{record.het_id or own}"


def array_of(record: SlurmJob) -> JobId:
    return f"{MARK}{record.array_id}"


def own_id(job_id: JobId) -> str:
    """As Slurm's commands want it: ``s6_3`` → ``6_3``."""
    return first_called(job_id).removeprefix(MARK)


def waiting_tasks(record: SlurmJob) -> tuple[int, ...]:
    """The tasks that one record of an array stands for."""
    try:
        return hostlist.numbers(record.array_tasks)
    except BadInput:
        return ()


def most_at_once(record: SlurmJob) -> int | None:
    """``2-4%2`` → 2."""
    limit = record.array_tasks.partition("%")[2]
    return int(limit) if limit.isdecimal() and int(limit) else None


def job_of(unit: Unit, *, team: str, submitted_at: float, held: bool) -> Job:
    """As if somebody had submitted it here; what it is for, nobody has said yet."""
    lead = unit.lead
    place = None
    if lead.array_id is not None and lead.array_task is not None:
        place = ArrayPlace(array_of(lead), lead.array_task, most_at_once(lead))
    return Job(
        id=unit.id,
        gang=_gang(unit),
        submitted_at=submitted_at,
        name=_name(lead),
        owner=lead.user or (str(lead.uid) if lead.uid is not None else ""),
        team=team,
        time_limit_seconds=limit_of(lead),
        array=place,
        held=held,
        adopted=ENGINE,
    )


def limit_of(record: SlurmJob) -> float | None:
    """A partition without a limit gives a year to who asks for no time: that is nobody's end."""
    limit = record.time_limit_seconds
    return None if limit is None or limit >= _A_YEAR_SECONDS else limit


def _name(record: SlurmJob) -> str:
    """A name may hold anything; here it stands in tables and in log lines."""
    said = record.name
    if not said.isprintable():
        said = "".join(letter if letter.isprintable() else " " for letter in said)
    return said.strip()[:_MOST_LETTERS] or f"slurm-{record.id}"


# --- What it asks for ------------------------------------------------------------------------------


def _gang(unit: Unit) -> Gang:
    return _gang_of(tuple((record.asked or record.given, record.node_count) for record in unit.records))


@lru_cache(maxsize=4096)  # jobs that ask for the same are many, and share what they ask for
def _gang_of(asked: tuple[tuple[Tres | None, int | None], ...]) -> Gang:
    shapes: Counter[Shape] = Counter()
    for amounts, nodes in asked:
        shapes.update(_shapes(amounts or Tres(), nodes))
    return Gang(tuple(Part(shape, count) for shape, count in shapes.items()))


def _shapes(asked: Tres, node_count: int | None) -> dict[Shape, int]:
    """One for each node. What it asks for in all is spread over them as evenly as it goes."""
    nodes = min(max(1, asked.nodes or node_count or 1), _MOST_PARTS)
    amounts = (asked.cpus or 0, asked.memory_bytes or 0, asked.gpus)
    kinds = tuple(sorted({name for name, _ in asked.gpu_types if name}))
    cuts = sorted({0, nodes, *(amount % nodes for amount in amounts)})  # where a share gets smaller by one
    shapes: Counter[Shape] = Counter()
    for first, end in pairwise(cuts):
        cpus, memory, gpus = (amount // nodes + (first < amount % nodes) for amount in amounts)
        shapes[_shape(cpus, memory, gpus, kinds)] += end - first
    return shapes


@lru_cache(maxsize=4096)
def _shape(cpus: int, memory_bytes: int, gpus: int, models: tuple[str, ...] = ()) -> Shape:
    return Shape(cpus * MILLI, memory_bytes, gpus, gpu_models=models if gpus else ())


# --- Where it sits ---------------------------------------------------------------------------------


class Devices:
    """Which GPUs are whose: Slurm does not always say, and then the lowest are taken that nobody has."""

    def __init__(self, counts: Mapping[str, int], units: Mapping[JobId, Unit]) -> None:
        self._counts, self._units = counts, units
        self._taken: dict[str, set[int]] | None = None

    def knows(self, node: str) -> bool:
        return node in self._counts

    def of(self, seat: SlurmSeat, unknown: int) -> tuple[int, ...]:
        """``unknown``: how many it has there, where the seat itself does not say."""
        most = self._counts[seat.node]
        if seat.gpus is None:
            return self._picked(seat.node, unknown, most)
        named: list[int] = []
        for gpus in seat.gpus:
            if gpus.indices is None:
                named += self._picked(seat.node, gpus.count, most)
            else:
                named += [index for index in gpus.indices if index < most]
        return tuple(sorted(set(named)))

    def _picked(self, node: str, count: int, most: int) -> tuple[int, ...]:
        if not count:
            return ()
        if self._taken is None:
            self._taken = _named(self._units.values())
        taken = self._taken.setdefault(node, set())
        free = [index for index in range(most) if index not in taken][:count]
        taken.update(free)
        return tuple(free)


def _named(units: Iterable[Unit]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for unit in units:
        for record in unit.records:
            for seat in record.seats if record.begun else ():
                indices = (index for gpus in seat.gpus or () for index in gpus.indices or ())
                found.setdefault(seat.node, set()).update(indices)
    return found


def seats_of(unit: Unit, devices: Devices) -> tuple[Seat, ...]:
    """On the nodes that are known; of others nothing can be held."""
    found: list[Seat] = []
    for record in unit.records:
        given = record.given or Tres()
        for place, seat in enumerate(record.seats):
            if devices.knows(seat.node):
                each, more = divmod(given.gpus, len(record.seats))
                found.append(_seat(seat, devices.of(seat, each + (place < more))))
    return tuple(found)


def _seat(seat: SlurmSeat, devices: tuple[int, ...]) -> Seat:
    shape = _shape(seat.cpus or 0, seat.memory_bytes or 0, len(devices))
    return Seat(seat.node, shape, devices, MILLI if devices else 0)
