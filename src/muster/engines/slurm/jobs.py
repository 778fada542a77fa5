"""``squeue --json`` → jobs."""

import math
from functools import lru_cache

import msgspec

from muster.engines.slurm import hostlist, lift2205, lift2411
from muster.engines.slurm.answers import Gpus, SlurmJob, SlurmSeat, Tres
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.tres import read_gres, read_tres
from muster.engines.slurm.values import Reader
from muster.engines.slurm.versions import Version, chain
from muster.engines.slurm.wire import WireJob, decode_jobs
from muster.model.errors import BadInput
from muster.model.units import MIB, MINUTE

LIFTS = ((Version(24, 11), lift2205.lift_job), (Version(26, 5), lift2411.lift_job))


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
    found = decode_jobs(answer, notices, stderr=stderr)
    lifts = chain(found.version, LIFTS)
    reader = Reader(notices, "squeue")
    jobs = []
    for job in found.records:
        for lift in lifts:
            lift(job)
        jobs.append(_job(job, reader))
    return tuple(jobs)


def _job(job: WireJob, read: Reader) -> SlurmJob:
    text, instant, some = read.text, read.instant, read.some
    given = tres(text(job.tres_alloc_str), read)
    nodes = text(job.nodes)
    array, het = some(job.array_job_id), some(job.het_job_id)
    return SlurmJob(
        id=job.job_id,
        states=read.words(job.job_state),
        name=text(job.name),
        user=text(job.user_name),
        uid=read.whole(job.user_id),
        account=text(job.account),
        partition=text(job.partition),
        qos=text(job.qos),
        reason=text(job.state_reason),
        detail=text(job.state_description),
        array_id=array,
        array_task=read.whole(job.array_task_id) if array else None,
        array_tasks=text(job.array_task_string),
        het_id=het,
        het_offset=read.whole(job.het_job_offset) if het else None,
        submitted_at=instant(job.submit_time),
        eligible_at=instant(job.eligible_time),
        start_at=instant(job.start_time),
        end_at=instant(job.end_time),
        suspended_at=instant(job.suspend_time),
        preempted_at=instant(job.preempt_time),
        time_limit_seconds=minutes(job.time_limit, read),
        nodes=nodes,
        node_count=read.whole(job.node_count),
        required_nodes=text(job.required_nodes),
        scheduled_nodes=text(job.scheduled_nodes),
        batch_host=text(job.batch_host),
        asked=tres(text(job.tres_req_str), read),
        given=given,
        seats=_seats(job, nodes, given, read) if nodes else (),
        exit=read.exit(job.exit_code),
        derived_exit=read.exit(job.derived_exit_code),
        restarts=read.whole(job.restart_cnt),
        requeues=read.truth(job.requeue),
        priority=read.number(job.priority),
        comment=text(job.comment),
        admin_comment=text(job.admin_comment),
        extra=text(job.extra),
        wckey=text(job.wckey),
        dependency=text(job.dependency),
        reservation=text(job.resv_name),
        features=text(job.features),
        output=text(job.stdout_expanded),
        folder=text(job.current_working_directory),
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


def _seats(job: WireJob, nodes: str, given: Tres | None, read: Reader) -> tuple[SlurmSeat, ...]:
    try:
        names = hostlist.unfolded(nodes)
    except BadInput:
        read.odd(nodes)
        return ()
    held = _held(job, read)
    gpus = _gpus(job, len(names), given, read)
    if len(names) == 1:
        cpus, memory = held.get(names[0]) or (
            given.cpus if given else None,
            given.memory_bytes if given else None,
        )
        return (_seat(names[0], cpus, memory, gpus[0] if gpus is not None else None),)
    return tuple(
        _seat(name, *held.get(name, (None, None)), gpus[place] if gpus is not None else None)
        for place, name in enumerate(names)
    )


@lru_cache(maxsize=16384)  # jobs of one kind on one node are many
def _seat(node: str, cpus: int | None, memory_bytes: int | None, gpus: tuple[Gpus, ...] | None) -> SlurmSeat:
    return SlurmSeat(node, cpus, memory_bytes, gpus)


def _held(job: WireJob, read: Reader) -> dict[str, tuple[int | None, int | None]]:
    """Node → cpus and bytes."""
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
