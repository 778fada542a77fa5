"""Routes of the post: the digest, settling a question, and how much attention everybody is asked for."""

from typing import Annotated, Literal

import msgspec

from muster.model.errors import BadInput
from muster.model.post import Letter, Mailbox
from muster.model.units import DAY
from muster.server.errors import Forbidden, NotFound
from muster.server.http import Call, Route
from muster.server.service import Service
from muster.server.stewardship.post import Post
from muster.steward.digest import written

_V1 = "/api/v1"
_WEEK_SECONDS = 7 * DAY
_MOST_DIGITS = 12

Name = Annotated[str, msgspec.Meta(max_length=64)]


class DigestQuery(msgspec.Struct, forbid_unknown_fields=True):
    user: Name | None = None  # another's, for admins
    peek: bool = False  # it stays new


class SettleBody(msgspec.Struct, forbid_unknown_fields=True):
    because: Literal["seen", "done"] = "done"


class MessageView(msgspec.Struct):
    number: int
    about: str
    kind: str
    sentence: str
    action: str
    asks: bool
    urgent: bool
    told_at: float
    settled_at: float | None
    because: str  # how it was settled


class DigestView(msgspec.Struct):
    """What needs an answer, and what has happened."""

    user: str
    questions: list[MessageView]
    news: list[MessageView]
    settled: list[MessageView]  # since then
    since: float
    summary: str  # of jobs that ended, and those that were retried, since then
    text: str


class AttentionRow(msgspec.Struct):
    """What one person's attention is asked for."""

    user: str
    efforts: list[str]  # those that are open
    interruptions: int  # in the last seven days
    questions: int
    oldest_question_seconds: float | None
    undelivered: int  # messages that a channel would not take
    channels: list[str]


class AttentionView(msgspec.Struct):
    people: list[AttentionRow]


class PostRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def digest(self, call: Call) -> DigestView:
        q: DigestQuery = call.query
        me = self._service.directory.now_called(call.person.name)
        user = me if q.user is None else self._service.directory.now_called(q.user)
        if user != me and call.person.role != "admin":
            raise Forbidden(f"the digest of {user} is theirs")
        looked = user == me and not q.peek
        listed, digest = await self._post.digest_of(user, looked=looked)
        return DigestView(
            user=user,
            questions=self._views(listed.questions()),
            news=self._views(listed.news()),
            settled=self._views(self._post.settled_since(user, listed.since_wall)),
            since=listed.since_wall,
            summary=digest.summary,
            text=written(digest),
        )

    async def settle(self, call: Call) -> MessageView:
        number, body = call.path[0], call.body
        if not (number.isascii() and number.isdecimal()) or len(number) > _MOST_DIGITS:
            raise BadInput(f"{number[:40]!r} is not the number of a message; muster digest shows them")
        letter = self._post.settle(call.person, int(number), body.because)
        await self._service.durable()
        return self._view(letter)

    async def attention(self, _: Call) -> AttentionView:
        fold = self._service.fold
        efforts: dict[str, list[str]] = {}
        for effort in fold.stewardship.efforts.values():
            if effort.is_open:
                efforts.setdefault(effort.owner, []).append(effort.name)
        people = sorted({*efforts, *fold.mailboxes.boxes})
        return AttentionView([self._row(who, efforts.get(who, []), fold.mailboxes.of(who)) for who in people])

    def _row(self, user: str, efforts: list[str], box: Mailbox) -> AttentionRow:
        now = self._service.now()
        questions = box.questions()
        oldest = min((letter.told_at for letter in questions), default=None)
        return AttentionRow(
            user=user,
            efforts=sorted(efforts),
            interruptions=sum(now - at < _WEEK_SECONDS for _, at in box.interruptions),
            questions=len(questions),
            oldest_question_seconds=None if oldest is None else now - oldest,
            undelivered=self._post.undelivered_to(user),
            channels=self._post.channels_of(user),
        )

    @property
    def _post(self) -> Post:
        if self._service.post is None:
            raise NotFound("nobody is told anything here")
        return self._service.post

    def _views(self, letters: list[Letter]) -> list[MessageView]:
        return [self._view(letter) for letter in letters]

    def _view(self, letter: Letter) -> MessageView:
        ahead, message = self._service.fold.wall_ahead_seconds, letter.message
        return MessageView(
            number=letter.number,
            about=message.about,
            kind=message.kind,
            sentence=message.sentence,
            action=message.action,
            asks=message.asks,
            urgent=message.urgent,
            told_at=letter.told_at + ahead,
            settled_at=None if letter.settled_at is None else letter.settled_at + ahead,
            because=letter.because,
        )

    def table(self) -> list[Route]:
        return [
            Route(
                "GET",
                f"{_V1}/digest",
                self.digest,
                DigestView,
                "What needs an answer from you, and what has happened.",
                query=DigestQuery,
                errors=(403,),
            ),
            Route(
                "POST",
                f"{_V1}/messages/{{number}}/settle",
                self.settle,
                MessageView,
                "Say that a message needs no answer any more.",
                body=SettleBody,
                errors=(507,),
            ),
            Route("GET", f"{_V1}/attention", self.attention, AttentionView, "What people are asked for."),
        ]
