"""What can be asked about efforts, and who answers."""

from typing import Annotated, Any, Literal

import msgspec

from muster.model.charter import Verdict
from muster.model.stewardship import Effort, of_effort
from muster.server.answers import BudgetView, EffortView, StoryLine
from muster.server.answers import Efforts as EffortList
from muster.server.http import Call, Route
from muster.server.service import Service
from muster.server.stewardship.efforts import Efforts

Reason = Annotated[str, msgspec.Meta(max_length=500)]


class EffortsQuery(msgspec.Struct, forbid_unknown_fields=True):
    all: bool = False  # those that are closed, too
    owner: str | None = None
    mine: bool = False


class NewEffort(msgspec.Struct, forbid_unknown_fields=True):
    """``charter`` has the keys of a job's: for, owner, success, failure, budget, until; and team."""

    name: str
    charter: dict[str, Any]
    first_wins: bool = False  # the success of one of its jobs ends the others
    pausing: str | None = None  # the effort that pauses for it


class NoteBody(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    because: Reason
    charter: dict[str, Any] = {}


class BecauseBody(msgspec.Struct, forbid_unknown_fields=True):
    because: Reason = ""


class CloseBody(msgspec.Struct, forbid_unknown_fields=True):
    verdict: Literal["won", "lost"]
    because: Reason = ""


class EffortRoutes:
    """The handlers."""

    def __init__(self, service: Service, efforts: Efforts) -> None:
        self._service, self._efforts = service, efforts

    async def efforts(self, call: Call) -> EffortList:
        q: EffortsQuery = call.query
        owner = call.person.name if q.mine else q.owner
        known = self._service.fold.stewardship.efforts.values()
        chosen = [e for e in known if (q.all or e.is_open) and owner in (None, e.owner)]
        return EffortList([self._view(effort) for effort in chosen])

    async def effort(self, call: Call) -> EffortView:
        return self._whole(self._efforts.found(call.path[0]))

    async def new(self, call: Call) -> EffortView:
        body: NewEffort = call.body
        effort = await self._efforts.new(
            call.person, body.name, body.charter, first_wins=body.first_wins, pausing=body.pausing
        )
        return self._whole(effort)

    async def note(self, call: Call) -> EffortView:
        return self._whole(await self._efforts.note(call.person, call.path[0], call.body.text))

    async def extend(self, call: Call) -> EffortView:
        body: ExtendBody = call.body
        return self._whole(await self._efforts.extend(call.person, call.path[0], body.charter, body.because))

    async def pause(self, call: Call) -> EffortView:
        return self._whole(await self._efforts.pause(call.person, call.path[0], call.body.because))

    async def resume(self, call: Call) -> EffortView:
        return self._whole(await self._efforts.go_on(call.person, call.path[0]))

    async def close(self, call: Call) -> EffortView:
        body: CloseBody = call.body
        verdict = Verdict(body.verdict)
        return self._whole(await self._efforts.close(call.person, call.path[0], verdict, body.because))

    def _view(self, effort: Effort) -> EffortView:
        tally = self._service.fold.stewardship.tallies[effort.name]
        charter = effort.charter
        return EffortView(
            name=effort.name,
            owner=effort.owner,
            team=effort.team,
            purpose=charter.purpose,
            success=list(charter.success),
            failure=list(charter.failure),
            budget=charter.budget,
            spending=self._spending(effort),
            until=charter.until,
            first_wins=effort.first_wins,
            opened_at=effort.opened_at,
            opened_by=effort.opened_by,
            paused=effort.paused,
            verdict=effort.verdict,
            closed_at=effort.closed_at,
            because=effort.because or None,
            living=tally.living,
            ended=dict(tally.ended),
        )

    def _spending(self, effort: Effort) -> BudgetView | None:
        budgets = self._service.budgets
        return None if budgets is None or not effort.is_open else budgets.view(of_effort(effort.name))

    def _whole(self, effort: Effort) -> EffortView:
        view = self._view(effort)
        story = self._service.fold.stewardship.stories.get(effort.name, ())
        view.story = [StoryLine(one.at, one.what.value, one.text, one.by) for one in story]
        entries = (record.running or record.waiting for record in self._efforts.records(effort.name))
        view.jobs = [entry.job.id for entry in entries if entry is not None]
        return view

    def table(self) -> list[Route]:
        every, one, view = "/api/v1/efforts", "/api/v1/efforts/{id}", EffortView
        errors = (403, 404, 409, 507)
        acts = (
            ("note", self.note, NoteBody, "Write into its story."),
            ("extend", self.extend, ExtendBody, "Another budget, date, owner or exit, with a reason."),
            ("pause", self.pause, BecauseBody, "Start nothing of it any more; what runs goes on."),
            ("resume", self.resume, BecauseBody, "Let its jobs start again."),
            ("close", self.close, CloseBody, "It is over, won or lost, and its jobs end."),
        )
        return [
            Route("GET", every, self.efforts, EffortList, "Efforts under way.", query=EffortsQuery),
            Route(
                "POST", every, self.new, view, "Open one.", body=NewEffort, status=201, errors=(403, 409, 507)
            ),
            Route("GET", one, self.effort, view, "An effort and its story."),
            *(
                Route("POST", f"{one}/{verb}", handler, view, summary, body=body, errors=errors)
                for verb, handler, body, summary in acts
            ),
        ]
