"""From what is known about a job to what people see of it."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import overload

import msgspec

from muster.engines.local.logs import log_name
from muster.home import Home
from muster.layout.ranges import fold_numbers
from muster.model.events import Exited, Outcome, Withdrawn
from muster.model.job import Job, JobId
from muster.model.plan import Plan
from muster.model.snapshot import LaneKey, Running, Waiting
from muster.model.state import State
from muster.model.units import MILLI, show_seconds
from muster.server.answers import ArrayView, BudgetView, JobView, Used
from muster.server.narrowed import ANY, Narrowed
from muster.store.fold import Fold
from muster.store.records import ArrayRecord, Record
from muster.store.report_rows import spelled

_LONGEST_COMMAND = 400


class Views:
    """Views of live jobs, made when asked for."""

    def __init__(self, fold: Fold, home: Home) -> None:
        self._fold, self._logs = fold, str(home.logs)
        self.plan = Plan()  # the latest: it has the reasons
        self.metrics: dict[JobId, dict[str, float]] = {}
        self.used: Callable[[Running], Used | None] = lambda _: None
        self.budget: Callable[[Job], BudgetView | None] = lambda _: None
        self.review: Callable[[Job], str | None] = lambda _: None
        self.elsewhere: Callable[[JobId], str | None] = lambda _: None  # why it waits in another's queue
        self.host = ""  # whose queue that is

    def live(self, record: Record) -> JobView:
        """A job that has not ended."""
        if record.running is not None:
            return self._running(record.running)
        assert record.waiting is not None
        return self._waiting(record.waiting, record.state)

    def ended(self, record: Record, event: Exited | Withdrawn) -> JobView:
        """The last view of a job, made just before it is forgotten."""
        view = self.live(record)
        view.state, view.outcome, view.ended_at = State.ENDED, event.outcome, self._by_the_wall(event.at)
        if isinstance(event, Exited):
            view.exit_code, view.signal = event.exit_code, event.signal
        because = record.running.because if record.running else None
        view.reason = how_it_ended(event, record, because)
        view.verdict = event.verdict
        view.metrics = {**spelled(self.metrics.pop(view.id, {}))}
        view.used = view.review = None  # it uses nothing any more, and nobody has to answer for it
        return view

    def _waiting(self, waiting: Waiting, state: State) -> JobView:
        job = waiting.job
        view = self._of(job, state)
        view.attempt = waiting.attempt
        if job.adopted is not None:
            view.reason = self.why_elsewhere(waiting)
            return view
        wait = self.plan.wait_of(waiting, self._fold.unmet)
        view.reason = wait.reasons[0].sentence_of(job.id) if wait else "was submitted just now"
        if waiting.mended is not None:
            view.reason = f"{waiting.mended}; {view.reason}"
        view.log = self._log(job, waiting.attempt) if waiting.attempt else None
        return view

    def why_elsewhere(self, waiting: Waiting) -> str:
        """Why a job waits that others submitted, in the words of whoever has it in the queue."""
        said = self.elsewhere(waiting.job.id) or waiting.held_because
        return said or f"{str(waiting.job.adopted).capitalize()} has not been asked yet"

    def said_elsewhere(self, entry: Waiting | Running) -> str:
        """Why a host that is shared lets it wait: one of others', or one that was handed over."""
        if isinstance(entry, Waiting):
            return self.why_elsewhere(entry)
        return self.elsewhere(entry.job.id) or f"is being handed to {self.host}"

    def why_not_begun(self, running: Running) -> str | None:
        """Of one that was handed to a host with a queue of its own and waits there: what that says."""
        said = self.elsewhere(running.job.id) if running.state is State.STARTING else None
        return None if said is None else f"waits in {self.host}: {said}"

    def _running(self, running: Running) -> JobView:
        job = running.job
        if running.behind is not None:
            return self._lined_up(running)
        view = self._of(job, running.state)
        view.attempt, view.started_at = running.attempt, self._by_the_wall(running.started_at)
        view.nodes = list(dict.fromkeys(seat.node for seat in running.seats))
        view.devices = sorted({g for seat in running.seats for g in seat.devices})
        view.reason = running.because or self.why_not_begun(running)
        view.log = None if job.adopted is not None else self._log(job, running.attempt)
        view.metrics = {**spelled(self.metrics.get(job.id, {}))}
        view.findings = [found.sentence for found in self._fold.findings.get(job.id, ())]
        view.used = self.used(running)
        return view

    def _lined_up(self, running: Running) -> JobView:
        """It is decided where it starts, and it waits still."""
        view = self._of(running.job, State.QUEUED)
        view.attempt = running.attempt - 1
        view.reason = f"is next in line for the seats of job {running.behind}"
        return view

    def log_of(self, running: Running) -> str:
        return self._log(running.job, running.attempt)

    def _log(self, job: Job, attempt: int) -> str:
        return f"{self._logs}/{log_name(job.id, attempt, 0, job.gang.size)}"

    def _of(self, job: Job, state: State) -> JobView:
        asked, run = job.gang.asked(), job.run
        return JobView(
            id=job.id,
            name=job.name,
            owner=job.owner,
            team=job.team,
            priority=job.priority.name.lower(),
            state=state,
            outcome=None,
            exit_code=None,
            signal=None,
            reason=None,
            verdict=None,
            attempt=0,
            submitted_at=self._by_the_wall(job.submitted_at),
            started_at=None,
            ended_at=None,
            gpus=asked.gpus_milli / MILLI,
            cpus=asked.cpus_milli / MILLI,
            memory_bytes=asked.memory_bytes,
            time_limit_seconds=job.time_limit_seconds,
            nodes=[],
            devices=[],
            command=_command(job),
            cwd=run.cwd if run else "",
            log=None,
            purpose=job.charter.purpose,
            effort=job.effort,
            success=list(job.charter.success),
            failure=list(job.charter.failure),
            until=job.charter.until,
            parts=job.gang.size,
            after=[d.job for d in job.after],
            retries=job.retries,
            params=dict(job.params),
            array=ArrayView(job.array.array, job.array.index, job.array.index, 1) if job.array else None,
            answers=job.charter.owner or job.owner,
            adopted=job.adopted,
            budget=self.budget(job),
            review=self.review(job) if state is not State.ENDED else None,
        )

    @overload
    def _by_the_wall(self, at: float) -> float: ...

    @overload
    def _by_the_wall(self, at: float | None) -> float | None: ...

    def _by_the_wall(self, at: float | None) -> float | None:
        """As the clock on the wall has it."""
        return None if at is None else at + self._fold.wall_ahead_seconds

    # --- Arrays -------------------------------------------------------------------------------------

    def array(self, array: ArrayRecord) -> JobView:
        """An array as one."""
        members = [r for r in self._members(array) if r.outcome is None]
        over = array.size - array.left
        view = self.as_one(members, over, array.failed, lambda: self._of(array.template, State.ENDED))
        view.id, view.array = array.template.id, ArrayView(array.template.id, 1, array.size, array.size)
        return view

    def as_one(
        self, living: Sequence[Record], over: int, failed: int, ended: Callable[[], JobView]
    ) -> JobView:
        """Members of an array in one view: those that live, and how many are over and have failed.

        What each has to itself is left out. ``ended`` is a view of one of them, for when none lives.
        """
        counts = Counter({State.ENDED.value: over}) if over else Counter[str]()
        counts.update(_shown(record).value for record in living)
        state = next((s for s in _MOST_TELLING if counts[s.value]), State.ENDED)
        first = next((record for record in living if _shown(record) is state), None)
        running = [r.running for r in living if r.running is not None and r.running.behind is None]
        said = f"{failed} of {over} failed" if failed else "all succeeded"
        view = ended() if first is None else self.live(first)
        return msgspec.structs.replace(
            view,
            state=state,
            outcome=None if living else Outcome.FAILED if failed else Outcome.SUCCEEDED,
            reason=view.reason if living else said,
            counts=dict(counts),
            nodes=list(dict.fromkeys(seat.node for r in running for seat in r.seats)),
            devices=sorted({g for r in running for seat in r.seats for g in seat.devices}),
            started_at=self._by_the_wall(min((r.started_at for r in running if r.started_at), default=None)),
            ended_at=None,
            exit_code=None,
            signal=None,
            attempt=0,
            log=None,
            params={},
            metrics={},
            limits=[],
            used=None,
            cause=None,
            efficiency=[],
            findings=[],
        )

    def _members(self, array: ArrayRecord) -> Iterator[Record]:
        start = f"{array.template.id}_"
        return (record for job_id, record in self._fold.records.items() if job_id.startswith(start))

    # --- Lists --------------------------------------------------------------------------------------

    def listed(
        self, limit: int | None, *, members: bool = False, wanted: Narrowed = ANY
    ) -> tuple[list[JobView], int]:
        """Running jobs, then waiting ones by age, and how many more there are.

        Waiting members of an array are one line, as people think of them.
        """
        snap_lanes, ineligible = self._fold.lanes, self._fold.ineligible
        running = [*self._fold.running.values(), *self._fold.lined_up]
        waiting = merge(*snap_lanes.values(), sorted(ineligible.values(), key=_age), key=_age)
        if wanted is not ANY:
            running = [one for one in running if wanted.has_job(one.job)]
            waiting = (one for one in waiting if wanted.has_job(one.job))
        together = ([w] for w in waiting) if members else _by_array(waiting)
        views = [self._running(r) for r in islice(running, limit)]
        left = None if limit is None else limit - len(views)
        views += [self._group(group) for group in islice(together, left)]
        return views, max(0, len(running) - len(views)) + sum(1 for _ in together)

    def queue(
        self, is_wanted: Callable[[Job], bool], most_looked_at: int, limit: int
    ) -> tuple[list[JobView], int]:
        """Of the first so many that wait, by age, those that are wanted; and how many lines more."""
        lined_up = [r for r in self._fold.lined_up if is_wanted(r.job)]
        ineligible = sorted(self._fold.ineligible.values(), key=_age)
        waiting = islice(merge(*self._fold.lanes.values(), ineligible, key=_age), most_looked_at)
        together = list(_by_array(one for one in waiting if is_wanted(one.job)))
        views = [self._lined_up(running) for running in lined_up[:limit]]
        views += [self._group(group) for group in together[: limit - len(views)]]
        return views, len(lined_up) + len(together) - len(views)

    def seated(self, running: Running) -> JobView:
        """A job that has seats."""
        return self._running(running)

    def _group(self, group: list[Waiting]) -> JobView:
        first = group[0]
        view = self._waiting(first, State.HELD if first.job.held else State.QUEUED)
        if len(group) > 1 and first.job.array is not None:
            indices = [w.job.array.index for w in group if w.job.array]
            array = first.job.array.array
            view.id = f"{array}_[{fold_numbers(indices)}]"
            view.array = ArrayView(array, min(indices), max(indices), len(indices))
            view.params = {}
        return view


def _shown(record: Record) -> State:
    """Who is lined up waits, as far as people are concerned."""
    running = record.running
    return State.QUEUED if running is not None and running.behind is not None else record.state


_MOST_TELLING = (State.RUNNING, State.STARTING, State.STOPPING, State.SUSPENDED, State.QUEUED, State.HELD)


def _by_array(waiting: Iterable[Waiting]) -> Iterator[list[Waiting]]:
    """One group per array and lane, where its first member stands; all others alone."""
    groups: dict[tuple[str, LaneKey, bool], list[Waiting]] = {}
    order: list[list[Waiting]] = []
    for entry in waiting:
        if entry.job.array is None:
            order.append([entry])
            continue
        key = (entry.job.array.array, entry.lane, entry.job.held)
        group = groups.get(key)
        if group is None:
            group = groups[key] = []
            order.append(group)
        group.append(entry)
    return iter(order)


def _age(waiting: Waiting) -> tuple[float, JobId]:
    return (waiting.job.submitted_at, waiting.job.id)


def _command(job: Job) -> str:
    run = job.run
    if run is None:
        return ""
    words = shlex.join(run.argv)
    said = f"(script) {words}".rstrip() if run.script is not None else words
    return said if len(said) <= _LONGEST_COMMAND else said[: _LONGEST_COMMAND - 1] + "…"


def how_it_ended(event: Exited | Withdrawn, record: Record, because: str | None) -> str | None:
    """In a sentence; None where the outcome says it all."""
    entry = record.running or record.waiting
    assert entry is not None
    limit = entry.job.time_limit_seconds
    said = {
        Outcome.TIMEOUT: f"its time limit of {show_seconds(limit)} was reached" if limit else None,
        Outcome.OUT_OF_MEMORY: "it used more memory than it had asked for; submit it with a larger --mem",
        Outcome.NODE_LOST: "its node was lost",
        Outcome.DEPENDENCY_FAILED: "a job it depended on did not end as it had to",
        Outcome.STOPPED: because or event.because or _stopped(record),
    }
    if isinstance(event, Exited) and event.outcome is Outcome.FAILED:
        if event.signal is not None:
            return f"it was ended by signal {event.signal}"
        if event.exit_code is None:
            return "its exit code is not known"
        return f"it exited with code {event.exit_code}"
    return said.get(event.outcome) or event.because or None


def _stopped(record: Record) -> str:
    return "stopped while it waited" if record.running is None else "stopped"
