"""What ``/metrics`` tells of now: jobs, seats, nodes, GPUs, findings; values in, figures out.

Waiting jobs are counted by lanes, so that a long queue costs little. What was read too long ago is not known
any more, and left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TypeVar, get_args

from muster.model.events import Outcome
from muster.model.job import JobId
from muster.model.ledger import devices_of
from muster.model.node import Device, Health, Node
from muster.model.resources import NOTHING, Resources
from muster.model.snapshot import Running, Waiting
from muster.model.state import State
from muster.model.tenancy import ROOT, Team
from muster.model.units import MILLI
from muster.model.usage import GpuReading, NodeReading, Sample
from muster.server import metrics as m
from muster.server.prometheus import Figure, Labels
from muster.steward.findings import Finding, Kind
from muster.store.fold import Fold

What = TypeVar("What", State, Outcome)

_MOST_INVENTED = 100  # teams that nobody declared, and that have figures of their own
_TOP, _OTHERS = "/", "/others"  # no team is called so: a name has no slashes
_NOT_READ = Sample(job="", attempt=0, at=0.0, seconds=0.0)
_LIVING = tuple(state for state in State if state is not State.ENDED)


class TeamNames:
    """What teams are called on the page.

    The root has no name, which Prometheus would take for no label: it is ``/``. Where no team is declared
    people may write any, without end; those beyond the first hundred are summed up.
    """

    def __init__(self, declared: Callable[[], Mapping[str, Team]]) -> None:
        self._declared = declared
        self._invented: set[str] = set()
        self.known: set[str] = set()

    def __call__(self, team: str) -> str:
        name = self._name(team)
        self.known.add(name)
        return name

    def _name(self, team: str) -> str:
        if team == ROOT:
            return _TOP
        if team in self._declared() or team in self._invented:
            return team
        if len(self._invented) >= _MOST_INVENTED:
            return _OTHERS
        self._invented.add(team)
        return team


# --- Jobs -----------------------------------------------------------------------------------------------


def of_jobs(
    fold: Fold, ended: Mapping[tuple[str, Outcome], int], names: TeamNames, now: float
) -> Iterator[Figure]:
    counts = Counter((one.job.team, one.state) for one in (*fold.running.values(), *fold.lined_up))
    for (team, held), count in fold.apart.items():
        counts[team, State.HELD if held else State.QUEUED] += count
    queued, oldest = Counter[str](), dict[str, float]()
    for team, (count, since) in _queued(fold).items():
        counts[team, State.QUEUED] += count
        queued[names(team)] += count
        oldest[names(team)] = max(now - since, oldest.get(names(team), 0.0))
    jobs, ends = _by_name(counts, names), _by_name(ended, names)
    for name in names.known:
        yield from ((m.JOBS, (name, state), jobs[name, state]) for state in _LIVING)
        yield from ((m.ENDED, (name, outcome), ends[name, outcome]) for outcome in Outcome)
        yield m.QUEUE, (name,), queued[name]
        yield m.OLDEST, (name,), oldest.get(name, 0.0)


def _by_name(counts: Mapping[tuple[str, What], int], names: TeamNames) -> Counter[Labels]:
    named = Counter[Labels]()
    for (team, what), count in counts.items():
        named[names(team), what] += count
    return named


def _queued(fold: Fold) -> dict[str, tuple[int, float]]:
    """How many of each team wait for room, and since when the first of them does."""
    found: dict[str, tuple[int, float]] = {}
    for lane, some in fold.lanes.items():
        count, since = found.get(lane.team, (0, inf))
        first = some[0]
        at = first.queued_at if first.vacated_at is None else _waits_since(some)
        found[lane.team] = (count + len(some), min(since, at))
    return found


def _waits_since(lane: Sequence[Waiting]) -> float:
    """Who was made to leave stands before those that came later, and has waited for less: look past them."""
    since = inf
    for waiting in lane:
        since = min(since, waiting.queued_at)
        if waiting.vacated_at is None:
            break
    return since


def of_findings(
    findings: Mapping[JobId, tuple[Finding, ...]], running: Mapping[JobId, Running]
) -> Iterator[Figure]:
    kinds = Counter(finding.kind for job, some in findings.items() if job in running for finding in some)
    return ((m.FINDINGS, (kind,), kinds[kind]) for kind in get_args(Kind))


# --- Held and used --------------------------------------------------------------------------------------


class _Seats:
    """What a team's jobs hold, how much of that is measured, and what they use of it."""

    def __init__(self) -> None:
        self.held = self.measured = NOTHING
        self.cpus: list[float | None] = []
        self.memory_bytes: list[float | None] = []
        self.gpus_milli: list[float | None] = []

    def take(self, running: Running, sample: Sample) -> None:
        held, devices, busy = running.held, devices_of(running.seats), sample.gpu_busy
        if len(busy) != len(devices):  # nobody knows which is which
            busy = (None,) * len(devices)
        gpus = [(part, device.milli) for part, device in zip(busy, devices, strict=True)]
        self.held += held
        self.measured += Resources(
            0 if sample.cpus is None else held.cpus_milli,
            0 if sample.memory_bytes is None else held.memory_bytes,
            sum(milli for part, milli in gpus if part is not None),
        )
        self.cpus.append(sample.cpus)
        self.memory_bytes.append(sample.memory_bytes)
        self.gpus_milli += [None if part is None else part * milli for part, milli in gpus]

    def figures(self, team: Labels) -> Iterator[Figure]:
        held, measured, gpus_milli = self.held, self.measured, _known(self.gpus_milli)
        yield m.HELD_CPUS, team, held.cpus_milli / MILLI
        yield m.HELD_MEMORY, team, held.memory_bytes
        yield m.HELD_GPUS, team, held.gpus_milli / MILLI
        yield m.MEASURED_CPUS, team, measured.cpus_milli / MILLI
        yield m.MEASURED_MEMORY, team, measured.memory_bytes
        yield m.MEASURED_GPUS, team, measured.gpus_milli / MILLI
        yield m.USED_CPUS, team, _known(self.cpus)
        yield m.USED_MEMORY, team, _known(self.memory_bytes)
        yield m.USED_GPUS, team, None if gpus_milli is None else gpus_milli / MILLI


def _known(values: Sequence[float | None]) -> float | None:
    """The sum of those that are known. Where there are some and none is, so is the sum not."""
    known = [value for value in values if value is not None]
    return None if values and not known else sum(known)


def of_seats(
    running: Iterable[Running], sample_of: Callable[[Running], Sample | None], names: TeamNames
) -> Iterator[Figure]:
    seats: defaultdict[str, _Seats] = defaultdict(_Seats)
    for one in running:
        seats[names(one.job.team)].take(one, sample_of(one) or _NOT_READ)
    for name in names.known:
        yield from seats[name].figures((name,))


# --- Nodes and GPUs -------------------------------------------------------------------------------------


def of_node(node: Node) -> Iterator[Figure]:
    yield from ((m.NODE_HEALTH, (node.name, health), int(node.health is health)) for health in Health)
    yield m.NODE_CAPACITY_CPUS, (node.name,), node.cpus_milli / MILLI
    yield m.NODE_CAPACITY_MEMORY, (node.name,), node.memory_bytes
    yield m.NODE_CAPACITY_GPUS, (node.name,), len(node.devices)


def of_reading(node: str, reading: NodeReading) -> Iterator[Figure]:
    yield m.NODE_CPU_BUSY, (node,), reading.cpu_seconds
    yield m.NODE_MEMORY_USED, (node,), reading.memory_used_bytes
    yield m.NODE_MEMORY_SIZE, (node,), reading.memory_total_bytes
    yield m.NODE_DISK_USED, (node,), reading.disk_used_bytes
    yield m.NODE_DISK_SIZE, (node,), reading.disk_total_bytes
    yield m.NODE_STALLED, (node, "cpu"), reading.cpu_stalled_seconds
    yield m.NODE_STALLED, (node, "memory"), reading.memory_stalled_seconds
    yield m.NODE_STALLED, (node, "io"), reading.io_stalled_seconds


def of_gpus(
    node: Node, readings: Sequence[GpuReading], held: Mapping[tuple[str, int], int], *, fresh: bool
) -> Iterator[Figure]:
    """Of each device that the node has or the meter shows. Who it is can be told from an old reading."""
    read = {gpu.index: gpu for gpu in readings}
    for index in sorted({*range(len(node.devices)), *read}):
        gpu = read.get(index, GpuReading(index=index))
        device = node.devices[index] if index < len(node.devices) else None
        labels = (node.name, str(index), gpu.uuid or "", gpu.name or (device.model if device else ""))
        if device is not None:
            yield from _of_device(device, labels, held.get((node.name, index), 0))
        if fresh and index in read:
            yield from _of_gpu(gpu, labels)


def _of_device(device: Device, labels: Labels, held_milli: int) -> Iterator[Figure]:
    yield m.GPU_HELD, labels, held_milli / MILLI
    yield m.GPU_HEALTHY, labels, int(device.healthy)


def _of_gpu(gpu: GpuReading, labels: Labels) -> Iterator[Figure]:
    yield m.GPU_LOST, labels, int(gpu.lost)
    yield m.GPU_BUSY, (*labels, gpu.metric or ""), gpu.busy
    yield m.GPU_MEMORY_USED, labels, gpu.memory_used_bytes
    yield m.GPU_MEMORY_SIZE, labels, gpu.memory_total_bytes
    yield m.GPU_POWER, labels, gpu.power_watts
    yield m.GPU_TEMPERATURE, labels, gpu.temperature_celsius
    yield m.GPU_ERRORS, labels, gpu.uncorrected_errors
    yield m.GPU_FOREIGN, labels, None if gpu.foreign is None else len(gpu.foreign)


def held_devices(running: Iterable[Running]) -> dict[tuple[str, int], int]:
    """How much of each device is granted, in thousandths."""
    held = Counter[tuple[str, int]]()
    for one in running:
        for device in devices_of(one.seats):
            held[device.node, device.device] += device.milli
    return held
