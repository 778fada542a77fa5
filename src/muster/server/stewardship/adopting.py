"""Adopting: somebody says what a job submitted elsewhere is for, how it ends, and who answers for it.

Such jobs are seen, measured and listed without anybody's doing. What they lack is a charter; who gives them
one answers for them from then on, or names who does.
"""

from collections.abc import Collection
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from muster.application.asked import Asked
from muster.application.options import read_options
from muster.model.charter import Charter
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import Amended
from muster.model.job import Job
from muster.server.answers import JobView
from muster.server.commands import Commands
from muster.server.config_values import shown
from muster.server.errors import Forbidden
from muster.server.http import Call, Route
from muster.server.people import Person, may_act_on, may_take
from muster.server.service import Service
from muster.server.stewardship.efforts import Efforts
from muster.server.stewardship.subjects import job_named
from muster.steward.purpose import says_nothing

_V1 = "/api/v1"
OPTIONS = ("for", "success", "failure", "budget", "until", "owner", "effort")
_WORDS = {"for": "purpose"}


class AdoptBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options as ``muster submit`` has them: for, success, failure, budget, until, owner, effort."""

    options: Annotated[dict[str, Any], msgspec.Meta(max_length=len(OPTIONS))] = {}


class Adoption:
    """The handler."""

    def __init__(self, service: Service, commands: Commands, efforts: Efforts) -> None:
        self._service, self._commands, self._efforts = service, commands, efforts

    async def adopt(self, call: Call) -> JobView:
        person, job_id, service = call.person, call.path[0], self._service
        self._commands.found(job_id)
        job = self._adopted(job_id)
        self._check_may(person, job)
        asked = self._asked(call.body.options)
        charter = self._charter(person, job, asked, call.body.options)
        if asked.effort is not None:
            charter = self._in_effort(person, job, asked.effort, charter)
        because = f"adopted by {person.name}"
        service.note(Amended(service.now(), job.id, charter, person.name, because, effort=asked.effort))
        if service.reviewing is not None:
            service.reviewing.answered(job.id)
        await service.durable()
        return self._commands.view(job_id)

    def _adopted(self, job_id: str) -> Job:
        array, _, index = job_id.partition("_")
        if index:
            raise BadInput(f"the members of an array have one charter; adopt all of it: muster adopt {array}")
        job = job_named(self._service.fold, job_id)
        if job is None or job.adopted is None:
            raise IllegalTransition(
                f"job {job_id} was submitted to Muster, and has the charter that it was given; "
                f"to let it go on: muster defend {job_id}"
            )
        return job

    def _check_may(self, person: Person, job: Job) -> None:
        owner = job.charter.owner or job.owner
        if may_act_on(person, job.owner, job.team, self._service.fold.tenancy, owner):
            return
        if may_take(person, job.team) and not self._service.directory.present(owner):
            return
        raise Forbidden(
            f"job {job.id} is {owner}'s; only they, a lead of their team or an admin may adopt it"
        )

    def _asked(self, options: dict[str, Any]) -> Asked:
        unknown = [key for key in options if key not in OPTIONS]
        if unknown:
            raise BadInput(f"{shown(unknown[0])} is nothing to adopt a job with; known: {', '.join(OPTIONS)}")
        asked = read_options(options, self._service.wall())
        if asked.until is not None and asked.until <= self._service.wall():
            raise BadInput("until: that date has passed; write one that is still to come")
        return asked

    def _charter(self, person: Person, job: Job, asked: Asked, options: Collection[str]) -> Charter:
        """What is said replaces what was; who says it answers for what is nobody's."""
        said = {_WORDS.get(key, key): getattr(asked, _WORDS.get(key, key)) for key in options}
        said.pop("effort", None)
        charter = replace(job.charter, **said)
        empty = None if asked.purpose is None else says_nothing(asked.purpose, job.name)
        if empty is not None:
            raise BadInput(empty)
        directory = self._service.directory
        answers = charter.owner or (job.owner if directory.present(job.owner) else person.name)
        if not directory.present(answers):
            raise BadInput(f"owner: there is nobody called {shown(answers)} here")
        return replace(charter, owner=directory.now_called(answers))

    def _in_effort(self, person: Person, job: Job, effort: str, charter: Charter) -> Charter:
        """As its effort has it. What it has held in this attempt counts there, and it stays there."""
        if job.effort not in (None, effort):
            raise IllegalTransition(f"job {job.id} is part of effort {job.effort}, and stays there")
        return self._efforts.joined(person, replace(job, effort=effort, charter=charter)).charter

    def table(self) -> list[Route]:
        return [
            Route(
                "POST",
                f"{_V1}/jobs/{{id}}/adopt",
                self.adopt,
                JobView,
                "Give a job that was submitted elsewhere a charter, and somebody who answers for it.",
                body=AdoptBody,
                errors=(403, 404, 409, 507),
            )
        ]
