"""What follows from an attempt's end: why it failed, how well it used what it held, what to ask for next
time, and whether a machine can mend it.

All of it is worked out by the steward, from values; here they are gathered: facts, the ledger, the end of the
log. What was used is remembered as history of the same work.
"""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from muster.model.events import Exited, Outcome
from muster.model.job import Gang, Job, Part
from muster.model.ledger import spent_in, usage_of
from muster.model.resources import Resources
from muster.model.snapshot import Running
from muster.model.state import State
from muster.server.logs import tail_of
from muster.server.measured import measured_by
from muster.server.metering import Metering
from muster.steward.cause import MOST_BYTES, Cause, Ending, How, Told
from muster.steward.lastwords import last_lines
from muster.steward.mend import Again, MendRules, mend
from muster.steward.oversized import Oversized, oversized
from muster.steward.past import PastUse, Request, past_use
from muster.steward.rightsize import Advice, Advised, advise
from muster.steward.summary import Summary, summarise
from muster.steward.triage import triage
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.rows import PastRow

_SHORT_SECONDS = 1.0  # who succeeds sooner teaches nothing about what to ask for
_KEPT = 400  # past runs of one owner, at hand
_MOST_ADVISED = 20_000  # past runs that are looked through for those far from the truth
_BY_PERSON = "stopped by "
_WELL = frozenset({Outcome.SUCCEEDED, Outcome.DEPENDENCY_FAILED})

decode_past = msgspec.msgpack.Decoder(PastUse).decode
encode_past = msgspec.msgpack.Encoder().encode


class Endings:
    """Gathers what the steward needs to judge an attempt, and keeps the history of what was used."""

    def __init__(self, fold: Fold, metering: Metering, journal: Journal, rules: MendRules) -> None:
        self._fold, self._metering, self._journal, self.rules = fold, metering, journal, rules
        self._history: dict[str, list[PastUse]] = {}

    # --- Why ----------------------------------------------------------------------------------------

    def cause(self, running: Running, event: Exited, log: str) -> Cause | None:
        """Why it failed; None if it did not."""
        if event.outcome in _WELL:
            return None
        job, shape = running.job, running.job.gang.parts[0].shape
        entry = self._metering.ledger.entry(job.id, running.attempt)
        largest = event.at_end.largest_bytes if event.at_end is not None else None
        peaks = (largest, entry.memory_most_bytes if entry else None)
        ending = Ending(
            job=job.id,
            owner=job.owner,
            outcome=event.outcome,
            exit_code=event.exit_code,
            signal=event.signal,
            told=_told(running, self._is_over_gpu_memory(running)),
            out_of_memory=1 if event.outcome is Outcome.OUT_OF_MEMORY else None,
            log=last_lines(tail_of(Path(log), MOST_BYTES)),
            log_first_line=None,
            reported=self._reported(job),
            memory_peak_bytes=max((p for p in peaks if p is not None), default=None),
            memory_limit_bytes=shape.memory_bytes or None,
            gpu_memory_peak_bytes=entry.gpu_memory_most_bytes if entry else None,
            gpu_memory_limit_bytes=shape.gpu_memory_bytes or None,
            ran_seconds=None if running.started_at is None else event.at - running.started_at,
            limit_seconds=job.time_limit_seconds,
        )
        return triage(ending)

    def _is_over_gpu_memory(self, running: Running) -> bool:
        found = self._fold.findings.get(running.job.id, ())
        return any(one.kind == "gpu-memory" and one.act == "stop" for one in found)

    def _reported(self, job: Job) -> dict[str, float]:
        return self._metering.reported.get(job.id, {})

    def mended(self, running: Running, cause: Cause) -> Again | None:
        """How to run it again without asking anybody; None if that is not for a machine."""
        return mend(cause, running.job, self._caps(), running.attempt - 1)

    def _caps(self) -> MendRules:
        """No more than the largest node has, whatever is allowed."""
        nodes = self._fold.nodes.values()
        memory = max((node.memory_bytes for node in nodes), default=0)
        gpu = max((d.memory_bytes or 0 for node in nodes for d in node.devices), default=0)
        rules = self.rules
        return replace(
            rules,
            most_memory_bytes=min(rules.most_memory_bytes or memory, memory),
            most_gpu_memory_bytes=min(rules.most_gpu_memory_bytes or gpu, gpu),
        )

    # --- How well -----------------------------------------------------------------------------------

    def summary(self, running: Running, now: float) -> Summary | None:
        """How well an attempt has used what it holds; None if nothing is known."""
        key = (running.job.id, running.attempt)
        entry = self._metering.ledger.entry(*key)
        if entry is None or running.started_at is None:
            return None
        series = self._metering.ledger.series
        spent = entry.spent
        for minute in series.not_booked(*key, now):
            spent = spent + spent_in(minute, entry)
        usage = usage_of(entry, spent, 0.0, now)
        advice = self.advice(running.job, now)
        metric = self._metering.gpu_metric
        minutes = series.so_far(*key, now)
        by = self._by(running)
        return summarise(usage, minutes, running.held, advice, gpu_metric=metric, measured_by=by)

    def _by(self, running: Running) -> str:
        """Whose word it is, where there are several; nothing of one that ended before anybody looked."""
        if not self._metering.has_sources:
            return ""
        measured = measured_by(self._metering, running)
        return "" if measured.by is None else measured.text

    def advice(self, job: Job, now: float) -> Advice:
        """What to ask for next time, by the history of the same work."""
        request = Request.of(job)
        return advise(self.history(request.whose), request, now=now)

    def right_sized(self, job: Job, now: float) -> tuple[Job, list[str]]:
        """The job with what its history advises, and what that rests on."""
        advice = self.advice(job, now)
        gang = Gang(tuple(_sized(part, advice) for part in job.gang.parts), job.gang.together)
        limit = advice.time.value if advice.time is not None else job.time_limit_seconds
        said = advice.lines()
        if not said:
            said = ["right-size: too few runs of the same work were measured yet; it asks for what you said"]
        return replace(job, gang=gang, time_limit_seconds=limit), said

    def far_off(self, now: float, owner: str | None = None) -> list[Oversized]:
        """The requests that are far from the truth, those that cost most first."""
        rows = self._journal.past_uses(_MOST_ADVISED, whose=owner)
        uses = [decode_past(row.body) for row in reversed(rows)]
        capacity = sum((node.total for node in self._fold.nodes.values()), Resources())
        return oversized(uses, capacity, now=now)

    # --- History ------------------------------------------------------------------------------------

    def remember(self, running: Running, event: Exited) -> PastRow | None:
        """What it used, for the next of its kind; None if that teaches nothing."""
        if running.started_at is None:
            return None
        seconds = event.at - running.started_at
        if event.outcome is Outcome.SUCCEEDED and seconds < _SHORT_SECONDS:
            return None
        job = running.job
        minutes = self._metering.ledger.series.so_far(job.id, running.attempt, event.at)
        use = past_use(job, minutes, ended_at=event.at, outcome=event.outcome, seconds=seconds)
        if event.at_end is not None:  # between two looks it may have had more
            peak = max(use.memory_peak_bytes or 0, event.at_end.largest_bytes)
            use = replace(use, memory_peak_bytes=peak)
        whose = use.request.whose
        if whose in self._history:
            self._history[whose] = [*self._history[whose][-_KEPT:], use]
        return PastRow(job.id, running.attempt, whose, event.at, encode_past(use))

    def history(self, whose: str) -> list[PastUse]:
        """The past runs of an owner, the oldest first."""
        if whose not in self._history:
            rows = self._journal.past_uses(_KEPT, whose=whose)
            self._history[whose] = [decode_past(row.body) for row in reversed(rows)]
        return self._history[whose]


def _told(running: Running, over_gpu_memory: bool) -> Told | None:
    if running.state is not State.STOPPING:
        return None
    because = running.because or ""
    if over_gpu_memory:
        return Told(How.OVER_GPU_MEMORY, because)
    if running.evicted:
        return Told(How.EVICTED, because)
    by = because.removeprefix(_BY_PERSON).partition(":")[0] if because.startswith(_BY_PERSON) else None
    return Told(How.STOPPED, because, by)


def _sized(part: Part, advice: Advice) -> Part:
    shape = part.shape

    def value(found: Advised | None, had: int) -> int:
        return had if found is None else round(found.value)

    return Part(
        replace(
            shape,
            cpus_milli=value(advice.cpus, shape.cpus_milli),
            memory_bytes=value(advice.memory, shape.memory_bytes),
            gpu_memory_bytes=value(advice.gpu_memory, shape.gpu_memory_bytes),
        ),
        part.count,
    )
