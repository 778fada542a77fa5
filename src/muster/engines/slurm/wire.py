"""An answer's bytes → the parts of it that Muster uses, in the names of the newest version.

Only those fields are decoded: an answer of ten thousand jobs has a hundred megabytes, most of it is
passed over. First the answer is taken apart into its records, which finds one that breaks off anywhere (it
is no answer); then whoever reads decodes those that it has not read before. Nothing is demanded of a field
but to be JSON, as what it holds differs by version; only an id must be one.
"""

from typing import Any, TypeVar

import msgspec

from muster.engines.slurm.errors import BadAnswer, fault
from muster.engines.slurm.keys import KNOWN_KEYS
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.versions import Version, check_known, of_meta

_NOTHING = msgspec.Raw(b"null")


class WireJob(msgspec.Struct, gc=False):
    """A record of ``squeue --json``."""

    job_id: int
    job_state: Any = None
    account: Any = None
    admin_comment: Any = None
    array_job_id: Any = None
    array_task_id: Any = None
    array_task_string: Any = None
    batch_host: Any = None
    comment: Any = None
    current_working_directory: Any = None
    dependency: Any = None
    derived_exit_code: msgspec.Raw = _NOTHING
    eligible_time: Any = None
    end_time: Any = None
    exit_code: msgspec.Raw = _NOTHING
    extra: Any = None
    features: Any = None
    gres_detail: Any = None
    het_job_id: Any = None
    het_job_offset: Any = None
    job_resources: msgspec.Raw = _NOTHING
    name: Any = None
    node_count: Any = None
    nodes: Any = None
    partition: Any = None
    preempt_time: Any = None
    priority: Any = None
    qos: Any = None
    requeue: Any = None
    required_nodes: Any = None
    restart_cnt: Any = None
    resv_name: Any = None
    scheduled_nodes: Any = None
    standard_output: Any = None
    start_time: Any = None
    state_description: Any = None
    state_reason: Any = None
    stdout_expanded: Any = None
    submit_time: Any = None
    suspend_time: Any = None
    time_limit: Any = None
    tres_alloc_str: Any = None
    tres_req_str: Any = None
    user_id: Any = None
    user_name: Any = None
    wckey: Any = None


class WireNode(msgspec.Struct, gc=False):
    """A record of ``scontrol show node --json``, or of 22.05's ``sinfo --json``."""

    name: str
    state: Any = None
    state_flags: Any = None  # of 22.05
    active_features: Any = None
    address: Any = None
    alloc_cpus: Any = None
    alloc_memory: Any = None
    cpu_load: Any = None
    cpus: Any = None
    features: Any = None
    free_mem: Any = None
    free_memory: Any = None  # of 22.05
    gres: Any = None
    gres_used: Any = None
    partitions: Any = None
    real_memory: Any = None
    reason: Any = None
    reason_changed_at: Any = None
    reason_set_by_user: Any = None
    slurmd_version: Any = None  # of 22.05
    version: Any = None
    weight: Any = None


class WireAttempt(msgspec.Struct, gc=False):
    """A record of ``sacct --json``."""

    job_id: int
    account: Any = None
    array: Any = None
    comment: Any = None
    derived_exit_code: msgspec.Raw = _NOTHING
    exit_code: msgspec.Raw = _NOTHING
    het: Any = None
    kill_request_user: Any = None
    name: Any = None
    nodes: Any = None
    partition: Any = None
    qos: Any = None
    restart_cnt: Any = None
    state: Any = None
    time: Any = None
    tres: Any = None
    user: Any = None


class _Jobs(msgspec.Struct):
    jobs: list[msgspec.Raw] | None = None
    meta: Any = None
    errors: Any = None


class _Nodes(msgspec.Struct):
    nodes: list[msgspec.Raw] | None = None
    sinfo: list[dict[str, Any]] | None = None
    meta: Any = None
    errors: Any = None


class Answer(msgspec.Struct):
    """The records of an answer, each still as it was written, and the version that they are from."""

    version: Version
    records: list[msgspec.Raw]


_JOBS = msgspec.json.Decoder(_Jobs)
_NODES = msgspec.json.Decoder(_Nodes)
_JOB = msgspec.json.Decoder(WireJob)
_NODE = msgspec.json.Decoder(WireNode)
_ATTEMPT = msgspec.json.Decoder(WireAttempt)
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
Decoded = TypeVar("Decoded")


def split_jobs(answer: bytes, notices: Notices, *, stderr: str = "") -> Answer:
    """Of squeue; ``decode_job`` reads one."""
    whole = _decoded(_JOBS, answer, "squeue")
    return _answer(whole, whole.jobs, "squeue", notices, stderr)


def decode_job(record: bytes) -> WireJob:
    return _decoded(_JOB, record, "squeue")


def decode_attempts(answer: bytes, notices: Notices, *, stderr: str = "") -> list[WireAttempt]:
    whole = _decoded(_JOBS, answer, "sacct")
    found = _answer(whole, whole.jobs, "sacct", notices, stderr)
    return [_decoded(_ATTEMPT, bytes(record), "sacct") for record in found.records]


def decode_nodes(answer: bytes, notices: Notices, *, stderr: str = "") -> tuple[Version, list[WireNode]]:
    """Of either shape: where nodes are grouped, each gets the record that its group implies."""
    whole = _decoded(_NODES, answer, "sinfo")
    if whole.nodes is None and whole.sinfo is not None:
        return _answer(whole, [], "sinfo", notices, stderr).version, _by_node(whole.sinfo)
    found = _answer(whole, whole.nodes, "sinfo", notices, stderr)
    return found.version, [_decoded(_NODE, bytes(record), "sinfo") for record in found.records]


def _decoded(decoder: msgspec.json.Decoder[Decoded], said: bytes, command: str) -> Decoded:
    try:
        return decoder.decode(said)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        mended = _as_unicode(said)
        if mended is None:
            raise _broken(command, said, wrong) from None
    try:
        return decoder.decode(mended)
    except msgspec.DecodeError as wrong:
        raise _broken(command, said, wrong) from None


def _as_unicode(said: bytes) -> bytes | None:
    """A job's name may be any bytes: one bad name must not hide all jobs. None: that is not what is wrong."""
    try:
        said.decode()
    except UnicodeDecodeError:
        return said.decode(errors="replace").encode()
    return None


def _broken(command: str, answer: bytes, wrong: Exception) -> BadAnswer:
    if not answer.strip():
        return BadAnswer(command, "it is empty")
    if isinstance(wrong, msgspec.ValidationError):
        return BadAnswer(command, f"it is of another shape: {wrong}")
    return BadAnswer(command, f"it breaks off or is no JSON: {wrong}")


def _answer(
    whole: _Jobs | _Nodes, records: list[msgspec.Raw] | None, command: str, notices: Notices, stderr: str
) -> Answer:
    if whole.errors:  # 22.05 exits 0 and answers an empty list when the controller is down
        raise fault(command, 0, _error_words(whole.errors), stderr)
    if records is None:
        raise BadAnswer(command, "it has no list of records")
    version = of_meta(whole.meta, command)
    check_known(version, notices)
    if records and notices.first("keys", f"{command} {version}"):
        _check_keys(command, bytes(records[0]), notices)
    return Answer(version, records)


def _error_words(errors: object) -> str:
    try:
        return msgspec.json.encode(errors).decode()
    except (TypeError, ValueError):
        return str(errors)


def _check_keys(command: str, record: bytes, notices: Notices) -> None:
    """Once for each command and version: the records of an answer all have the same keys."""
    for key in _decoded(_KEYS, record, command):
        if key not in KNOWN_KEYS[command]:
            notices.note("key", key, command)


# --- Nodes in groups (sinfo since 23.11) ----------------------------------------------------------


def _by_node(groups: list[dict[str, Any]]) -> list[WireNode]:
    """A group is the nodes of one partition that are alike. A node of two partitions is in two of them."""
    nodes: dict[str, WireNode] = {}
    for group in groups:
        names = _at(group, "nodes", "nodes")
        for name in names if isinstance(names, list) else ():
            if not isinstance(name, str):
                continue
            node = nodes.get(name) or _of_group(name, group, alone=len(names) == 1)
            nodes[name] = node
            partition = _at(group, "partition", "name")
            if partition not in node.partitions:
                node.partitions.append(partition)
    return list(nodes.values())


def _of_group(name: str, group: dict[str, Any], *, alone: bool) -> WireNode:
    """Nodes of a group share state and partition. What else is told is a sum, or of the first."""
    node = WireNode(
        name,
        state=_at(group, "node", "state"),
        cpus=_same(_at(group, "cpus", "minimum"), _at(group, "cpus", "maximum")),
        real_memory=_same(_at(group, "memory", "minimum"), _at(group, "memory", "maximum")),
        weight=_same(_at(group, "weight", "minimum"), _at(group, "weight", "maximum")),
        partitions=[],
    )
    if alone:
        node.alloc_cpus = _at(group, "cpus", "allocated")
        node.alloc_memory = _at(group, "memory", "allocated")
        node.features = _at(group, "features", "total")
        node.active_features = _at(group, "features", "active")
        node.gres, node.gres_used = _at(group, "gres", "total"), _at(group, "gres", "used")
        node.reason, node.reason_changed_at = (
            _at(group, "reason", "description"),
            _at(group, "reason", "time"),
        )
        node.reason_set_by_user = _at(group, "reason", "user") or group.get("reason_set_by_user")
    return node


def _at(group: dict[str, Any], *path: str) -> Any:
    found: Any = group
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _same(least: Any, most: Any) -> Any:
    return least if least == most else None
