"""Extending a job's terms: another budget, date or time limit; by name, and with a reason."""

import math
from collections.abc import Callable
from typing import Annotated

import msgspec

from muster.application.times import parse_end, parse_limit
from muster.model.charter import Charter
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import Amended
from muster.model.job import Job
from muster.model.plan import Limit
from muster.model.stewardship import of_job
from muster.model.units import show_seconds
from muster.server import members
from muster.server.answers import JobView
from muster.server.errors import Forbidden
from muster.server.http import Call, Route
from muster.server.people import Person, may_act_on
from muster.server.service import Service
from muster.server.stewardship.subjects import job_named, records_of
from muster.steward.budget import extended
from muster.store.records import Record

_Words = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    because: _Words
    budget: _Words | None = None  # 300 GPUh, or +100 GPUh more
    until: _Words | None = None  # a date, or +7d later
    time: _Words | None = None  # 8h, or +2h more, or unlimited


class Extending:
    """What people ask for; the budgets and dates see to the rest."""

    def __init__(self, service: Service, most_seconds: Callable[[Person], float | None]) -> None:
        self._service, self._most_seconds = service, most_seconds

    def routes(self) -> list[Route]:
        said = "Extend its budget, its date or its time limit."
        path = "/api/v1/jobs/{id}/extend"
        errors = (403, 409, 507)
        return [Route("POST", path, self.extend, JobView, said, body=ExtendBody, errors=errors)]

    async def extend(self, call: Call) -> JobView:
        job_id: str = call.path[0]
        body: ExtendBody = call.body
        job = self._job(call.person, job_id)
        if not body.because.strip():
            raise BadInput("a reason can't be empty; say why it should go on")
        charter, limit = self._charter(job, body), self._limit(call.person, job, body)
        by, now = call.person.name, self._service.now()
        self._service.note(Amended(now, job.id, charter, by, body.because, limit), *self._orders(job, limit))
        if self._service.reviewing is not None:
            self._service.reviewing.answered(job.id)
        await self._service.durable()
        return members.view(self._service, job_id)

    def _job(self, person: Person, job_id: str) -> Job:
        """The job, or what the array is made of; an array has one charter for all of its members."""
        if not members.living(self._service, job_id):
            outcome = members.view(self._service, job_id).outcome
            raise IllegalTransition(f"job {job_id} has already ended ({outcome})")
        array, _, index = job_id.partition("_")
        if index:
            raise BadInput(
                f"the members of an array have one charter; extend all of it: muster extend {array}"
            )
        job = job_named(self._service.fold, job_id)
        assert job is not None
        if not may_act_on(person, job.owner, job.team, self._service.fold.tenancy, job.charter.owner):
            raise Forbidden(f"job {job.id} is {job.owner}'s; only they, a lead of their team or an admin may")
        return job

    def _charter(self, job: Job, body: ExtendBody) -> Charter:
        if body.budget is None and body.until is None and body.time is None:
            raise BadInput(
                "nothing to extend; say a budget (300GPUh), a date (2026-12-01) or a time limit (12h)"
            )
        until = None if body.until is None else new_date(body.until, job.charter.until, self._service.wall())
        charter = extended(job.charter, budget=body.budget, until=until)
        if body.budget is not None and charter.budget is not None and self._service.budgets is not None:
            self._service.budgets.check_extension(of_job(job.id), charter.budget)
        return charter

    def _limit(self, person: Person, job: Job, body: ExtendBody) -> float | None:
        """Another time limit; None: as it is."""
        if body.time is None:
            return None
        if job.adopted is not None:
            engine = job.adopted.capitalize()
            raise IllegalTransition(f"the time limit of job {job.id} is {engine}'s; have it changed there")
        limit, most = new_limit(body.time, job.time_limit_seconds), self._most_seconds(person)
        if most is not None and limit > most:
            raise BadInput(f"jobs may run {show_seconds(most)} at most here")
        if any(r.running is not None and r.running.behind is not None for r in self._records(job)):
            raise IllegalTransition(f"job {job.id} is about to start; extend it in a moment")
        return limit

    def _records(self, job: Job) -> list[Record]:
        return records_of(self._service.fold, of_job(job.id))

    def _orders(self, job: Job, limit: float | None) -> list[Limit]:
        """For those that run."""
        if limit is None:
            return []
        seconds = None if math.isinf(limit) else limit
        running = [record.running for record in self._records(job) if record.running is not None]
        return [Limit(one.job.id, one.attempt, seconds) for one in running]


def new_limit(text: str, before: float | None) -> float:
    """``12h``, or ``+2h`` more; infinite: none."""
    if not text.strip().startswith("+"):
        return parse_limit(text)
    if before is None:
        raise BadInput("it has no time limit that could be extended; write one like 12h")
    return before + parse_limit(text.strip()[1:])


def new_date(text: str, before: float | None, now: float) -> float:
    """``2026-12-01``, or ``+7d``: so much later than it was, or if there was none than now."""
    until = parse_end(text, max(now, before or now))
    if until <= now:
        raise BadInput("until: that date has passed; write one that is still to come")
    return until
