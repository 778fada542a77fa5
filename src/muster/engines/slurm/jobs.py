"""``squeue --json`` → jobs.

Between two looks most jobs say the same, letter for letter. Of each record its hash is kept, and one that was
read before is not read again: what is made of it is the same value, too.
"""

import math

import msgspec

from muster.engines.slurm import hostlist, lift2205, lift2411
from muster.engines.slurm.answers import Gpus, SlurmJob, SlurmSeat, Tres
from muster.engines.slurm.bulk import uncollected
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.tres import read_gres, read_tres
from muster.engines.slurm.values import Reader
from muster.engines.slurm.versions import Lift, Version, chain
from muster.engines.slurm.wire import WireJob, decode_job, split_jobs
from muster.model.errors import BadInput
from muster.model.units import MIB, MINUTE

LIFTS = ((Version(24, 11), lift2205.lift_job), (Version(26, 5), lift2411.lift_job))
LIFTS_OF_SEATS = ((Version(24, 11), lift2205.lift_resources),)
"""Apart, since few need them: it is work to count cores."""


class _Count(msgspec.Struct, frozen=True, gc=False):
    count: int | None = None
    allocated: int | None = None


class _Allocation(msgspec.Struct, gc=False):
    name: str
    cpus: _Count = _Count()
    memory: _Count = _Count()


class _Allocations(msgspec.Struct, gc=False):
    allocation: list[_Allocation] = []


class _Resources(msgspec.Struct, gc=False):
    nodes: _Allocations | None = None


_RESOURCES = msgspec.json.Decoder(_Resources | None)
_NOTHING = b"null"


def read_jobs(answer: bytes, notices: Notices, *, stderr: str = "") -> tuple[SlurmJob, ...]:
    """All jobs of an answer, or a ``SlurmError``: a broken answer says nothing about any."""
    return Queue(notices).read(answer, stderr=stderr)


class Queue:
    """Reads one answer after the other."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._version: Version | None = None
        self._known: dict[int, SlurmJob] = {}  # those of the last answer, by the hash of what was written

    @uncollected()
    def read(self, answer: bytes, *, stderr: str = "") -> tuple[SlurmJob, ...]:
        """As ``read_jobs``. A hash has 64 bits: that two records share one is not to be lived to see."""
        found = split_jobs(answer, self._notices, stderr=stderr)
        before = self._known if found.version == self._version else {}
        record = _Record(found.version, Reader(self._notices, "squeue"))
        known: dict[int, SlurmJob] = {}
        jobs = []
        for raw in found.records:
            said = bytes(raw)
            mark = hash(said)
            known[mark] = job = before.get(mark) or record.read(said)
            jobs.append(job)
        self._version, self._known = found.version, known
        return tuple(jobs)


class _Record:
    """How a record of one version is read."""

    def __init__(self, version: Version, read: Reader) -> None:
        self._lifts, self._lifts_of_seats = chain(version, LIFTS), chain(version, LIFTS_OF_SEATS)
        self._read = read

    def read(self, said: bytes) -> SlurmJob:
        job = decode_job(said)
        for lift in self._lifts:
            lift(job)
        return _job(job, self._read, self._lifts_of_seats)


def _job(job: WireJob, read: Reader, lifts_of_seats: tuple[Lift, ...]) -> SlurmJob:
    text, instant, some = read.text, read.instant, read.some
    given = tres(text(job.tres_alloc_str), read)
    nodes = text(job.nodes)
    array, het = some(job.array_job_id), some(job.het_job_id)
    return SlurmJob(  # in the order of its fields: to name them all takes as long as to read ten
        job.job_id,
        read.words(job.job_state),
        text(job.name),
        text(job.user_name),
        read.whole(job.user_id),
        text(job.account),
        text(job.partition),
        text(job.qos),
        text(job.state_reason),
        text(job.state_description),
        array,
        read.whole(job.array_task_id) if array else None,
        text(job.array_task_string),
        het,
        read.whole(job.het_job_offset) if het else None,
        instant(job.submit_time),
        instant(job.eligible_time),
        instant(job.start_time),
        instant(job.end_time),
        instant(job.suspend_time),
        instant(job.preempt_time),
        minutes(job.time_limit, read),
        nodes,
        read.whole(job.node_count),
        text(job.required_nodes),
        text(job.scheduled_nodes),
        text(job.batch_host),
        tres(text(job.tres_req_str), read),
        given,
        _seats(job, nodes, given, read, lifts_of_seats) if nodes else (),
        read.exit(job.exit_code),
        read.exit(job.derived_exit_code),
        read.whole(job.restart_cnt),
        read.truth(job.requeue),
        read.number(job.priority),
        text(job.comment),
        text(job.admin_comment),
        text(job.extra),
        text(job.wckey),
        text(job.dependency),
        text(job.resv_name),
        text(job.features),
        text(job.stdout_expanded),
        text(job.current_working_directory),
    )


def minutes(value: object, read: Reader) -> float | None:
    """Slurm counts limits in minutes."""
    number = read.number(value)
    return number if number is None or number == math.inf else number * MINUTE


def tres(text: str, read: Reader) -> Tres | None:
    try:
        return read_tres(text)
    except BadInput:
        read.odd(text)
        return None


# --- What it holds on each node --------------------------------------------------------------------


Held = tuple[int | None, int | None]  # cpus and bytes


def _seats(
    job: WireJob, nodes: str, given: Tres | None, read: Reader, lifts: tuple[Lift, ...]
) -> tuple[SlurmSeat, ...]:
    try:
        names = hostlist.unfolded(nodes)
    except BadInput:
        read.odd(nodes)
        return ()
    gpus = _gpus(job, len(names), given, read)
    in_all = (given.cpus, given.memory_bytes) if given else (None, None)
    if len(names) == 1 and None not in in_all:  # then nobody need count cores
        return (SlurmSeat(names[0], *in_all, gpus[0] if gpus is not None else None),)
    for lift in lifts:
        lift(job)
    held = _held(job, read)
    otherwise = in_all if len(names) == 1 else (None, None)
    return tuple(
        SlurmSeat(name, *held.get(name, otherwise), gpus[place] if gpus is not None else None)
        for place, name in enumerate(names)
    )


def _held(job: WireJob, read: Reader) -> dict[str, Held]:
    """By node."""
    if job.job_resources == _NOTHING:
        return {}
    try:
        resources = _RESOURCES.decode(job.job_resources)
    except msgspec.DecodeError:
        read.odd("job_resources of another shape")
        return {}
    if resources is None or resources.nodes is None:
        return {}
    return {
        one.name: (one.cpus.count, None if one.memory.allocated is None else one.memory.allocated * MIB)
        for one in resources.nodes.allocation
    }


def _gpus(job: WireJob, nodes: int, given: Tres | None, read: Reader) -> list[tuple[Gpus, ...]] | None:
    """Node by node, as they are listed. None: not said, as of a job that is over or is just leaving."""
    if given is not None and not given.gpus:
        return [()] * nodes
    detail = job.gres_detail
    if not isinstance(detail, list) or len(detail) != nodes:
        return None
    try:
        return [read_gres(read.text(one)) for one in detail]
    except BadInput:
        read.odd(detail)
        return None
