"""The flat form that every source is read into: what somebody asked for, in base units.

``None`` is *not said*, so that one source can be laid over another without guessing.
"""

import msgspec

from muster.application.many import Indices
from muster.model.charter import Progress
from muster.model.job import Checkpoint, Priority, Together
from muster.model.run import Metrics, Notice


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, by whichever source."""

    name: str | None = None
    team: str | None = None
    priority: Priority | None = None
    gpus_milli: int | None = None  # below 1000: a share of one
    gpu_memory_bytes: int | None = None
    gpu_models: tuple[str, ...] | None = None
    cpus_milli: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    time_limit_seconds: float | None = None  # infinite: said to be without
    parts: int | None = None
    together: Together | None = None
    labels: tuple[str, ...] | None = None
    begin_at: float | None = None
    held: bool | None = None
    array: Indices | None = None
    sweep: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    after_ok: tuple[str, ...] | None = None
    after_any: tuple[str, ...] | None = None
    after_not_ok: tuple[str, ...] | None = None
    retries: int | None = None
    purpose: str | None = None
    success: tuple[str, ...] | None = None
    failure: tuple[str, ...] | None = None
    budget: str | None = None
    progress: tuple[Progress, ...] | None = None
    until: float | None = None
    effort: str | None = None
    owner: str | None = None
    cpu_cap: bool | None = None
    pids: int | None = None
    notice: Notice | None = None
    grace_seconds: float | None = None
    checkpoint: Checkpoint | None = None
    output: str | None = None
    log_bytes: int | None = None
    cwd: str | None = None
    metrics: Metrics | None = None
    right_size: bool | None = None  # ask for what the history of the same work advises


def laid_over(upper: Asked, lower: Asked) -> Asked:
    """What ``upper`` says, and where it says nothing, what ``lower`` does."""
    said = {f: v for f in Asked.__struct_fields__ if (v := getattr(upper, f)) is not None}
    return msgspec.structs.replace(lower, **said)
