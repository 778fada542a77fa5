"""Efforts: one charter and one owner over many jobs, and the story of it.

An owner's attention is short: so many efforts may be under way at once, and who opens another says which
one pauses. A paused effort starts nothing; what runs of it goes on to its end.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from muster.application.names import nearest, parse_name
from muster.application.options import read_options
from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import Amended, Evicting
from muster.model.job import Job
from muster.model.plan import Evict
from muster.model.state import State
from muster.model.stewardship import (
    Effort,
    EffortAmended,
    EffortClosed,
    EffortGoesOn,
    EffortNoted,
    EffortOpened,
    EffortPaused,
    of_effort,
)
from muster.model.tenancy import ROOT
from muster.server.errors import Forbidden, NotFound
from muster.server.people import Person, default_team, may_act_on, may_submit
from muster.server.service import Service
from muster.server.stewardship import ending
from muster.server.stewardship.door import named_for_effort, present_owner
from muster.server.stewardship.extending import new_date
from muster.server.stewardship.pausing import release
from muster.server.stewardship.subjects import job_named, job_of
from muster.steward.budget import extended
from muster.store.records import Record
from muster.store.reviews import unit_of
from muster.store.stewardship import Stewardship, why_paused

MUSTER = "muster"  # who acts when nobody in particular does
CHARTER_KEYS = frozenset({"owner", "for", "success", "failure", "budget", "until"})
MOST_NOTE = 2000
_MOST_HINTS = 500  # names that are compared with one that is not known
_TERMS = ("budget", "until")


class Efforts:
    """What can be done with efforts, by a person or by the steward."""

    def __init__(self, service: Service, most_under_way: int) -> None:
        self._service, self.most_under_way = service, most_under_way

    # --- By people ----------------------------------------------------------------------------------

    async def new(
        self, person: Person, name: str, options: Mapping[str, Any], *, first_wins: bool, pausing: str | None
    ) -> Effort:
        name = parse_name(name)
        _check_plain(name)
        now, said = self._service.now(), dict(options)
        team = parse_name(said.pop("team")) if said.get("team") else default_team(person)
        charter = self._charter(person, Charter(owner=person.name), said)
        owner = charter.owner or person.name
        if charter.purpose is None:
            raise BadInput('an effort has a purpose; say it in one sentence: --for "…"')
        self._check_budget(name, charter, None)
        if (why_not := may_submit(person, team, person.name)) is not None:
            raise Forbidden(why_not)
        paused = self._check_attention(person, owner, pausing)
        effort = Effort(
            name=name,
            charter=charter,
            team=team,
            opened_at=now,
            opened_by=person.name,
            first_wins=first_wins,
        )
        self._service.note(EffortOpened(now, effort))
        if paused is not None:
            self._pause(paused, person.name, f"makes room for {name}")
        self._tell_owner(person, name)
        await self._service.durable()
        return effort

    async def note(self, person: Person, name: str, text: str) -> Effort:
        """Anybody of the team may write down what should not be forgotten."""
        effort = self.found(name)
        text = text.strip()
        if not text or len(text) > MOST_NOTE:
            raise BadInput(f"a note has something to say, in at most {MOST_NOTE:,} letters")
        if not (self._may_act(person, effort) or self._may_join(person, effort)):
            raise Forbidden(
                f"effort {name} is {effort.owner}'s; only they and their team may add to its story"
            )
        self._service.note(EffortNoted(self._service.now(), name, person.name, text))
        await self._service.durable()
        return self.found(name)

    async def extend(self, person: Person, name: str, options: Mapping[str, Any], because: str) -> Effort:
        """Another budget, date, owner, purpose or exit, with a name and a reason."""
        effort = self._acted_on(person, name)
        if not because.strip():
            raise BadInput('say why, for those who read its story later: --because "…"')
        charter = self._extended(person, effort.charter, dict(options))
        if charter == effort.charter:
            raise BadInput(
                "nothing would change; say what: --budget, --until, --owner, --for, --success, --fail"
            )
        self._check_budget(name, charter, effort.charter.budget)
        is_handed_over = charter.owner not in (None, effort.owner)
        if is_handed_over and effort.paused is None:
            self._check_attention(person, charter.owner or "", None)
        self._service.note(EffortAmended(self._service.now(), name, charter, person.name, because.strip()))
        if is_handed_over:
            hand_over(self._service, self.records(name), charter.owner or "", person.name, because.strip())
            self._tell_owner(person, name)
        await self._service.durable()
        return self.found(name)

    def _check_budget(self, name: str, charter: Charter, before: str | None) -> None:
        budgets = self._service.budgets
        if budgets is not None and charter.budget and charter.budget != before:
            budgets.check_extension(of_effort(name), charter.budget)

    def _tell_owner(self, person: Person, name: str) -> None:
        for message in named_for_effort(person, self.found(name)):
            self._service.tell(message)

    async def pause(self, person: Person, name: str, because: str) -> Effort:
        effort = self._acted_on(person, name)
        if effort.paused is not None:
            raise IllegalTransition(f"effort {name} is paused already: {effort.paused}")
        self._pause(effort, person.name, because.strip() or "no reason was given")
        await self._service.durable()
        return self.found(name)

    async def go_on(self, person: Person, name: str) -> Effort:
        effort = self._acted_on(person, name)
        if effort.paused is None:
            raise IllegalTransition(f"effort {name} is not paused")
        self._check_attention(person, effort.owner, None)
        goes_on(self._service, name, person.name, "")
        await self._service.durable()
        return self.found(name)

    async def close(self, person: Person, name: str, verdict: Verdict, because: str) -> Effort:
        self._acted_on(person, name)
        self.end(name, verdict, person.name, because.strip())
        await self._service.durable()
        return self.found(name)

    # --- By the steward, too ------------------------------------------------------------------------

    def end(self, name: str, verdict: Verdict, by: str, because: str) -> None:
        """It is over, and with it all its jobs."""
        self._service.note(EffortClosed(self._service.now(), name, verdict, by, because))
        ending.end(self._service, self.records(name), verdict, _why_over(name, verdict, because))

    def finish(self) -> None:
        """After a start: what was closed when the server ended may have jobs that were not told yet."""
        for effort in list(self._state.efforts.values()):
            if not effort.is_open and self._state.tallies[effort.name].living:
                verdict = effort.verdict or Verdict.LOST
                said = _why_over(effort.name, verdict, effort.because)
                ending.end(self._service, self.records(effort.name), verdict, said)

    def _pause(self, effort: Effort, by: str, because: str) -> None:
        """Who waits is held; who is lined up goes back to the queue, and is held there."""
        now, why = self._service.now(), why_paused(effort.name)
        self._service.note(EffortPaused(now, effort.name, by, because))
        records = list(self.records(effort.name))
        ending.hold_back(self._service, [r for r in records if r.running is None], why)
        for running in (r.running for r in records if r.running is not None):
            if running.behind is not None and running.state is not State.STOPPING:
                job, attempt = running.job.id, running.attempt
                self._service.note(Evicting(now, job, attempt, why), Evict(job, attempt, why))

    # --- Joining ------------------------------------------------------------------------------------

    def joined(self, person: Person, job: Job) -> Job:
        """The job with what its effort says."""
        if job.effort is None:
            return job
        effort = self._state.open_effort(self.found(job.effort).name)
        if not (self._may_act(person, effort) or self._may_join(person, effort)):
            raise Forbidden(
                f"effort {effort.name} is {effort.owner}'s; only they and their team may add to it"
            )
        charter = replace(
            job.charter, owner=effort.owner, purpose=job.charter.purpose or effort.charter.purpose
        )
        return replace(job, charter=charter)

    # --- Looking ------------------------------------------------------------------------------------

    def found(self, name: str) -> Effort:
        effort = self._state.efforts.get(name)
        if effort is None:
            known = [e.name for e in self._state.efforts.values() if e.is_open][-_MOST_HINTS:]
            hint = nearest(name, known) if known else "open one with muster effort new"
            raise NotFound(f"there is no effort {name[:80]!r}; {hint}")
        return effort

    def records(self, name: str) -> Iterator[Record]:
        """Those of its jobs that have not ended."""
        for record in list(self._service.fold.records.values()):
            entry = record.running or record.waiting
            if entry is not None and entry.job.effort == name:
                yield record

    @property
    def _state(self) -> Stewardship:
        return self._service.fold.stewardship

    def _acted_on(self, person: Person, name: str) -> Effort:
        effort = self._state.open_effort(self.found(name).name)
        if not self._may_act(person, effort):
            raise Forbidden(
                f"effort {name} is {effort.owner}'s; only they, a lead of their team or an admin may"
            )
        return effort

    def _may_act(self, person: Person, effort: Effort) -> bool:
        return may_act_on(person, effort.owner, effort.team, self._service.fold.tenancy)

    def _may_join(self, person: Person, effort: Effort) -> bool:
        return effort.team != ROOT and person.teams is not None and effort.team in person.teams

    def _charter(self, person: Person, before: Charter, options: Mapping[str, Any]) -> Charter:
        unknown = set(options) - CHARTER_KEYS
        if unknown:
            odd = min(unknown)[:40]
            raise BadInput(f"{odd!r} is not part of a charter; {nearest(odd, sorted(CHARTER_KEYS))}")
        terms = {key: str(options[key]) for key in _TERMS if options.get(key) is not None}
        asked = read_options({key: options[key] for key in options if key not in terms}, 0.0)
        fields = ("owner", "purpose", "success", "failure")
        said = {field: value for field in fields if (value := getattr(asked, field)) is not None}
        if asked.owner is not None:
            said["owner"] = present_owner(asked.owner, person, self._service.directory)
        return self._with_terms(replace(before, **said), **terms)

    def _with_terms(self, charter: Charter, budget: str | None = None, until: str | None = None) -> Charter:
        """Another budget (``+100 GPUh``: so much more) and another date (``+7d``: so much later)."""
        date = None if until is None else new_date(until, charter.until, self._service.wall())
        return extended(charter, budget=budget, until=date)

    def _extended(self, person: Person, before: Charter, options: dict[str, Any]) -> Charter:
        """Budget and date may be more of what they were: ``+100GPUh``, ``+7d``."""
        budget, until = options.pop("budget", None), options.pop("until", None)
        charter = self._charter(person, before, options)
        if until is not None:
            until = new_date(str(until), charter.until, self._service.wall())
        return extended(charter, budget=None if budget is None else str(budget), until=until)

    def _check_attention(self, person: Person, owner: str, pausing: str | None) -> Effort | None:
        """Whether the owner can answer for one more; the effort that pauses for it, if one was named."""
        paused = None if pausing is None else self._acted_on(person, pausing)
        names = self._service.directory.all_names(owner)
        under_way = [
            e.name
            for e in self._state.efforts.values()
            if e.is_open and e.paused is None and e.owner in names and e is not paused
        ]
        if len(under_way) >= self.most_under_way:
            raise IllegalTransition(
                f"{owner} has {len(under_way)} efforts under way ({', '.join(under_way)}), and attention is "
                f"short: say which one pauses, with --pausing NAME, or close one (muster effort close NAME)"
            )
        return paused


def _check_plain(name: str) -> None:
    """Messages tell people commands with this name in them: a shell has to take it as it is."""
    if name.removeprefix("s").replace("_", "").isdigit():
        raise BadInput(f"{name!r} would be taken for a job; give the effort a name with a letter in it")
    if not name[0].isalnum() or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise BadInput(f"{name!r} would be taken apart by a shell; use letters, digits, '.', '_' and '-'")


def hand_over(service: Service, records: Iterable[Record], owner: str, by: str, because: str) -> None:
    """An effort has another owner, and so have its jobs: one person answers for all of it."""
    now = service.now()
    for unit in dict.fromkeys(unit_of(job_of(record)) for record in records):
        job = job_named(service.fold, unit)
        if job is not None and job.charter.owner != owner:
            service.note(Amended(now, unit, replace(job.charter, owner=owner), by, because))


def goes_on(service: Service, name: str, by: str, because: str) -> None:
    """An effort that was paused, and of its jobs those that were held for it."""
    service.note(EffortGoesOn(service.now(), name, by, because))
    why = why_paused(name)
    for record in list(service.fold.records.values()):
        waiting = record.waiting
        if record.state is State.HELD and waiting and waiting.held_because == why:
            release(service, waiting.job)


def _why_over(name: str, verdict: Verdict, because: str) -> str:
    return f"effort {name} was closed as {verdict}" + (f": {because}" if because else "")
