"""Efforts: one charter and one owner over many jobs, and the story of it.

An owner's attention is short: so many efforts may be under way at once, and who opens another says which
one pauses. A paused effort starts nothing; what runs of it goes on to its end.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from muster.application.names import nearest, parse_name
from muster.application.options import read_options
from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import Held, Released
from muster.model.job import Job
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
from muster.server.stewardship.door import present_owner
from muster.server.stewardship.extending import new_date
from muster.steward.budget import extended
from muster.store.records import Record
from muster.store.stewardship import Stewardship

MUSTER = "muster"  # who acts when nobody in particular does
CHARTER_KEYS = frozenset({"owner", "for", "success", "failure", "budget", "until"})
MOST_NOTE = 2000


class Efforts:
    """What can be done with efforts, by a person or by the steward."""

    def __init__(self, service: Service, most_under_way: int) -> None:
        self._service, self.most_under_way = service, most_under_way

    # --- By people ----------------------------------------------------------------------------------

    async def new(
        self, person: Person, name: str, options: Mapping[str, Any], *, first_wins: bool, pausing: str | None
    ) -> Effort:
        name = parse_name(name)
        if name.replace("_", "").isdigit():
            raise BadInput(f"{name!r} would be taken for a job; give the effort a name with a letter in it")
        now, said = self._service.now(), dict(options)
        team = parse_name(said.pop("team")) if said.get("team") else default_team(person)
        charter = self._charter(person, Charter(owner=person.name), said)
        owner = charter.owner or person.name
        if charter.purpose is None:
            raise BadInput('an effort has a purpose; say it in one sentence: --for "…"')
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
        budgets = self._service.budgets
        if budgets is not None and charter.budget and charter.budget != effort.charter.budget:
            budgets.check_extension(of_effort(name), charter.budget)
        self._service.note(EffortAmended(self._service.now(), name, charter, person.name, because.strip()))
        await self._service.durable()
        return self.found(name)

    async def pause(self, person: Person, name: str, because: str) -> Effort:
        effort = self._acted_on(person, name)
        if effort.paused is not None:
            raise IllegalTransition(f"effort {name} is paused already: {effort.paused}")
        self._pause(effort, person.name, because.strip() or f"paused by {person.name}")
        await self._service.durable()
        return self.found(name)

    async def go_on(self, person: Person, name: str) -> Effort:
        effort = self._acted_on(person, name)
        if effort.paused is None:
            raise IllegalTransition(f"effort {name} is not paused")
        self._check_attention(person, effort.owner, None)
        self.goes_on(effort, person.name, "")
        await self._service.durable()
        return self.found(name)

    async def close(self, person: Person, name: str, verdict: Verdict, because: str) -> Effort:
        self._acted_on(person, name)
        self.end(name, verdict, person.name, because.strip() or f"closed by {person.name}")
        await self._service.durable()
        return self.found(name)

    # --- By the steward, too ------------------------------------------------------------------------

    def end(self, name: str, verdict: Verdict, by: str, because: str) -> None:
        """It is over, and with it all its jobs."""
        self._service.note(EffortClosed(self._service.now(), name, verdict, by, because))
        ending.end(
            self._service, self.records(name), verdict, f"effort {name} was closed as {verdict}: {because}"
        )

    def finish(self) -> None:
        """After a start: what was closed when the server ended may have jobs that were not told yet."""
        for effort in list(self._state.efforts.values()):
            if not effort.is_open and self._state.tallies[effort.name].living:
                said = f"effort {effort.name} was closed as {effort.verdict}: {effort.because}"
                ending.end(self._service, self.records(effort.name), effort.verdict or Verdict.LOST, said)

    def goes_on(self, effort: Effort, by: str, because: str) -> None:
        now = self._service.now()
        self._service.note(EffortGoesOn(now, effort.name, by, because))
        for record in list(self.records(effort.name)):
            waiting = record.waiting
            if record.state is State.HELD and waiting and waiting.held_because == _why_held(effort.name):
                self._service.note(Released(now, waiting.job.id))

    def _pause(self, effort: Effort, by: str, because: str) -> None:
        now = self._service.now()
        self._service.note(EffortPaused(now, effort.name, by, because))
        for record in list(self.records(effort.name)):
            if record.waiting is not None and record.state is State.QUEUED:
                self._service.note(Held(now, record.waiting.job.id, _why_held(effort.name)))

    # --- Joining ------------------------------------------------------------------------------------

    def joined(self, person: Person, job: Job) -> tuple[Job, str]:
        """The job with what its effort says, and why it is held back, if it is."""
        if job.effort is None:
            return job, ""
        effort = self._state.open_effort(self.found(job.effort).name)
        if not (self._may_act(person, effort) or self._may_join(person, effort)):
            raise Forbidden(
                f"effort {effort.name} is {effort.owner}'s; only they and their team may add to it"
            )
        charter = replace(
            job.charter, owner=effort.owner, purpose=job.charter.purpose or effort.charter.purpose
        )
        job = replace(job, charter=charter)
        if effort.paused is None or job.held:
            return job, ""
        return job, _why_held(effort.name)

    # --- Looking ------------------------------------------------------------------------------------

    def found(self, name: str) -> Effort:
        effort = self._state.efforts.get(name)
        if effort is None:
            known = [e.name for e in self._state.efforts.values() if e.is_open]
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
        now = self._service.wall()
        asked = read_options(dict(options), now)
        if asked.until is not None and asked.until <= now:
            raise BadInput("until: that date has passed; write one that is still to come")
        fields = ("owner", "purpose", "success", "failure", "budget", "until")
        said = {field: value for field in fields if (value := getattr(asked, field)) is not None}
        if asked.owner is not None:
            said["owner"] = present_owner(asked.owner, person, self._service.directory)
        return replace(before, **said)

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


def _why_held(name: str) -> str:
    return f"effort {name} is paused; it goes on with: muster effort resume {name}"
