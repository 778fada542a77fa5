"""Once a minute the steward looks at what runs; what it finds is noted, told, or acted on, as the rules say.

What was done about a finding is in the journal (``Found``), so a restart warns nobody anew. A finding itself
is not: it follows from the minutes, which begin again; whoever was idle before a restart has to be so for a
while longer.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from muster.model.events import Event, Found, Stopping, Suspended
from muster.model.job import JobId
from muster.model.plan import Action, Stop, Suspend
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.units import MINUTE
from muster.server.metering import Metering
from muster.steward.find import find
from muster.steward.findings import Finding, Kind, Subject
from muster.steward.respond import Answer, Handled, Note, Step, StopIt, SuspendIt, Warn, respond
from muster.steward.rules import Rules
from muster.steward.watch import Watched
from muster.store.fold import Fold

Noting = Callable[..., None]  # an event, and the actions that follow from it

_ACTS: dict[type[Step], str] = {Note: "note", Warn: "warn", SuspendIt: "suspend", StopIt: "stop"}


class Watching:
    """The steward's eyes on what runs."""

    def __init__(self, fold: Fold, metering: Metering, rules: Rules, note: Noting) -> None:
        self._fold, self._metering, self.rules, self._note = fold, metering, rules, note
        self._handled: tuple[Handled, ...] = tuple(_handled(fold.findings.values()))
        self._looked_at = 0.0
        self.findings: dict[JobId, tuple[Finding, ...]] = {}  # as of the last look

    def look(self, now: float) -> None:
        """Look if a minute has passed; note what follows."""
        if now - self._looked_at < MINUTE and now >= self._looked_at:
            return
        self._looked_at = now
        found = [f for watched in self._watched() for f in find(watched, self.rules, now)]
        self.findings = {}
        for finding in found:
            self.findings[finding.job] = (*self.findings.get(finding.job, ()), finding)
        answer: Answer = respond(found, self._handled, self.rules, now)
        self._handled = answer.handled
        for step in answer.steps:
            for event, *actions in self._consequences(step, now):
                self._note(event, *actions)

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
        finding, said = step.finding, step.sentence()
        job, attempt = step.attempt
        number = step.number if isinstance(step, Warn) else 0
        what = (finding.kind, _ACTS[type(step)], said, number, finding.devices, finding.whole)
        yield (Found(now, job, attempt, *what),)
        if isinstance(step, StopIt):
            yield Stopping(now, job, attempt, said), Stop(job, attempt, said)
        elif isinstance(step, SuspendIt):
            yield Suspended(now, job, attempt), Suspend(job, attempt)


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
