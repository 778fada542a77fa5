"""The weekly review of the simulated work, by the real rules (``steward.review``): what consumes is listed,
whoever answers for the undefended is asked, twice, and what nobody defends by the close is stopped.

Whoever answers defends what is still useful, by name and with a new end, and lets most of the rest go.
Of work whose owner has left, a colleague is asked.
"""

from collections.abc import Iterator

import msgspec

from bench.quarter_people import has_left
from bench.quarter_run import Track
from bench.quarter_steward import Stewarding
from bench.quarter_terms import spent_hours
from muster.model.charter import Verdict
from muster.model.job import JobId
from muster.model.resources import Resources
from muster.model.review import of_work
from muster.model.stewardship import Defended, Subject, of_job
from muster.model.units import DAY, HOUR, MILLI, WEEK
from muster.model.usage import Usage
from muster.steward.review.calendar import next_close
from muster.steward.review.closing import decided, is_due
from muster.steward.review.items import Consumer, Item, World
from muster.steward.review.kinds import reviewed
from muster.steward.review.rules import ReviewRules

DEFENCE_SECONDS = 2 * WEEK  # for which people defend what they still want
_MONDAY = 4 * DAY  # the quarter begins on a Monday, and the epoch did not


class _Open(msgspec.Struct):
    """A review that is under way."""

    opened_at: float
    closes_at: float
    listed: dict[Subject, float] = {}  # since when whoever answers for it knows
    listed_at: float = 0.0  # the last time
    reminded: bool = False


class Reviews:
    def __init__(self, steward: Stewarding, rules: ReviewRules) -> None:
        self._steward, self._rules = steward, rules
        self._closed_at = 0.0
        self._open: _Open | None = None
        self._defences: dict[Subject, list[Defended]] = {}
        self._before: dict[Subject, frozenset[JobId]] = {}
        self._won: set[Subject] = set()

    def look(self, now: float) -> None:
        """Opens, lists, reminds and closes when the server would."""
        review, notice = self._open, self._rules.notice_seconds
        if review is None:
            closes_at = self._closes_at(now)
            if closes_at is not None and now >= closes_at - self._rules.opens_seconds:
                self._open = _Open(now, closes_at)
                self._list(self._open, now)
        elif is_due(review.closes_at, now, review.opened_at, now, notice):
            self._close(review, now)
        elif not review.reminded and now >= review.closes_at - notice:
            review.reminded = True
            self._list(review, now, again=True)
        elif now - review.listed_at >= DAY:
            self._list(review, now)

    def _closes_at(self, now: float) -> float | None:
        if self._rules.schedule is None:
            return None
        return next_close(self._rules.schedule, now + _MONDAY, lambda _: 0.0) - _MONDAY

    # --- What is looked at ------------------------------------------------------------------------

    def _items(self, now: float) -> tuple[Item, ...]:
        people = self._steward.world.people.values()
        return reviewed(
            World(
                now=now,
                wall=now,
                consumers=tuple(self._consumers(now)),
                defences=self._defences,
                before=self._before,
                won=frozenset(self._won),
                away=frozenset(one.name for one in people if has_left(one, now)),
            )
        )

    def _consumers(self, now: float) -> Iterator[Consumer]:
        """What lives, or has ended since the last review."""
        for track in self._steward.notes.tracks.values():
            if track.ended_at is not None and track.ended_at < self._closed_at:
                continue
            job, is_running = track.job, track.placed_at is not None
            held = Resources(gpus_milli=round(spent_hours(track, now) * HOUR * MILLI))
            yield Consumer(
                job=job.id,
                name=job.name,
                owner=job.owner,
                team=job.team,
                charter=job.charter,
                is_limited=job.time_limit_seconds is not None,
                submitted_at=job.submitted_at,
                running=int(is_running),
                waiting=int(not is_running and track.ended_at is None),
                usage=Usage(held=held),
            )

    # --- Listing, answering, closing --------------------------------------------------------------

    def _list(self, review: _Open, now: float, again: bool = False) -> None:
        """Whoever answers for what is undefended is asked once, and reminded before the close."""
        review.listed_at = now
        for item in self._items(now):
            if item.is_undefended and item.stops and (again or item.subject not in review.listed):
                review.listed.setdefault(item.subject, now)
                tracks = [self._steward.notes.tracks[job] for job in item.stops]
                self._ask(tracks, now)

    def _ask(self, tracks: list[Track], now: float) -> None:
        self._steward.ask(tracks[0], now, lambda at: self._answer(tracks, at))

    def _answer(self, tracks: list[Track], now: float) -> None:
        steward = self._steward
        for track in tracks:
            if track.ended_at is not None or track.job.id in steward.told:
                continue
            if steward.is_useful(track, now) or not steward.lets_it_end():
                self._defend(track, now)
            else:
                steward.end(track, now, Verdict.UNDEFENDED, "review")

    def _defend(self, track: Track, now: float) -> None:
        job, until = track.job, now + DEFENCE_SECONDS
        purpose = job.charter.purpose or f"Run {job.id} goes on."
        charter = msgspec.structs.replace(job.charter, purpose=purpose, until=until)
        track.job = msgspec.structs.replace(job, charter=charter)
        event = Defended(now, of_job(job.id), job.owner, "it is still useful", until, charter)
        self._defences.setdefault(of_work(job.owner, job.name, purpose), []).append(event)
        self._steward.note(event)

    def _close(self, review: _Open, now: float) -> None:
        items = self._items(now)
        for item in decided(items, review.listed, now, self._rules.notice_seconds).stopped:
            for job_id in item.stops:
                track = self._steward.notes.tracks[job_id]
                if job_id not in self._steward.told:
                    self._steward.end(track, now, Verdict.UNDEFENDED, "review")
        before: dict[Subject, set[JobId]] = {}
        for one in (one for item in items for one in item.consumers):
            before.setdefault(one.work, set()).add(one.job)
            if self._steward.notes.tracks[one.job].won:
                self._won.add(one.work)
        self._before = {subject: frozenset(jobs) for subject, jobs in before.items()}
        self._closed_at, self._open = now, None
