"""When will it start, why not now, what if: questions whose answers are simulated, away from the loop.

Each takes a snapshot of its own and a thread, so that nothing waits for it.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

import msgspec
from numpy.random import Generator

from muster.model.job import Job, JobId
from muster.model.state import State
from muster.model.stewardship import split
from muster.server import answers
from muster.server.outlook import forecast as forecasts
from muster.server.outlook.explain import Beside, Explanation, explain, explain_ended
from muster.server.service import Service
from muster.server.stewardship.subjects import job_named
from muster.store.records import Record
from muster.store.rows import Estimate
from muster.store.spending import subjects_of

T = TypeVar("T")
_SETTLED = 1000  # past estimates that accuracy is told from


class When:
    """Questions about the future of one service."""

    def __init__(self, service: Service, rng: Generator) -> None:
        self._service, self._rng = service, rng
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="when")

    async def why(self, view: answers.JobView, among: Sequence[Record] = ()) -> answers.Why:
        """Of an array, or of some members: of that one ``among`` those that live which is next."""
        if view.state is State.ENDED and view.outcome is not None:
            return _why(_ended(view), 0.0)
        service = self._service
        job_id = view.id if view.counts is None else _next(among)
        elsewhere = self._elsewhere(job_id)
        if elsewhere is not None:
            return _why(elsewhere, 0.0)
        snap, plan, policy, now = service.fold.snapshot(), service.plan, service.policy, service.now()
        ahead = service.fold.wall_ahead_seconds
        beside = tuple(self._budgets_of(job_id))

        def answer() -> Explanation:
            return explain(
                snap,
                plan,
                policy,
                job_id,
                now=now,
                rng=self._rng,
                clock=time.perf_counter,
                show_time=lambda at: show_time(at + ahead),
                beside=beside,
            )

        found = await self._apart(answer)
        self._remember(job_id, found.estimate, now)
        return _why(found, ahead)

    def _elsewhere(self, job_id: JobId) -> Explanation | None:
        """Of a job that waits in another's queue, what that says: Muster does not decide when it starts."""
        record, views = self._service.fold.records.get(job_id), self._service.views
        if record is None:
            return None
        said = None
        if record.waiting is not None and record.waiting.job.adopted is not None:
            said = f"waits in {views.host}: {views.why_elsewhere(record.waiting)}"
        elif record.running is not None:
            said = views.why_not_begun(record.running)
        if said is None:
            return None
        beside = "".join(f"\n{one.line()}" for one in self._budgets_of(job_id))
        return Explanation(job_id, record.state, f"{said[0].upper()}{said[1:]}.{beside}")

    def _budgets_of(self, job_id: JobId) -> Iterator[Beside]:
        """What is spent of all budgets that it is under."""
        fold, budgets = self._service.fold, self._service.budgets
        job = job_named(fold, job_id)
        if job is None or budgets is None:
            return
        for subject in subjects_of(job, fold.tenancy.path(job.team)):
            view = budgets.view(subject)
            if view is not None:
                whose = "it" if split(subject)[0] == "job" else split(subject)[1]
                state = "ok" if view.share < 1 else "spent"
                yield Beside("budget", state, f"{view.spent:.3g} of {view.text} spent by {whose}")

    async def forecast(self, job: Job) -> answers.Forecast:
        service = self._service
        snap, policy, now = service.fold.snapshot(), service.policy, service.now()
        ahead = service.fold.wall_ahead_seconds
        if job.begin_at is not None:
            job = msgspec.structs.replace(job, begin_at=job.begin_at - ahead)
        found = await self._apart(
            lambda: forecasts.forecast_new(snap, policy, job, now=now, rng=self._rng, clock=time.perf_counter)
        )
        return _forecast(found, ahead)

    async def accuracy(self) -> answers.Accuracy:
        settled = await self._apart(lambda: self._service.journal.estimates_settled(_SETTLED))
        found = forecasts.accuracy((said, said.started_at) for said in settled)
        return answers.Accuracy(found.jobs, found.median_error_seconds, found.within, found.sentence())

    async def _apart(self, answer: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    def _remember(self, job_id: JobId, said: forecasts.Estimate | None, now: float) -> None:
        """What was said is kept, so that it can be held against what came."""
        if said is not None:
            self._service.keep_estimate(Estimate(job_id, now, said.earliest, said.latest, said.probability))


def _next(members: Sequence[Record]) -> JobId:
    waiting = (record.waiting.job.id for record in members if record.waiting is not None)
    running = (record.running.job.id for record in members if record.running is not None)
    return next(waiting, None) or next(running)


def show_time(at: float) -> str:
    """The clock's time; with its date, unless it is today's. The server's time zone is the machine's."""
    then, today = datetime.fromtimestamp(at).astimezone(), datetime.now().astimezone()
    if then.date() == today.date():
        return f"{then:%H:%M:%S}" if abs(at - today.timestamp()) < 600 else f"{then:%H:%M}"
    return f"{then:%Y-%m-%d %H:%M}"


def _ended(view: answers.JobView) -> Explanation:
    assert view.outcome is not None
    return explain_ended(
        view.id,
        view.outcome,
        ended_at=view.ended_at,
        show_time=show_time,
        exit_code=view.exit_code,
        signal=view.signal,
        verdict=view.verdict,
        reason=view.reason,
    )


def _why(found: Explanation, ahead: float) -> answers.Why:
    """With times as the wall has them, which is so much ahead of ours."""
    return answers.Why(
        id=found.id,
        state=found.state,
        reasons=[answers.ReasonView(r.kind, r.sentence, r.action) for r in found.reasons],
        estimate=_estimate(found.estimate, ahead),
        sooner=[answers.Sooner(s.change, s.starts_at + ahead) for s in found.sooner],
        text=found.text,
        beside=[answers.BesideView(one.kind, one.state, one.sentence) for one in found.beside],
    )


def _forecast(found: forecasts.Forecast, ahead: float) -> answers.Forecast:
    return answers.Forecast(
        feasible=found.feasible,
        sentence=found.sentence(),
        starts_at=None if found.starts_at is None else found.starts_at + ahead,
        nodes=list(found.nodes),
        yields=list(found.yields),
        estimate=_estimate(found.estimate, ahead),
        text=found.text(lambda at: show_time(at + ahead)),
    )


def _estimate(said: forecasts.Estimate | None, ahead: float) -> answers.StartEstimate | None:
    if said is None:
        return None
    by_limits = None if said.latest_by_limits is None else said.latest_by_limits + ahead
    times = (said.earliest + ahead, said.latest + ahead)
    return answers.StartEstimate(*times, said.probability, by_limits, said.follows)
