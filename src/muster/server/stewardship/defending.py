"""Defending and reviving: a named person wants work to go on, says why, and until when.

Only who answers for it, a lead of the team or an admin may. A defence reaches so far and no further; it
changes the charter with it, in one fact. What was stopped comes back as a new job with the same content, that
finds the old one's checkpoints.
"""

from typing import Annotated

import msgspec
from msgspec.structs import replace

from muster.application.options import read_options
from muster.model.charter import Charter
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import ArraySubmitted, Submitted
from muster.model.job import Job
from muster.model.stewardship import Defended, Effort, Subject, of_effort, of_job, split
from muster.model.units import DAY, show_seconds
from muster.server.answers import JobView
from muster.server.commands import Commands
from muster.server.errors import Forbidden, NotFound, StoreTrouble
from muster.server.people import Person, may_act_on
from muster.server.service import Service
from muster.server.stewardship.efforts import goes_on, hand_over
from muster.server.stewardship.ending import is_ending
from muster.server.stewardship.review import Reviewing
from muster.server.stewardship.subjects import records_of
from muster.server.stewardship.words import is_undefended
from muster.steward.budget import extended
from muster.store.reviews import Revivable, origin_of
from muster.store.stewardship import why_paused

_LEAST_WORDS = 2


Sentence = Annotated[str, msgspec.Meta(max_length=500)]
Short = Annotated[str, msgspec.Meta(max_length=64)]


class DefendBody(msgspec.Struct, forbid_unknown_fields=True):
    """A reason and a new end; and what else of the charter is another from now on."""

    because: Sentence
    until: Short
    success: list[Sentence] | None = None
    failure: list[Sentence] | None = None
    budget: Short | None = None


class Defending:
    """What people can say about work that is in question."""

    def __init__(self, service: Service, commands: Commands) -> None:
        self._service, self._commands = service, commands

    @property
    def _reviewing(self) -> Reviewing:
        reviewing = self._service.reviewing
        assert reviewing is not None, "a server reviews"
        return reviewing

    # --- Defending ----------------------------------------------------------------------------------

    async def job(self, person: Person, job_id: str, body: DefendBody) -> Defended:
        job = self._living(job_id)
        if job.effort is not None and job.effort in self._service.fold.stewardship.efforts:
            raise BadInput(
                f"job {job_id} is part of effort {job.effort}, which is defended as one: "
                f"muster defend {job.effort}"
            )
        self._check_may(person, job)
        charter = self._amended(person, of_job(job_id), job.charter, job.owner, body)
        return await self._said(of_job(job_id), person, body, charter)

    async def effort(self, person: Person, name: str, body: DefendBody) -> Defended:
        if name not in self._service.fold.stewardship.efforts:
            raise NotFound(f"there is no effort {name[:40]!r}; muster effort ls lists them")
        effort = self._service.fold.stewardship.open_effort(name)
        self._check_may_effort(person, effort)
        charter = self._amended(person, of_effort(name), effort.charter, effort.owner, body)
        if effort.paused is not None and is_undefended(effort.paused):
            goes_on(self._service, name, person.name, "")
        return await self._said(of_effort(name), person, body, charter)

    async def _said(self, subject: Subject, person: Person, body: DefendBody, charter: Charter) -> Defended:
        assert charter.until is not None
        because = _reason(body.because)
        event = Defended(self._service.now(), subject, person.name, because, charter.until, charter)
        self._service.note(event)
        kind, name = split(subject)
        if kind == "effort" and charter.owner is not None:
            hand_over(
                self._service, records_of(self._service.fold, subject), charter.owner, person.name, because
            )
        self._reviewing.answered(name if kind == "job" else None)
        await self._service.durable()
        return event

    def _living(self, job_id: str) -> Job:
        """A job, or an array as one."""
        array, _, member = job_id.partition("_")
        if member:
            raise BadInput(f"{job_id} is a member; an array is defended as one: muster defend {array}")
        if self._service.fold.stewardship.reviews.stopped(job_id) and not self._service.members_of(job_id):
            raise IllegalTransition(f"job {job_id} was stopped; bring it back with: muster revive {job_id}")
        records = self._commands.found(job_id)
        if all(record.running is not None and is_ending(record.running) for record in records):
            raise IllegalTransition(
                f"job {job_id} is on its way out; bring it back with: muster revive {job_id}"
            )
        entry = records[0].waiting or records[0].running
        assert entry is not None
        return entry.job

    def _check_may(self, person: Person, job: Job) -> None:
        if not may_act_on(person, job.owner, job.team, self._service.fold.tenancy, job.charter.owner):
            owner = job.charter.owner or job.owner
            raise Forbidden(
                f"job {job.id} is {owner or 'nobody'}'s; only they, a lead of their team or an admin may"
            )

    def _check_may_effort(self, person: Person, effort: Effort) -> None:
        if not may_act_on(person, effort.owner, effort.team, self._service.fold.tenancy):
            raise Forbidden(
                f"effort {effort.name} is {effort.owner}'s; only they, a lead of their team or an admin may"
            )

    def _amended(
        self, person: Person, subject: Subject, charter: Charter, owner: str, body: DefendBody
    ) -> Charter:
        """With the new end. Who defends what is nobody's answers for it from now on."""
        _reason(body.because)
        said = {"until": body.until, "success": body.success, "failure": body.failure}
        wall, longest = self._service.wall(), self._reviewing.rules.longest_seconds
        asked = read_options({key: value for key, value in said.items() if value is not None}, wall)
        if asked.until is None or asked.until <= wall:
            raise BadInput("until: that date has passed; write one that is still to come")
        if asked.until > wall + longest + DAY:  # a date is meant with its last moment
            raise BadInput(f"until: a defence holds {show_seconds(longest)} at most; choose an earlier date")
        defended = replace(
            charter,
            success=charter.success if asked.success is None else asked.success,
            failure=charter.failure if asked.failure is None else asked.failure,
            owner=self._answers(person, charter.owner or owner),
        )
        defended = extended(defended, budget=body.budget, until=asked.until)
        if body.budget is not None and defended.budget and self._service.budgets is not None:
            self._service.budgets.check_extension(subject, defended.budget)
        return defended

    def _answers(self, person: Person, known: str) -> str:
        return known if known and self._reviewing.present(known) else person.name

    # --- Reviving -----------------------------------------------------------------------------------

    async def revive(self, person: Person, job_id: str, because: str, until: str | None) -> JobView:
        """With a reason it is defended; without one it comes back as it was, and the next review asks."""
        if self._service.journal.sick is not None:
            raise StoreTrouble(self._service.journal.sick)
        stopped = self._stopped(job_id)
        self._check_may(person, stopped.job)
        paused = self._paused_effort(stopped.job)
        charter = self._revived(person, stopped.job, because, until)
        new, now = self._service.next_id(), self._service.now()
        event = _again(stopped, new, now, charter)
        self._service.note(event)
        if paused is not None:
            goes_on(self._service, paused, person.name, f"job {job_id} was brought back")
        if because and charter.until is not None:
            said = Defended(now, of_job(new), person.name, _reason(because), charter.until, charter)
            self._service.note(said)
        self._reviewing.answered()
        await self._service.durable(new)
        return self._commands.view(new)

    def _paused_effort(self, job: Job) -> str | None:
        """The effort that a review has paused with the job, and that goes on with it."""
        stewardship = self._service.fold.stewardship
        if job.effort is None or job.effort not in stewardship.efforts:
            return None
        effort = stewardship.open_effort(job.effort)
        if effort.paused is None:
            return None
        if not is_undefended(effort.paused):
            raise IllegalTransition(why_paused(effort.name))
        return effort.name

    def _revived(self, person: Person, job: Job, because: str, until: str | None) -> Charter:
        before, wall = job.charter, self._service.wall()
        if until is not None:
            said = DefendBody(because or f"brought back by {person.name}", until)
            charter = self._amended(person, of_job(job.id), before, job.owner, said)
        elif before.until is not None and before.until <= wall:
            raise BadInput("its date has passed; say until when it goes on, like --until 2026-12-01 or +7d")
        elif because and before.until is None:
            raise BadInput("a defence has an end; say until when, like --until 2026-12-01 or +7d")
        else:
            charter = replace(before, owner=self._answers(person, before.owner or job.owner))
        return replace(charter, purpose=charter.purpose or (_reason(because) if because else None))

    def _stopped(self, job_id: str) -> Revivable:
        array, _, member = job_id.partition("_")
        found = self._service.fold.stewardship.reviews.stopped(job_id)
        if member and self._service.fold.stewardship.reviews.stopped(array) is not None:
            raise BadInput(f"{job_id} is a member; an array comes back as one: muster revive {array}")
        if found is None:
            view = self._commands.view(job_id)
            raise IllegalTransition(f"job {job_id} was not stopped by a review or its charter ({view.state})")
        if self._service.members_of(job_id):
            raise IllegalTransition(f"job {job_id} is still on its way out; try again in a moment")
        if found.revived_by is not None:
            raise IllegalTransition(f"job {job_id} was brought back already, as job {found.revived_by}")
        revive = self._reviewing.rules.revive_seconds
        if self._service.now() - found.at > revive:
            raise IllegalTransition(
                f"job {job_id} ended more than {show_seconds(revive)} ago; submit it anew"
            )
        return found


def _again(stopped: Revivable, new: str, now: float, charter: Charter) -> Submitted | ArraySubmitted:
    """The same content, that goes on where the old one left off."""
    job = replace(
        stopped.job,
        id=new,
        submitted_at=now,
        charter=charter,
        held=False,
        begin_at=None,
        after=(),
        array=None,
        params=() if stopped.members else stopped.job.params,
        revives=origin_of(stopped.job),
    )
    if stopped.job.array is None:
        return Submitted(now, job)
    members = sorted(stopped.members)
    indices, params = tuple(index for index, _ in members), tuple(params for _, params in members)
    return ArraySubmitted(now, job, indices, stopped.job.array.most_at_once, params=params)


def _reason(text: str) -> str:
    """In one line, and more than a shrug."""
    said = " ".join(text.split())
    words = {word.strip(".,!?…").lower() for word in said.split()} - {""}
    if len(words) < _LEAST_WORDS:
        raise BadInput("because: say in a sentence why it should go on; whoever reads the minutes will ask")
    return said
