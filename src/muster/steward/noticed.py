"""Which faults two looks at a node show: a device that no longer answers, errors that were not there."""

from collections.abc import Iterator, Mapping

from muster.model.job import JobId
from muster.model.usage import GpuReading, NodeReading
from muster.steward.faults import Fault, FaultKind


def new_faults(
    before: NodeReading | None, after: NodeReading, node: str, holders: Mapping[int, JobId]
) -> Iterator[Fault]:
    """What is new since the look before. ``holders``: who holds which device."""
    known = {gpu.index: gpu for gpu in before.gpus} if before is not None else {}
    for gpu in after.gpus:
        kind = _fault(known.get(gpu.index), gpu)
        if kind is not None:
            yield Fault(node, gpu.index, kind, after.at, holders.get(gpu.index))


def _fault(before: GpuReading | None, after: GpuReading) -> FaultKind | None:
    if after.lost:
        return None if before is not None and before.lost else FaultKind.DEVICE_LOST
    errors = None if before is None else before.uncorrected_errors
    if errors is None or after.uncorrected_errors is None or after.uncorrected_errors <= errors:
        return None  # what was there before we looked is nobody's whom we know
    return FaultKind.UNCORRECTED
