"""Exits at work: every report goes to the board, and what the board says is done.

The board (``steward.exits``) knows which conditions are met, and by when time alone may meet one. Here it is
told what happens to jobs and efforts, and is woken when something is due. What it remembers of each is
written with the reports that it was learned from, so that a server that was killed goes on where it stood. A
verdict and its stop are one event (``ending``).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput
from muster.model.events import (
    Amended,
    Event,
    Exited,
    Resumed,
    Retried,
    Started,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.job import Job, JobId
from muster.model.message import Message
from muster.model.report import Report
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.stewardship import (
    Defended,
    EffortAmended,
    EffortClosed,
    Subject,
    of_effort,
    of_job,
    split,
)
from muster.server.reports import Reports
from muster.server.service import Service
from muster.server.stewardship import ending
from muster.server.stewardship.efforts import MUSTER, Efforts
from muster.server.stewardship.subjects import job_of, records_of
from muster.server.stewardship.verdicts import by_itself, exits_in, has_exits
from muster.steward.exits.board import Board
from muster.steward.exits.compiled import Exits
from muster.steward.exits.watched import Met
from muster.store.reviews import unit_of

log = logging.getLogger("muster")

PATIENCE_SECONDS = 1800.0  # of run time, after which a metric that never came is asked about
_KIND = "exits"
_LOOK_SECONDS = 60.0  # between looks for metrics that have never come
_EFFORT_ATTEMPT = 0  # what is remembered of an effort is kept under no attempt


class _Kept(msgspec.Struct, array_like=True):
    """What the board remembers of a subject, and when that was."""

    at: float
    state: bytes


class Exiting:
    """What ends by what it reports, or by time."""

    def __init__(self, service: Service, efforts: Efforts, reports: Reports) -> None:
        self._service, self._efforts, self._reports = service, efforts, reports
        self._fold = service.fold
        self._board = Board()
        self._met: dict[JobId, Met] = {}  # who met an exit with its last words
        self._runs: dict[str, set[JobId]] = {}  # of each effort, its jobs that run
        self._effort_of: dict[JobId, str] = {}  # those that have run of one with exits
        self._loop = asyncio.get_running_loop()
        self._due: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self.patience_seconds = PATIENCE_SECONDS
        reports.on_begin, reports.on_reports = self._begin, self._heard
        reports.wants_soon = self._wants_soon
        service.verdict = self._verdict
        service.listeners.append(self._saw)

    def _begin(self) -> None:
        """Go on where an earlier server stood. What the journal says of jobs is known."""
        kept = self._kept_last()
        for effort in self._fold.stewardship.efforts.values():
            if effort.is_open and has_exits(effort.charter):
                subject = of_effort(effort.name)
                self._restore(subject, exits_in(effort.charter), kept.get(subject))
        for job_id, record in list(self._fold.records.items()):
            entry = record.running or record.waiting
            if entry is None or not has_exits(entry.job.charter):
                continue
            self._restore(of_job(job_id), exits_in(entry.job.charter), kept.get(job_id))
        for running in list(self._fold.running.values()):
            if running.started_at is not None:
                self._found(running, running.started_at)
        self._forget_the_silent()
        self._wake_when_due()
        self._quiet = self._loop.call_later(_LOOK_SECONDS, self._look_for_silence)

    def _forget_the_silent(self) -> None:
        """Who has ended, and told nothing, may still be in what was kept: nobody waits for it."""
        for effort in self._fold.stewardship.efforts:
            for job_id in self._board.silent_sources(of_effort(effort)):
                record = self._fold.records.get(job_id)
                if record is None or record.outcome is not None:
                    self._board.leave(of_effort(effort), job_id)

    def _kept_last(self) -> dict[str, _Kept]:
        """Of each job, in whichever attempt, and of each effort."""
        last: dict[str, _Kept] = {}
        for (name, _), body in self._reports.kept(_KIND).items():
            one = msgspec.msgpack.decode(body, type=_Kept)
            if name not in last or last[name].at < one.at:
                last[name] = one
        return last

    def end(self) -> None:
        for timer in (self._due, self._quiet):
            if timer is not None:
                timer.cancel()

    # --- What happens -------------------------------------------------------------------------------

    def _saw(self, event: Event) -> None:
        handle = self._HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)

    def _started(self, event: Started) -> None:
        running = self._fold.running.get(event.job)
        if running is None:
            return
        subject = of_job(event.job)
        if subject in self._board:  # in an earlier attempt
            self._board.restarted(subject, event.job)
        effort = running.job.effort
        if effort is not None and running.attempt > 1:
            self._board.restarted(of_effort(effort), event.job)
        self._goes_on(running.job, running.attained_seconds, event.at)

    def _found(self, running: Running, since: float) -> None:
        """It runs, and nothing else is known about it: after a start, or when it got exits just now."""
        job, subject = running.job, of_job(running.job.id)
        if subject not in self._board and has_exits(job.charter):
            self._board.begin(subject, exits_in(job.charter), running.attained_seconds, since)
        self._effort_goes_on(job, since)
        if running.state is State.SUSPENDED:
            self._stands_still(job, self._service.now())

    def _goes_on(self, job: Job, ran_seconds: float, now: float) -> None:
        subject = of_job(job.id)
        if subject in self._board:
            self._board.go_on(subject, now)
            self._keep(subject, now)
        elif has_exits(job.charter):
            self._board.begin(subject, exits_in(job.charter), ran_seconds, now)
        self._effort_goes_on(job, now)
        self._wake_when_due()

    def _effort_goes_on(self, job: Job, now: float) -> None:
        """Its time is counted while one of its jobs runs."""
        effort = self._fold.stewardship.efforts.get(job.effort or "")
        if effort is None or not effort.is_open or not has_exits(effort.charter):
            return
        subject, running = of_effort(effort.name), self._runs.setdefault(effort.name, set())
        is_first = not running
        if subject not in self._board:
            self._board.begin(subject, exits_in(effort.charter), 0.0, now)
        elif is_first:
            self._board.go_on(subject, now)
        running.add(job.id)
        self._effort_of[job.id] = effort.name
        self._board.join(subject, job.id)
        if is_first:  # of the others is known after a restart that they run
            self._keep(subject, now)

    def _stands_still(self, job: Job, now: float) -> None:
        subject = of_job(job.id)
        if subject in self._board:
            self._board.pause(subject, now)
            self._keep(subject, now)
        running = self._runs.get(job.effort or "", set())
        running.discard(job.id)
        if job.effort is not None and not running and of_effort(job.effort) in self._board:
            self._board.pause(of_effort(job.effort), now)
            self._keep(of_effort(job.effort), now)

    def _suspended(self, event: Suspended) -> None:
        self._stands_still(self._fold.running[event.job].job, event.at)

    def _resumed(self, event: Resumed) -> None:
        self._goes_on(self._fold.running[event.job].job, 0.0, event.at)

    def _left(self, event: Vacated | Retried) -> None:
        """It waits again: its time stands still, and what it has shown is remembered."""
        record = self._fold.records[event.job]
        if record.waiting is not None:
            self._stands_still(record.waiting.job, event.at)

    def _over(self, event: Exited | Withdrawn) -> None:
        self._met.pop(event.job, None)
        self._board.end(of_job(event.job))
        effort = self._effort_of.pop(event.job, None)
        running = None if effort is None else self._runs.get(effort)
        if effort is None or running is None:
            return
        self._board.leave(of_effort(effort), event.job)
        if event.job in running:
            running.discard(event.job)
            if not running:
                self._board.pause(of_effort(effort), event.at)
                self._keep(of_effort(effort), event.at)

    def _amended(self, event: Amended) -> None:
        self._change(of_job(event.job), event.charter, event.at)
        if event.effort is not None:
            for running in self._running_of(of_job(event.job)):
                self._found(running, event.at)

    def _effort_amended(self, event: EffortAmended) -> None:
        self._change(of_effort(event.effort), event.charter, event.at)

    def _effort_closed(self, event: EffortClosed) -> None:
        subject = of_effort(event.effort)
        self._board.end(subject)
        self._runs.pop(event.effort, None)
        self._service.keep_reports((), {}, over=subject)

    def _defended(self, event: Defended) -> None:
        self._change(event.subject, event.charter, event.at)

    def _change(self, subject: Subject, charter: Charter, now: float) -> None:
        """Other exits; what was learned about metrics that both name stays."""
        if subject not in self._board and has_exits(charter):
            for running in self._running_of(subject):
                self._found(running, now)
        for one in self._boarded(subject):
            self._board.change(one, exits_in(charter), now)
        self._reports.reconsider()
        self._wake_when_due()

    def _boarded(self, subject: Subject) -> list[Subject]:
        """What stands on the board for it: of an array, each member."""
        kind, name = split(subject)
        if kind != "job" or name not in self._fold.arrays:
            return [subject]
        return [of_job(job_of(record).id) for record in records_of(self._fold, subject)]

    def _running_of(self, subject: Subject) -> list[Running]:
        kind, name = split(subject)
        if kind == "job":
            return [r for r in self._fold.running.values() if name in (r.job.id, unit_of(r.job))]
        return [r for r in self._fold.running.values() if r.job.effort == name]

    _HANDLERS: ClassVar[dict[type[Event], Callable[["Exiting", Any], None]]] = {
        Started: _started,
        Suspended: _suspended,
        Resumed: _resumed,
        Vacated: _left,
        Retried: _left,
        Exited: _over,
        Withdrawn: _over,
        Amended: _amended,
        EffortAmended: _effort_amended,
        EffortClosed: _effort_closed,
        Defended: _defended,
    }

    # --- What is reported ---------------------------------------------------------------------------

    def _heard(self, reports: list[Report]) -> None:
        told: dict[Subject, None] = {}
        for report in reports:
            running = self._fold.running.get(report.job)
            if running is None:
                continue
            for subject in self._subjects(running.job):
                told[subject] = None
                met = self._board.report(subject, report.job, report.at, report.values, report.step)
                if met is not None:
                    self._carry_out(met)
        for subject in told:
            if subject in self._board:  # an effort may be over by it
                self._keep(subject, self._service.now())
        self._wake_when_due()

    def _subjects(self, job: Job) -> Iterable[Subject]:
        if of_job(job.id) in self._board:
            yield of_job(job.id)
        if job.effort is not None and of_effort(job.effort) in self._board:
            yield of_effort(job.effort)

    def _carry_out(self, met: Met) -> None:
        kind, name = split(met.subject)
        verdict = Verdict(met.verdict)
        if kind == "effort":
            self._end_effort(name, verdict, f"job {met.source}: {met.sentence}")
            return
        running = self._fold.running.get(name)
        if running is None:
            return
        self._met[name] = met
        ending.end(self._service, [self._fold.records[name]], verdict, met.sentence)

    def _end_effort(self, name: str, verdict: Verdict, because: str) -> None:
        effort = self._fold.stewardship.efforts[name]
        self._efforts.end(name, verdict, MUSTER, because)
        said = f"effort {name} is {verdict}: {because}"
        self._tell(effort.owner, of_effort(name), said, f"muster effort show {name}")

    def _tell(self, to: str, about: Subject, sentence: str, action: str, kind: str = "verdict") -> None:
        self._service.tell(Message(to=to, about=about, kind=kind, sentence=sentence, action=action))

    # --- Verdicts of those that end -----------------------------------------------------------------

    def _verdict(self, running: Running, event: Exited) -> tuple[Verdict | None, str]:
        """By what it was told to end for, by its last words, or by what it did not reach; and why."""
        job, met = running.job, self._met.get(running.job.id)
        verdict: Verdict | None
        if running.verdict is not None:
            verdict, because = running.verdict, running.because or ""
        elif met is not None:
            verdict, because = Verdict(met.verdict), met.sentence
        else:
            reported = bool(self._service.views.metrics.get(job.id))
            verdict, because = by_itself(job.charter, event.outcome, reported=reported)
        if verdict in (Verdict.WON, Verdict.LOST) or (verdict and running.verdict is None):
            self._announce(job, verdict, because)  # of the others, who ended it has told
        return verdict, because

    def _announce(self, job: Job, verdict: Verdict, because: str) -> None:
        effort = self._fold.stewardship.efforts.get(job.effort or "")
        if effort is not None and not effort.is_open:
            return  # its end was told as one
        said = f"job {job.id} {job.name} is {verdict}: {because}"
        self._tell(job.charter.owner or job.owner, of_job(job.id), said, f"muster show {job.id}")
        if effort is not None and effort.first_wins and verdict is Verdict.WON:
            self._end_effort(effort.name, verdict, f"job {job.id}: {because}")

    # --- Time ---------------------------------------------------------------------------------------

    def _wake_when_due(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        at = self._board.next_due()
        if at is not None:
            self._due = self._loop.call_later(max(0.0, at - self._service.now()), self._is_due)

    def _is_due(self) -> None:
        self._due = None
        for met in self._board.due(self._service.now()):
            self._carry_out(met)
        self._wake_when_due()

    def _look_for_silence(self) -> None:
        self._quiet = self._loop.call_later(_LOOK_SECONDS, self._look_for_silence)
        for silent in self._board.silent(self._service.now(), self.patience_seconds):
            kind, name = split(silent.subject)
            if kind == "job" and (running := self._fold.running.get(name)) is not None:
                job = running.job
                said = f"job {job.id} {job.name}: {silent.sentence}"
                to, action = job.charter.owner or job.owner, f"muster logs {job.id}"
            elif kind == "effort":
                said = f"effort {name}: {silent.sentence}"
                to, action = self._fold.stewardship.efforts[name].owner, f"muster effort show {name}"
            else:
                continue
            self._tell(to, silent.subject, said, action, kind="silent")

    # --- Remembering --------------------------------------------------------------------------------

    def _wants_soon(self, job: Job) -> bool:
        effort = self._fold.stewardship.efforts.get(job.effort or "")
        return has_exits(job.charter) or (effort is not None and has_exits(effort.charter))

    def _keep(self, subject: Subject, now: float) -> None:
        state = self._board.state(subject, now)
        kind, name = split(subject)
        if kind == "effort":
            key = (subject, _EFFORT_ATTEMPT)
        else:
            record = self._fold.records.get(name)
            entry = None if record is None else record.running or record.waiting
            if entry is None:
                return
            key = (name, entry.attempt)
        self._reports.keep(key, _KIND, msgspec.msgpack.encode(_Kept(now, state)))

    def _restore(self, subject: Subject, exits: Exits, known: _Kept | None) -> None:
        try:
            if known is not None:
                self._board.restore(subject, exits, known.state, known.at)
        except BadInput as error:  # another version wrote it
            log.warning("%s", error)
