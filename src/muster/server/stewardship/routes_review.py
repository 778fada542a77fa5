"""The routes of reviews, defences and revivals."""

import msgspec

from muster.server import answers
from muster.server.commands import Commands
from muster.server.errors import Forbidden, NotFound
from muster.server.http import Call, Route
from muster.server.people import may_act_on
from muster.server.service import Service
from muster.server.stewardship.defending import DefendBody, Defending, Sentence, Short
from muster.server.stewardship.review import Reviewing
from muster.server.stewardship.review_answers import (
    DefenceView,
    PastReviews,
    PastReviewView,
    ReviewView,
    defence_of,
    past_of,
    review_of,
)
from muster.store.reviews import PastReview

_V1 = "/api/v1"


class ReviveBody(msgspec.Struct, forbid_unknown_fields=True):
    because: Sentence = ""  # empty: it comes back undefended
    until: Short | None = None  # none: as it was


class CloseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing to say."""


class ReviewRoutes:
    """The handlers."""

    def __init__(self, service: Service, commands: Commands) -> None:
        self._service, self._defending = service, Defending(service, commands)

    @property
    def _reviewing(self) -> Reviewing:
        reviewing = self._service.reviewing
        assert reviewing is not None, "a server reviews"
        return reviewing

    async def review(self, _: Call) -> ReviewView:
        return review_of(self._reviewing, await self._reviewing.look_around())

    async def close(self, call: Call) -> PastReviewView:
        if call.person.role not in ("admin", "lead"):
            raise Forbidden("only a lead or an admin may close a review")
        number, tenancy = self._reviewing.check_closable().number, self._service.fold.tenancy
        await self._reviewing.close(
            call.person.name, lambda item: may_act_on(call.person, item.owner, item.team, tenancy)
        )
        await self._service.durable()
        return self._shown(self._reviewing.reviews.past[number], whole=True)

    async def reviews(self, _: Call) -> PastReviews:
        past = self._reviewing.reviews.past
        return PastReviews([self._shown(past[number], whole=False) for number in sorted(past, reverse=True)])

    async def minutes(self, call: Call) -> PastReviewView:
        past, number = self._reviewing.reviews.past, call.path[0]
        if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number) in past):
            known = f"the last is {max(past)}" if past else "none was closed yet"
            raise NotFound(f"there is no review {number[:20]!r}; {known}")
        return self._shown(past[int(number)], whole=True)

    def _shown(self, review: PastReview, *, whole: bool) -> PastReviewView:
        return past_of(review, self._reviewing.wall_ahead_seconds, whole=whole)

    async def defend_job(self, call: Call) -> DefenceView:
        said = await self._defending.job(call.person, call.path[0], call.body)
        return defence_of(said, self._times(said.subject), self._reviewing.wall_ahead_seconds)

    async def defend_effort(self, call: Call) -> DefenceView:
        said = await self._defending.effort(call.person, call.path[0], call.body)
        return defence_of(said, self._times(said.subject), self._reviewing.wall_ahead_seconds)

    def _times(self, subject: str) -> int:
        return len(self._service.fold.stewardship.defences[subject])

    async def revive(self, call: Call) -> answers.JobView:
        body: ReviveBody = call.body
        return await self._defending.revive(call.person, call.path[0], body.because, body.until)

    def table(self) -> list[Route]:
        errors = (403, 409, 507)
        defend = "A named person wants it to go on, says why, and until when."
        back = "Bring back what was stopped, as a new job that finds its checkpoints."
        return [
            Route("GET", f"{_V1}/review", self.review, ReviewView, "What consumes.", errors=(507,)),
            Route(
                "POST",
                f"{_V1}/review/close",
                self.close,
                PastReviewView,
                "Stop what nobody defends.",
                body=CloseBody,
                errors=errors,
            ),
            Route("GET", f"{_V1}/reviews", self.reviews, PastReviews, "Reviews that are closed."),
            Route("GET", f"{_V1}/reviews/{{id}}", self.minutes, PastReviewView, "One, with its minutes."),
            Route(
                "POST",
                f"{_V1}/jobs/{{id}}/defend",
                self.defend_job,
                DefenceView,
                defend,
                body=DefendBody,
                errors=errors,
            ),
            Route(
                "POST",
                f"{_V1}/efforts/{{id}}/defend",
                self.defend_effort,
                DefenceView,
                defend,
                body=DefendBody,
                errors=errors,
            ),
            Route(
                "POST",
                f"{_V1}/jobs/{{id}}/revive",
                self.revive,
                answers.JobView,
                back,
                body=ReviveBody,
                status=201,
                errors=errors,
            ),
        ]
