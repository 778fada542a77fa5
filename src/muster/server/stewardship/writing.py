"""Putting a digest together: the letters of a mailbox, and what became of the person's jobs."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from muster.model.events import Outcome
from muster.model.post import Letter, Mailbox
from muster.model.stewardship import split
from muster.server.answers import JobView
from muster.server.stewardship.channels import Envelope
from muster.steward.digest import MARKDOWN, SLACK, Digest, Line, Single, clean, written
from muster.steward.since import Ended, in_a_sentence
from muster.store.journal import Journal

_MOST_JOBS = 2000  # that are counted in one digest
MENDED = "mended"
SUMMED = frozenset({MENDED, "verdict"})  # of jobs: they are counted, not listed


class Listed(msgspec.Struct, frozen=True):
    """What goes into a digest, as it was at one moment; to be written up in any thread."""

    to: str
    letters: tuple[Letter, ...]
    since_wall: float
    since: str  # in words
    left_out: int = 0
    recent: tuple[JobView, ...] = ()  # of the person's jobs, those that ended last

    def questions(self) -> list[Letter]:
        return [letter for letter in self.letters if letter.is_question]

    def news(self) -> list[Letter]:
        return [one for one in self.letters if not one.message.asks and not _is_summed(one)]

    def mended(self) -> list[str]:
        return [one.message.sentence for one in self.letters if one.message.kind == MENDED]

    def digest(self, journal: Journal) -> Digest:
        ended = _ended(journal, self)
        return Digest(
            to=self.to,
            questions=_lines(self.questions()),
            news=_lines(self.news()),
            since=self.since,
            summary=in_a_sentence(ended, self.mended()),
            left_out=self.left_out,
        )


def chosen(box: Mailbox, numbers: Collection[int]) -> tuple[Letter, ...]:
    return tuple(box.letters[number] for number in sorted(numbers) if number in box.letters)


def envelope(what: Digest | Single, letters: Sequence[Letter], address: str | None) -> Envelope:
    return Envelope(
        to=what.to,
        address=address,
        digest=isinstance(what, Digest),
        numbers=tuple(letter.number for letter in letters),
        messages=tuple(letter.message for letter in letters),
        headline=what.headline,
        text=written(what),
        markdown=written(what, MARKDOWN),
        slack=written(what, SLACK),
    )


def line_of(letter: Letter) -> Line:
    return Line(letter.number, letter.message.sentence, letter.message.action)


def _lines(letters: Iterable[Letter]) -> tuple[Line, ...]:
    return tuple(line_of(letter) for letter in letters)


def _is_summed(letter: Letter) -> bool:
    return letter.message.kind in SUMMED and split(letter.message.about)[0] == "job"


def _ended(journal: Journal, listed: Listed) -> list[Ended]:
    """From memory what is too new for the store, and from there the rest."""
    views = {view.id: view for view in listed.recent}
    for row in journal.jobs_ended(_MOST_JOBS, owner=listed.to):
        if row.ended_at <= listed.since_wall:
            break
        if row.id not in views:
            views[row.id] = msgspec.json.decode(row.body, type=JobView)
    return [_one(view) for view in views.values() if (view.ended_at or 0.0) > listed.since_wall]


def _one(view: JobView) -> Ended:
    ran = None if view.started_at is None or view.ended_at is None else view.ended_at - view.started_at
    return Ended(
        view.outcome or Outcome.STOPPED,
        view.verdict,
        clean(view.reason or ""),
        view.gpus,
        ran,
        view.time_limit_seconds,
    )
