"""A running job on the map: the boxes that it holds, and what it does there by its last sample."""

from collections.abc import Mapping
from typing import NamedTuple

from muster.model.ledger import devices_of
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.units import MILLI
from muster.model.usage import Sample
from muster.monitor.lately import Lately
from muster.server.seeing.places import Map
from muster.server.seeing.scene import Holder
from muster.steward.findings import Finding
from muster.steward.rules import Rules


class OnGpu(NamedTuple):
    """What a job does with one GPU."""

    share: float | None
    works: bool
    idle_since: float | None


class OnNode(NamedTuple):
    """What a job uses of one node; of a gang on several, what it uses is shared out as it is held."""

    cpus: float | None
    memory_bytes: float | None
    works: bool


class Holding:
    """A job that holds seats. What it holds stays as it is; what it does follows each sample."""

    def __init__(self, here: Map, running: Running, ahead_seconds: float, mark: str | None) -> None:
        self.running, self.mark, self._ahead_seconds = running, mark, ahead_seconds
        self.holder = _holder(running, ahead_seconds, is_undefended=mark is not None)
        self.words = str(self.holder)
        held = devices_of(running.seats)
        self._devices = tuple((here.box_of.get((one.node, one.device)), one.device) for one in held)
        boxes = zip(self._devices, held, strict=True)
        self.milli = {box: one.milli for (box, _), one in boxes if box is not None}
        self.on_node = _by_node(running, here)
        self.sample: Sample | None = None
        self.findings: tuple[Finding, ...] = ()
        self.gpus: dict[str, OnGpu] = {}  # by box
        self.nodes: dict[str, OnNode] = {}

    def measure(
        self, sample: Sample | None, lately: Lately | None, findings: tuple[Finding, ...], rules: Rules
    ) -> tuple[list[str], list[str]]:
        """The boxes of GPUs, and the nodes, of which something else is true by now."""
        self.sample, self.findings = sample, findings
        if sample is None:
            lately = None
        return self._on_gpus(lately, rules), self._on_nodes(sample, lately, rules)

    def _on_gpus(self, lately: Lately | None, rules: Rules) -> list[str]:
        busy = [] if lately is None else lately.gpu_busy
        if len(busy) != len(self._devices):  # nobody knows which is which
            busy = [None] * len(self._devices)
        is_still, changed = self.running.state is State.SUSPENDED, []
        for (box, device), share in zip(self._devices, busy, strict=True):
            if box is None:  # a node may come back with fewer
                continue
            works = not is_still and (share is None or share >= rules.gpu_busy)
            since = None if works else self._idle_since(device)
            now = OnGpu(None if share is None else round(share, 2), works, since)
            if self.gpus.get(box) != now:
                self.gpus[box] = now
                changed.append(box)
        return changed

    def _on_nodes(self, sample: Sample | None, lately: Lately | None, rules: Rules) -> list[str]:
        cpus = None if lately is None else lately.cpus
        memory = None if sample is None else sample.memory_bytes
        if self.gpus:
            works = any(one.works for one in self.gpus.values())
        else:
            works = _works(self.running, cpus, rules)
        held, many, changed = self.running.held, len(self.on_node), []
        for node, (cpus_milli, memory_bytes) in self.on_node.items():
            here = OnNode(
                _part(cpus, cpus_milli, held.cpus_milli, many),
                _part(memory, memory_bytes, held.memory_bytes, many),
                works,
            )
            if self.nodes.get(node) != here:
                self.nodes[node] = here
                changed.append(node)
        return changed

    def _idle_since(self, device: int) -> float | None:
        """By the wall, as the steward has found."""
        for found in self.findings:
            if found.kind == "idle" and (found.whole or device in found.devices):
                return found.since + self._ahead_seconds
        return None


def _holder(running: Running, ahead_seconds: float, *, is_undefended: bool) -> Holder:
    job = running.job
    since = running.placed_at if running.started_at is None else running.started_at
    return Holder(
        job.id,
        job.name,
        job.owner,
        job.team,
        job.effort,
        job.charter.purpose,
        since + ahead_seconds,
        job.charter.owner or job.owner,
        is_undefended,
    )


def _by_node(running: Running, here: Map) -> Mapping[str, tuple[int, int]]:
    """Cpus, in thousandths, and bytes of memory."""
    found: dict[str, tuple[int, int]] = {}
    for seat in running.seats:
        if seat.node in here.spots:
            cpus_milli, memory_bytes = found.get(seat.node, (0, 0))
            found[seat.node] = (cpus_milli + seat.shape.cpus_milli, memory_bytes + seat.shape.memory_bytes)
    return found


def _works(running: Running, cpus: float | None, rules: Rules) -> bool:
    """By its cpus, as the steward judges who has no GPUs: one thread at work is not idle."""
    if running.state is State.SUSPENDED:
        return False
    return cpus is None or cpus >= rules.cpus * min(MILLI, running.held.cpus_milli or MILLI) / MILLI


def _part(used: float | None, here: int, held: int, nodes: int) -> float | None:
    if used is None or nodes == 1:
        return used
    return used * here / held if held else None
