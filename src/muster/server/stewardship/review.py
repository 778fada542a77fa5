"""The standing review at work: opens by the calendar, lists and tells, closes, and stops what nobody defends.

All that matters is a fact. What follows from one step, telling and noting, happens in one turn, so it is in
the journal as a whole or not at all; and who is to be stopped is named by the fact that closes a review, so a
server that is killed right then stops them when it comes back. Between the steps there is nothing but the
clock: ``look`` compares it with the calendar.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from muster.model.charter import Verdict
from muster.model.errors import IllegalTransition, MusterError
from muster.model.events import Event
from muster.model.job import Job, JobId
from muster.model.message import Message
from muster.model.plan import Action
from muster.model.resources import NOTHING, Resources
from muster.model.review import PersonSeen, ReviewClosed, ReviewListed, ReviewOpened, ReviewPostponed
from muster.model.stewardship import EffortPaused, Subject, of_effort, of_job, split
from muster.model.units import DAY, MINUTE, WEEK, show_seconds
from muster.server.errors import Forbidden
from muster.server.stewardship.ending import end
from muster.server.stewardship.words import asked, told_of_stop, undefended_at
from muster.server.stewardship.zones import Wall, zone_of
from muster.steward.review.calendar import next_close
from muster.steward.review.closing import Close, closes_at_after, decided, freed, is_due, projected
from muster.steward.review.items import Item, World
from muster.steward.review.kinds import SPENT, judged_again, reviewed
from muster.steward.review.minutes import Meeting, minutes, title
from muster.steward.review.rules import ReviewRules
from muster.store.fold import Fold
from muster.store.records import Record
from muster.store.reviews import PastReview, Review, Reviews, unit_of

log = logging.getLogger("muster")

_AGAIN_SECONDS = MINUTE  # after a step that failed
_MARKED_SECONDS = MINUTE  # for which marks are good, and longer if they took long
_TIMES_AS_LONG = 50
_RECOVERED_SECONDS = 30 * DAY  # for which a stop is counted

Gather = Callable[[float, float], Awaitable[World]]  # from when on, and from when the period before


class Serving(Protocol):
    """What is needed of the service."""

    fold: Fold
    tell: Callable[[Message], None]

    def now(self) -> float: ...

    def wall(self) -> float: ...

    def note(self, event: Event, *actions: Action) -> None: ...

    def reaches(self, job: Job) -> bool: ...

    def order(self, action: Action) -> None: ...

    def members_of(self, job_id: JobId) -> list[Record]: ...


class Seen(msgspec.Struct, frozen=True):
    """What a look has found."""

    at: float
    generation: int
    since: float
    items: tuple[Item, ...]


class Reviewing:
    """Reviews, one after the other."""

    def __init__(self, service: Serving, rules: ReviewRules, gather: Gather, folder: Path) -> None:
        self._service, self._gather, self._folder = service, gather, folder
        self.set_rules(rules)
        self.present: Callable[[str], bool] = bool  # whether an owner is still there
        self.budget_left: Callable[[Subject], float | None] = lambda _: None  # the part of it, if it is known
        self.stand_in: Callable[[str], Sequence[str]] = lambda _: ()  # who answers for a team's lost work
        self._step: asyncio.Task[None] | None = None
        self._not_before = 0.0  # a step that failed is tried again then
        self._seen: Seen | None = None
        self._marks: dict[JobId, str] = {}
        self._marked_until = 0.0
        self._marking: asyncio.Task[None] | None = None

    def set_rules(self, rules: ReviewRules) -> None:
        self.rules, self.wall = rules, Wall(zone_of(rules.timezone))

    @property
    def reviews(self) -> Reviews:
        return self._service.fold.stewardship.reviews

    @property
    def wall_ahead_seconds(self) -> float:
        return self._service.wall() - self._service.now()

    # --- Beginning ----------------------------------------------------------------------------------

    def begin(self, last_fact_at: float) -> None:
        """After a start: what was decided and not done is done; who could not answer is given time."""
        last, review = self.reviews.last, self.reviews.current
        if last is not None:
            self._stop(last.number, [one.job for one in last.stopped if one.revived_at is None])
            self._write(last)
        if review is None:
            return
        now, wall, notice = self._service.now(), self._service.wall(), self.rules.notice_seconds
        closes_at = closes_at_after(review.closes_at, wall, now - last_fact_at, notice)
        if closes_at is not None:
            because = f"nobody could answer for {show_seconds(now - last_fact_at)}"
            self._service.note(ReviewPostponed(now, review.number, closes_at, because))
            log.warning("review %d closes %s: %s", review.number, self.wall.said(closes_at), because)

    def _stop(self, number: int, jobs: Sequence[JobId]) -> None:
        records = [record for job in jobs for record in self._service.members_of(job)]
        end(self._service, records, Verdict.UNDEFENDED, undefended_at(number))

    def end(self) -> None:
        for task in (self._step, self._marking):
            if task is not None:
                task.cancel()

    # --- The calendar -------------------------------------------------------------------------------

    def look(self) -> None:
        """Do what is due, if nothing is under way. Costs nothing else."""
        if self._step is not None or self._service.now() < self._not_before:
            return
        step = self._due()
        if step is not None:
            self._step = asyncio.get_running_loop().create_task(self._carry_out(step))

    async def _carry_out(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await step()
        except MusterError as error:
            self._not_before = self._service.now() + _AGAIN_SECONDS
            log.warning("the review has to wait: %s", error)
        except Exception:
            self._not_before = self._service.now() + _AGAIN_SECONDS
            log.exception("the review has to wait")
        finally:
            self._step = None

    def _due(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        review, now, wall = self.reviews.current, self._service.now(), self._service.wall()
        notice = self.rules.notice_seconds
        if self.rules.schedule is None:
            return None
        if review is None:
            closes_at = self.closes_next()
            return (
                self.open if closes_at is not None and wall >= closes_at - self.rules.opens_seconds else None
            )
        if is_due(review.closes_at, wall, review.waits_from, now, notice):
            return self.close
        is_near = wall >= review.closes_at - notice and now - review.waits_from >= notice / 2
        if review.reminded_at is None and is_near:
            return self.remind
        is_old = review.listed_at is None or now - review.listed_at >= min(DAY, notice)
        return self.update if is_old else None

    def closes_next(self) -> float | None:
        """When the review that is open closes, or the next; None: there is none. By the wall."""
        if self.reviews.current is not None:
            return self.reviews.current.closes_at
        if self.rules.schedule is None:
            return None
        last = self.reviews.last  # which may have been closed early, or the clock was set back since
        after = max(self._service.wall(), 0.0 if last is None else last.closes_at)
        return next_close(self.rules.schedule, after, self.wall.zone)

    @property
    def since(self) -> float:
        """From when on it is about what consumed."""
        if self.reviews.current is not None:
            return self.reviews.current.since
        last = self.reviews.last
        return self._service.now() - WEEK if last is None else last.closed_at

    # --- Steps --------------------------------------------------------------------------------------

    async def open(self) -> None:
        closes_at = self.closes_next()
        seen = await self._look_around()
        if self.reviews.current is not None or closes_at is None:
            return
        number = 1 + max(self.reviews.past, default=0)
        closes_at = max(closes_at, self._service.wall() + self.rules.notice_seconds)
        self._service.note(ReviewOpened(self._service.now(), number, seen.since, closes_at))
        self._tell(seen.items, again=False)

    async def update(self) -> None:
        seen = await self._look_around()
        if self.reviews.current is not None:
            self._tell(seen.items, again=False)

    async def remind(self) -> None:
        seen = await self._look_around()
        if self.reviews.current is not None:
            self._tell(seen.items, again=True)

    def _tell(self, items: Sequence[Item], *, again: bool) -> None:
        """Who answers for what is undefended, and has not heard of it in this review or is reminded."""
        review = self.reviews.current
        assert review is not None
        told: dict[str, str] = {}
        is_urgent = again or self._service.wall() >= review.closes_at - self.rules.notice_seconds
        for item in items:
            if item.is_undefended and item.stops and (again or item.subject not in review.listed):
                people = self._who_answers(item)
                for person in people if item.because != SPENT else ():  # who was asked about that already
                    self._service.tell(asked(item, person, review, self.wall, is_urgent))
                if people:
                    told[item.subject] = people[0]
        # Now, and not before the messages: what is written later has not happened sooner.
        self._service.note(ReviewListed(self._service.now(), review.number, told, again))

    def _who_answers(self, item: Item) -> Sequence[str]:
        if item.owner and self.present(item.owner):
            return (item.owner,)
        return self.stand_in(item.team)

    async def close(self, by: str = "", may_stop: Callable[[Item], bool] = lambda _: True) -> None:
        """Stop what nobody defends, and write it down; all of it, or nothing if some may not be."""
        before = self.reviews.current
        seen = await self._look_around()
        review = self.reviews.current
        if review is None or before is None or review.number != before.number:
            raise IllegalTransition("the review was closed meanwhile")
        now, notice = self._service.now(), self.rules.notice_seconds
        close = decided(seen.items, review.listed, now, notice)
        for item in close.stopped:
            if not may_stop(item):
                raise Forbidden(f"{title(item)} would be stopped, and is not of a team that you lead")
        stopped = tuple(one for item in close.stopped for one in freed(item))
        text = minutes(self._meeting(review, by), seen.items, close, self.wall.said)
        self._service.note(ReviewClosed(now, review.number, by, stopped, text))
        self._tell_of_stops(close)
        self._pause_efforts(review.number, close)
        self._stop(review.number, [one.job for one in stopped])
        self._write(self.reviews.past[review.number])
        self._forget_looks()

    def _pause_efforts(self, number: int, close: Close) -> None:
        """Nothing more of what nobody defends is started."""
        efforts = self._service.fold.stewardship.efforts
        for item in close.stopped:
            kind, name = split(item.subject)
            if kind == "effort" and efforts[name].is_open and efforts[name].paused is None:
                event = EffortPaused(self._service.now(), name, "muster", undefended_at(number))
                self._service.note(event)

    def check_closable(self) -> Review:
        """The one that is open and whose notice has passed; or why there is none."""
        review = self.reviews.current
        if review is None:
            closes_at = self.closes_next()
            if closes_at is None:
                raise IllegalTransition("there are no reviews: [review] schedule is off")
            opens = self.wall.said(closes_at - self.rules.opens_seconds)
            raise IllegalTransition(f"no review is open; the next opens {opens}")
        left = self.rules.notice_seconds - (self._service.now() - review.waits_from)
        if left > 0:
            from_then = self.wall.said(self._service.wall() + left)
            raise IllegalTransition(f"people have until {from_then} to answer; close it after that")
        return review

    def _meeting(self, review: Review, by: str) -> Meeting:
        wall = self._service.wall()
        until, since = wall + self.rules.revive_seconds, review.since + self.wall_ahead_seconds
        return Meeting(number=review.number, since=since, closed_at=wall, revivable_until=until, by=by)

    def _tell_of_stops(self, close: Close) -> None:
        for item in close.stopped:
            for person in self._who_answers(item):
                until = self._service.wall() + self.rules.revive_seconds
                self._service.tell(told_of_stop(item, person, until, self.wall))

    def _write(self, review: PastReview) -> None:
        """Where people look for it; what can't be written there is in the journal."""
        path = self._folder / self._file_of(review)
        if path.exists():
            return
        try:
            self._folder.mkdir(mode=0o755, exist_ok=True)
            path.write_text(review.minutes, encoding="utf-8")
        except OSError as error:
            log.warning("the minutes of review %d could not be written to %s: %s", review.number, path, error)

    def _file_of(self, review: PastReview) -> str:
        """By its date; of several on one day the later ones with their numbers."""
        date = self._date(review)
        earlier = (one for one in self.reviews.past.values() if one.number < review.number)
        is_first = all(self._date(one) != date for one in earlier)
        return f"{date}.md" if is_first else f"{date}-{review.number}.md"

    def _date(self, review: PastReview) -> str:
        return self.wall.date(review.closed_at + self.wall_ahead_seconds)

    # --- Looking ------------------------------------------------------------------------------------

    async def look_around(self) -> Seen:
        """All items as they are now; those of the last look if nothing has happened since."""
        seen, fold = self._seen, self._service.fold
        is_fresh = seen is not None and 0 <= self._service.now() - seen.at < _MARKED_SECONDS
        if seen is not None and is_fresh and seen.generation == fold.generation and seen.since == self.since:
            return seen
        return await self._look_around()

    async def _look_around(self) -> Seen:
        now, since, last = self._service.now(), self.since, self.reviews.last
        generation = self._service.fold.generation
        before = since - WEEK if last is None else min(last.since, since - WEEK)
        world = self._with_people(await self._gather(since, before))
        items = await asyncio.to_thread(reviewed, world)
        stewardship = self._service.fold.stewardship  # whatever was said meanwhile counts
        said = replace(world, defences=stewardship.defences, efforts=stewardship.efforts)
        items = tuple(judged_again(item, said) if item.stops else item for item in items)
        self._seen = Seen(now, generation, since, items)
        self._mark(self._seen.items)
        return self._seen

    def _with_people(self, world: World) -> World:
        """And with what they have said; who is there, and whose budget is spent."""
        stewardship, now = self._service.fold.stewardship, self._service.now()
        efforts, consumers = stewardship.efforts, world.consumers
        owners = {*(one.owner for one in consumers), *(effort.owner for effort in efforts.values())} - {""}
        living = (one for one in consumers if one.is_living)
        subjects = {of_effort(one.effort) if one.effort else of_job(one.job) for one in living}
        left = {subject: self.budget_left(subject) for subject in subjects}
        asked, longest = self.reviews.asked, self.rules.silent_seconds
        return replace(
            world,
            defences={subject: tuple(some) for subject, some in stewardship.defences.items()},
            efforts=dict(efforts),
            away=frozenset(owner for owner in owners if not self.present(owner)),
            silent=frozenset(who for who, at in asked.items() if now - at >= longest),
            budget_left={subject: part for subject, part in left.items() if part is not None},
        )

    def _forget_looks(self) -> None:
        self._seen, self._marked_until = None, 0.0

    def recovered_seconds(self) -> tuple[float, float]:
        """GPU- and cpu-seconds that what was stopped would have held until now: a projection."""
        now = self._service.now()
        gpus = cpus = 0.0
        for review in self.reviews.past.values():
            for one in review.stopped:
                until = now if one.revived_at is None else one.revived_at
                seconds = min(until - review.closed_at, _RECOVERED_SECONDS)
                gpus += projected(one.gpu_seconds_a_day, seconds)
                cpus += projected(one.cpu_seconds_a_day, seconds)
        return gpus, cpus

    def held_now(self) -> dict[JobId, Resources]:
        """By what runs, arrays as one."""
        held: dict[JobId, Resources] = {}
        for one in self._service.fold.running.values():
            unit = unit_of(one.job)
            held[unit] = held.get(unit, NOTHING) + one.job.gang.asked()
        return held

    def stops_at(self, item: Item) -> float | None:
        """When what is undefended will be stopped, as things are; by the wall. None: not at this review."""
        review = self.reviews.current
        told_at = None if review is None else review.listed.get(item.subject)
        if review is None or told_at is None or not (item.is_undefended and item.stops):
            return None
        in_time = told_at + self.rules.notice_seconds + self.wall_ahead_seconds <= review.closes_at
        return review.closes_at if in_time else None

    # --- Marks --------------------------------------------------------------------------------------

    def mark_of(self, job: Job) -> str | None:
        """A word about a job that nobody defends."""
        return self.marks().get(unit_of(job))

    def marks(self) -> Mapping[JobId, str]:
        """All of them, by job or array. Looks again now and then, and never waits for it."""
        if self.rules.schedule is None:
            return {}
        if self._marking is None and self._service.now() >= self._marked_until:
            self._marking = asyncio.get_running_loop().create_task(self._mark_again())
        return self._marks

    async def _mark_again(self) -> None:
        begun = self._service.now()
        try:
            await self.look_around()
        except MusterError as error:
            log.debug("marks have to wait: %s", error)
        except Exception:
            log.exception("marks have to wait")
        finally:
            now = self._service.now()
            self._marked_until = now + max(_MARKED_SECONDS, _TIMES_AS_LONG * (now - begun))
            self._marking = None

    def _mark(self, items: Sequence[Item]) -> None:
        closes_at = self.closes_next()
        said = "undefended" if closes_at is None else f"undefended, review {self.wall.briefly(closes_at)}"
        self._marks = {job: said for item in items if item.is_undefended for job in item.stops}

    def answered(self, job: JobId | None = None) -> None:
        """Somebody has spoken for something: the last look is out of date."""
        if job is not None:
            self._marks.pop(job, None)
        self._forget_looks()

    # --- People -------------------------------------------------------------------------------------

    def heard_of(self, person: str) -> None:
        """Somebody calls. Once a day is enough to know, unless they were asked something."""
        now = self._service.now()
        seen = self.reviews.seen.get(person)
        if seen is None or now - seen >= DAY or person in self.reviews.asked:
            self._service.note(PersonSeen(now, person))
