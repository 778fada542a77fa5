"""The steward looks at what runs, once a minute; what it finds is noted, told, or acted on, as the rules say.

What was done about a finding is in the journal (``Found``), so a restart warns nobody anew. A finding itself
is not: it follows from the minutes, which begin again; whoever was idle before a restart has to be so for a
while longer.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, get_args

from muster.model.events import Event, Found, Stopping, Suspended
from muster.model.job import JobId
from muster.model.message import Message
from muster.model.node import Health
from muster.model.plan import Action, Stop, Suspend
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.stewardship import Subject as About
from muster.model.stewardship import of_job
from muster.model.units import MINUTE
from muster.model.usage import NodeReading
from muster.server.metering import Metering
from muster.server.stewardship.telling import kind_of, of_finding
from muster.steward.faults import Fault, QuarantineRules, quarantine
from muster.steward.find import find, find_gpu_memory
from muster.steward.findings import Finding, Kind, Subject
from muster.steward.noticed import new_faults
from muster.steward.respond import Answer, Handled, Note, Step, StopIt, SuspendIt, Warn, respond
from muster.steward.rules import Rules
from muster.steward.watch import Watched
from muster.store.fold import Fold

_QUARANTINE = QuarantineRules()

_ACTS: dict[type[Step], str] = {Note: "note", Warn: "warn", SuspendIt: "suspend", StopIt: "stop"}


class Acting(Protocol):
    """What is needed of the service."""

    tell: Callable[[Message], None]

    def answered(self, about: About, kind: str, because: str) -> None: ...

    def note(self, event: Event, *actions: Action) -> None: ...

    def quarantine(self, node: str, device: int | None, because: str) -> None: ...


class Watching:
    """The steward's eyes on what runs."""

    def __init__(self, fold: Fold, metering: Metering, rules: Rules, acts: Acting) -> None:
        self._fold, self._metering, self.rules, self._acts = fold, metering, rules, acts
        self.faults: list[Fault] = []  # of the last while
        self._out: set[tuple[str, int]] = set()  # devices that are out of service
        self._read: dict[str, NodeReading] = {}  # of each node, when it was read last
        self._handled: tuple[Handled, ...] = tuple(_handled(fold.findings.values()))
        self._looked_at = 0.0
        self._lasting: list[Finding] = []  # idle and stuck, as of the last minute
        self.findings: dict[JobId, tuple[Finding, ...]] = {}  # as of the last look

    def look(self, now: float) -> None:
        """Look at the hardware, and at what runs; note what follows."""
        self._look_at_hardware(now)
        if not 0 <= now - self._looked_at < MINUTE:
            self._looked_at = now
            lasting = [f for watched in self._watched() for f in find(watched, self.rules, now)]
            self._lasting = [f for f in lasting if f.kind != "gpu-memory"]
        self._lasting = list(filter(self._is_there, self._lasting))
        found = [*self._lasting, *self._over_gpu_memory(now)]
        self.findings = {}
        for finding in found:
            self.findings[finding.job] = (*self.findings.get(finding.job, ()), finding)
        self._follow(respond(found, self._handled, self.rules, now), now)

    def _is_there(self, finding: Finding) -> bool:
        running = self._fold.running.get(finding.job)
        alive = (State.RUNNING, State.SUSPENDED)
        return running is not None and running.attempt == finding.attempt and running.state in alive

    def _over_gpu_memory(self, now: float) -> Iterator[Finding]:
        """At every look: who takes more than its share endangers its neighbours."""
        for running in list(self._fold.running.values()):
            if running.state is State.RUNNING and running.seats[0].shape.shares_gpu:
                yield from find_gpu_memory(self._one(running), self.rules, now)

    def _follow(self, answer: Answer, now: float) -> None:
        self._handled = answer.handled
        self._close_questions(answer, now)
        for step in answer.steps:
            for event, *actions in self._consequences(step, now):
                self._acts.note(event, *actions)
                if isinstance(event, Found):
                    self._tell_owner(event, step)

    def _close_questions(self, answer: Answer, now: float) -> None:
        """What is no longer so needs no answer."""
        there = {(one.subject.job, one.subject.kind) for one in answer.handled if one.gone_at is None}
        gone = {(one.subject.job, one.subject.kind) for one in answer.handled if one.gone_at == now}
        for job, kind in sorted(gone - there):
            self._acts.answered(of_job(job), kind_of(kind), "it is so no more")

    def _tell_owner(self, found: Found, step: Step) -> None:
        running = self._fold.running.get(found.job)
        is_followed = isinstance(step, Warn) and step.in_seconds is not None
        told = None if running is None else of_finding(running.job, found, is_followed=is_followed)
        if told is not None:
            self._acts.tell(told)

    def _look_at_hardware(self, now: float) -> None:
        read = {node: reading for node, reading in self._metering.readings().items() if reading.gpus}
        if not read:
            return
        self._forget_what_was_mended()
        holders = self._holders()
        faults = [
            fault
            for node, after in read.items()
            for fault in new_faults(self._read.get(node), after, node, holders.get(node, {}))
        ]
        self._read |= read
        if not faults:
            return
        since = now - _QUARANTINE.within_seconds
        self.faults = [*(fault for fault in self.faults if fault.at > since), *faults]
        for bad in quarantine(self.faults, _QUARANTINE, now):
            self._acts.quarantine(bad.node, bad.device, bad.because)

    def _forget_what_was_mended(self) -> None:
        """What a person has brought back is judged by what happens from then on."""
        out = {
            (node.name, index)
            for node in self._fold.nodes.values()
            for index, device in enumerate(node.devices)
            if not device.healthy or node.health is not Health.UP
        }
        mended, self._out = self._out - out, out
        self.faults = [fault for fault in self.faults if (fault.node, fault.device) not in mended]

    def _holders(self) -> dict[str, dict[int, JobId]]:
        """Node → device → who holds it."""
        holders: dict[str, dict[int, JobId]] = {}
        for running in self._fold.running.values():
            for seat in running.seats:
                holders.setdefault(seat.node, {}).update(dict.fromkeys(seat.devices, running.job.id))
        return holders

    def _watched(self) -> Iterator[Watched]:
        for running in list(self._fold.running.values()):
            if running.started_at is not None and running.state in (State.RUNNING, State.SUSPENDED):
                yield self._one(running)

    def _one(self, running: Running) -> Watched:
        key = (running.job.id, running.attempt)
        entry = self._metering.ledger.entry(*key)
        devices = sorted({(s.node, d) for s in running.seats for d in s.devices})
        return Watched(
            job=running.job,
            attempt=running.attempt,
            started_at=running.started_at or running.placed_at,
            resumed_at=None if entry is None else entry.resumed_at,
            is_suspended=running.state is State.SUSPENDED,
            held=running.held,
            devices=tuple(device for _, device in devices),
            gpu_granted_bytes=self._granted(running, len(devices)),
            gpu_metric=self._metering.gpu_metric,
            minutes=self._metering.ledger.series.minutes(*key, 0.0),
            newest=self._metering.newest.get(key),
            signs=self._metering.signs.of(key),
        )

    def _granted(self, running: Running, count: int) -> tuple[int | None, ...]:
        """Of a shared GPU: the memory that goes with the share, or what was asked for if that is more."""
        seat = running.seats[0]
        if not seat.shape.shares_gpu:
            return (None,) * count
        device = self._fold.nodes[seat.node].devices[seat.devices[0]]
        if device.memory_bytes is None:
            return (seat.shape.gpu_memory_bytes or None,) * count
        share = device.memory_bytes * seat.device_milli // 1000
        return (max(share, seat.shape.gpu_memory_bytes),) * count

    def _consequences(self, step: Step, now: float) -> Iterator[tuple[Event, *tuple[Action, ...]]]:
        found = consequence_of(step, now)
        job, attempt, said = found.job, found.attempt, found.sentence
        yield (found,)
        running = self._fold.running.get(job)
        if running is not None and running.job.adopted is not None:  # it is told, and not acted on
            return
        if isinstance(step, StopIt):
            yield Stopping(now, job, attempt, said), Stop(job, attempt, said)
        elif isinstance(step, SuspendIt):
            yield Suspended(now, job, attempt), Suspend(job, attempt)


def consequence_of(step: Step, now: float) -> Found:
    """The fact that something was found, and what is done about it."""
    finding, (job, attempt) = step.finding, step.attempt
    number = step.number if isinstance(step, Warn) else 0
    what = (finding.kind, _ACTS[type(step)], step.sentence(), number, finding.devices, finding.whole)
    return Found(now, job, attempt, *what)


def _handled(findings: Iterable[tuple[Found, ...]]) -> Iterator[Handled]:
    """What was done before, as the journal has it."""
    latest: dict[Subject, list[Found]] = {}
    for found in (one for some in findings for one in some):
        if found.kind in get_args(Kind):
            subject = Subject(found.kind, found.job, found.attempt, found.devices, found.whole)  # type: ignore[arg-type]
            latest.setdefault(subject, []).append(found)
    for subject, some in latest.items():
        warnings = [one for one in some if one.act == "warn"]
        yield Handled(
            subject,
            found_at=some[0].at,
            noted=any(one.act == "note" for one in some),
            warned=max((one.number for one in warnings), default=0),
            warned_at=warnings[-1].at if warnings else None,
            gone_at=some[-1].at,  # until it is seen again
        )
