"""Charters over the API: what is missing of one before it is submitted, and taking over forgotten work.

A command line in a terminal asks for what is missing. It knows nothing of conditions, budgets and policies:
it sends what it has, is told what to ask, and sends each answer to be looked at before it asks the next.
"""

from typing import Annotated

import msgspec
from msgspec.structs import replace

from muster.application.options import read_option
from muster.application.request import Request
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
from muster.server.stewardship.subjects import job_named
from muster.steward.passing import Question, Require

_V1 = "/api/v1"
_CHARTER = ("for", "success", "failure", "budget", "until", "owner")  # options, each looked at by itself
_NO_CONDITION = "a time like 8h, a date like 2026-12-01 or a budget like '200 GPUh'"
_GIVING_UP = ("budget", "until", "time")  # what an answer may be, if it is no condition
Sentence = Annotated[str, msgspec.Meta(max_length=500)]


class CharterBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job: Request
    give_up: Annotated[str, msgspec.Meta(max_length=1000)] | None = (
        None  # a condition, a time, a date, a budget
    )


class TakeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    because: Sentence = ""


class CharterLook(msgspec.Struct):
    """How a job would stand if it were submitted."""

    require: Require
    name: str  # what it would be called
    missing: list[str]  # of owner, purpose and end
    asks: list[Question]  # what to ask a person, in this order
    problems: dict[str, str]  # what is wrong, by option; ``give_up`` of that answer
    meant: dict[str, str]  # the option that ``give_up`` is
    time_limit_seconds: float | None  # asked for, or by default


class Charters:
    """The handlers."""

    def __init__(self, service: Service, commands: Commands) -> None:
        self._service, self._commands = service, commands

    async def look(self, call: Call) -> CharterLook:
        """Changes nothing. What is wrong besides the charter is refused, as a submission would be."""
        body: CharterBody = call.body
        request, problems = self._sound(body.job)
        meant: dict[str, str] = {}
        if body.give_up is not None:
            try:
                meant = self._meant(body.give_up)
            except BadInput as error:
                problems["give_up"] = str(error).removeprefix("failure: ")
        request = replace(request, options={**request.options, **meant})
        entry = self._commands.built(call.person, request, only_look=True)
        judgement = entry.judgement
        if judgement.empty is not None:
            problems["for"] = judgement.empty
        return CharterLook(
            require=judgement.require,
            name=entry.job.name,
            missing=[str(lack) for lack in judgement.lacks],
            asks=list(judgement.asks),
            problems=problems,
            meant=meant,
            time_limit_seconds=entry.job.time_limit_seconds,
        )

    def _sound(self, request: Request) -> tuple[Request, dict[str, str]]:
        """The request without the options of its charter that can't be read, and why they can't."""
        options, problems = dict(request.options), dict[str, str]()
        for key in _CHARTER:
            try:
                self._read(key, options.get(key))
            except BadInput as error:
                problems[key] = str(error).removeprefix(f"{key}: ")
                del options[key]
        return replace(request, options=options), problems

    def _meant(self, text: str) -> dict[str, str]:
        """Which option an answer to *when to give up?* is. If none, it was meant as a condition."""
        for key in _GIVING_UP:
            try:
                self._read(key, text)
            except BadInput:
                continue
            return {key: text}
        if " " not in text.strip():
            raise BadInput(f"{shown(text)} is neither a condition nor {_NO_CONDITION}")
        self._read("failure", text)
        return {"failure": text}

    def _read(self, key: str, value: object) -> None:
        if value is not None:
            read_option(key, value, self._service.wall())

    # --- Taking over --------------------------------------------------------------------------------

    async def take(self, call: Call) -> JobView:
        """The person answers from now on for a job whose owner is gone. Whose it runs as stays."""
        person, job_id, service = call.person, call.path[0], self._service
        self._commands.found(job_id)
        array, _, index = job_id.partition("_")
        if index:
            raise BadInput(f"the members of an array have one owner; take all of it: muster take {array}")
        job = job_named(service.fold, job_id)
        assert job is not None
        self._check_may_take(person, job)
        me = service.directory.now_called(person.name)
        because = call.body.because or f"taken over from {_answers(job)}"
        service.note(Amended(service.now(), job.id, replace(job.charter, owner=me), person.name, because))
        await service.durable()
        return self._commands.view(job_id)

    def _check_may_take(self, person: Person, job: Job) -> None:
        owner, directory = _answers(job), self._service.directory
        tenancy = self._service.fold.tenancy
        if not may_act_on(person, job.owner, job.team, tenancy, owner) and not may_take(person, job.team):
            whose = f"team {shown(job.team)}" if job.team else "no team"
            raise Forbidden(
                f"job {job.id} is of {whose}; only who is in it, a lead above it or an admin may take it"
            )
        if directory.has_left(person.name):
            raise Forbidden(
                f"{person.name} has left, by the configuration, and can't answer for job {job.id}"
            )
        if person.is_called(owner):
            raise IllegalTransition(f"you answer for job {job.id} already")
        if owner and directory.present(owner):
            raise IllegalTransition(
                f"{owner} answers for job {job.id}, and is here; "
                f"it can be taken once they have left ([user.{directory.now_called(owner)}] left = true)"
            )

    def table(self) -> list[Route]:
        taking = "Answer for a job whose owner has left."
        return [
            Route(
                "POST",
                f"{_V1}/charter",
                self.look,
                CharterLook,
                "What a job lacks to pass muster; changes nothing.",
                body=CharterBody,
                errors=(403, 404, 413),
            ),
            Route(
                "POST",
                f"{_V1}/jobs/{{id}}/take",
                self.take,
                JobView,
                taking,
                body=TakeBody,
                errors=(403, 409, 507),
            ),
        ]


def _answers(job: Job) -> str:
    return job.charter.owner or job.owner
