"""The review's own time: it opens, tells, reminds and closes by the calendar, whatever happens to the clock.

Everything is real but the clock and what was measured; facts are folded as the server folds them, and a
restart is a fold of the same facts.
"""

import asyncio
from pathlib import Path

import pytest

from muster.model.charter import Charter, Verdict
from muster.model.errors import IllegalTransition
from muster.model.events import (
    ArraySubmitted,
    Event,
    Exited,
    NodeSeen,
    Outcome,
    Placed,
    Seat,
    Started,
    Stopping,
    Submitted,
    Withdrawn,
)
from muster.model.job import Job, JobId, single
from muster.model.message import Message
from muster.model.node import Node
from muster.model.plan import Action
from muster.model.policy import Policy
from muster.model.review import PersonSeen, ReviewClosed, ReviewListed, ReviewOpened, ReviewPostponed
from muster.model.stewardship import Defended, Effort, EffortOpened
from muster.model.units import DAY, HOUR
from muster.server.stewardship.review import Reviewing
from muster.steward.review.calendar import parse_schedule
from muster.steward.review.items import Consumer, Item, World
from muster.steward.review.rules import ReviewRules
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of
from muster.store.records import Record
from muster.store.reviews import unit_of

MONDAY = 1_794_787_200.0  # 2026-11-16 00:00 UTC
CLOSE = MONDAY + 3 * DAY + 17 * HOUR  # Thursday, 17:00
RULES = ReviewRules(schedule=parse_schedule("Thu 17:00"), timezone="UTC")
SHAPE = single(cpus_milli=100).parts[0].shape
LACKING = Charter(owner="ana")


class Clocked:
    """What a review needs of a service, with time that is set by hand."""

    def __init__(self, at: float, folder: Path) -> None:
        self.steady, self.ahead, self.folder = at, 0.0, folder
        self.fold, self.events = Fold(Policy()), list[Event]()
        self.told: list[Message] = []
        self.tell = self.told.append
        self.actions: list[Action] = []
        self.note(NodeSeen(at, Node("a", 8000, 1 << 30)))
        self.reviewing = self._reviewing(RULES)

    def _reviewing(self, rules: ReviewRules) -> Reviewing:
        made = Reviewing(self, rules, self.gather, self.folder)
        made.stand_in = lambda team: ("prof",)
        return made

    def now(self) -> float:
        return self.steady

    def wall(self) -> float:
        return self.steady + self.ahead

    def note(self, event: Event, *actions: Action) -> None:
        self.fold.apply(event)
        self.events.append(event)
        self.actions += actions

    def reaches(self, job: Job) -> bool:
        return job.adopted is None

    def order(self, action: Action) -> None:
        self.actions.append(action)

    def members_of(self, job_id: JobId) -> list[Record]:
        found = (r for j, r in self.fold.records.items() if j == job_id or j.startswith(f"{job_id}_"))
        return [record for record in found if record.outcome is None]

    async def gather(self, since: float, before: float) -> World:
        await asyncio.sleep(0)
        consumers: dict[str, Consumer] = {}
        for record in self.fold.records.values():
            entry = record.running or record.waiting
            if entry is not None:
                job = entry.job
                consumers[unit_of(job)] = Consumer(
                    job=unit_of(job),
                    name=job.name,
                    owner=job.charter.owner or "",
                    effort=job.effort,
                    charter=job.charter,
                    running=1,
                    days=((HOUR, HOUR),),
                )
        return World(now=self.steady, wall=self.wall(), consumers=tuple(consumers.values()))

    # --- What happens -------------------------------------------------------------------------------

    def runs(self, job_id: str, charter: Charter = LACKING, **more: str) -> None:
        job = Job(job_id, single(cpus_milli=100), self.steady, owner="ana", charter=charter, **more)  # type: ignore[arg-type]
        self.note(Submitted(self.steady, job))
        self.note(Placed(self.steady, job_id, 1, (Seat("a", SHAPE),)))
        self.note(Started(self.steady, job_id, 1))

    def at(self, moment: float) -> None:
        """Time goes on, and the server looks at it as often as it takes."""
        self.steady = max(self.steady, moment)
        asyncio.run(self._look())

    async def _look(self) -> None:
        for _ in range(5):
            self.reviewing.look()
            while self.reviewing._step is not None:
                await asyncio.sleep(0)

    def killed(self, *, for_seconds: float = 0.0, facts: int | None = None) -> "Clocked":
        """Another server, that knows so many of the facts; by way of an image, too."""
        other = Clocked(self.steady + for_seconds, self.folder)
        other.ahead, other.told, other.tell = self.ahead, self.told, self.told.append
        other.fold, other.events = Fold(Policy()), []
        for event in self.events[:facts]:
            other.fold.apply(event)
            other.events.append(event)
        other.fold = fold_from(image_of(other.fold), Policy())
        last = other.fold.now
        other.reviewing = other._reviewing(RULES)
        other.reviewing.begin(last)
        return other

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def world(tmp_path: Path) -> Clocked:
    return Clocked(MONDAY, tmp_path / "reviews")


def test_it_opens_some_days_before_and_tells_owners_once(world: Clocked) -> None:
    world.runs("1")
    world.runs("2", Charter(owner="bo", purpose="Does it work?", until=CLOSE + DAY))
    world.at(CLOSE - 3 * DAY - 60)
    assert not world.of(ReviewOpened)
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE - 3 * DAY + HOUR)
    [opened], [listed] = world.of(ReviewOpened), world.of(ReviewListed)
    assert isinstance(opened, ReviewOpened)
    assert isinstance(listed, ReviewListed)
    assert (opened.number, opened.closes_at, listed.told) == (1, CLOSE, {"job:1": "ana"})
    [message] = world.told
    assert (message.to, message.kind, message.asks, message.urgent) == ("ana", "review", True, False)
    assert message.about == "job:1"
    assert message.action == 'muster defend 1 --because "…" --until 2026-12-03'
    assert "Thu 2026-11-19 17:00" in message.sentence


def test_it_reminds_a_day_before_and_hears_of_what_is_new_daily(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.runs("2", name="b")
    world.at(CLOSE - 2 * DAY)
    assert [message.about for message in world.told] == ["job:1", "job:2"]
    world.at(CLOSE - DAY)
    world.at(CLOSE - DAY + 60)
    assert [(message.about, message.urgent) for message in world.told[2:]] == [
        ("job:1", True),
        ("job:2", True),
    ]


def test_at_the_close_the_undefended_are_stopped_and_the_late_are_carried(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE - DAY)
    world.runs("2", name="b")
    world.at(CLOSE)
    [closed] = world.of(ReviewClosed)
    assert isinstance(closed, ReviewClosed)
    assert [one.job for one in closed.stopped] == ["1"]
    [stopping] = world.of(Stopping)
    assert isinstance(stopping, Stopping)
    assert (stopping.job, stopping.verdict) == ("1", Verdict.UNDEFENDED)
    assert "Carried to the next review" in closed.minutes
    assert (world.folder / "2026-11-19.md").read_text() == closed.minutes
    assert 'muster revive 1 --because "…" --until 2026-12-03' in [message.action for message in world.told]


def test_who_waits_is_withdrawn_with_the_same_verdict(world: Clocked) -> None:
    waiting = Job("1", single(cpus_milli=100), MONDAY, owner="ana", charter=LACKING, held=True)
    world.note(Submitted(MONDAY, waiting))
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE)
    [gone] = world.of(Withdrawn)
    assert isinstance(gone, Withdrawn)
    assert gone.verdict is Verdict.UNDEFENDED
    assert world.fold.stewardship.reviews.stopped("1") is not None


def test_a_defence_saves_it_even_while_the_close_is_under_way(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE - DAY)
    original = world.gather

    async def slow(since: float, before: float) -> World:
        found = await original(since, before)
        charter = Charter(owner="ana", until=CLOSE + DAY)
        world.note(Defended(world.steady, "job:1", "ana", "one more day", CLOSE + DAY, charter))
        return found

    world.reviewing._gather = slow
    world.at(CLOSE)
    [closed] = world.of(ReviewClosed)
    assert isinstance(closed, ReviewClosed)
    assert closed.stopped == ()
    assert not world.of(Stopping)
    assert "“one more day”" in closed.minutes


def test_the_next_review_is_about_what_came_after(world: Clocked) -> None:
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE)
    world.at(CLOSE + 4 * DAY)
    [first, second] = world.of(ReviewOpened)
    assert isinstance(first, ReviewOpened)
    assert isinstance(second, ReviewOpened)
    assert (second.number, second.since, second.closes_at) == (2, CLOSE, CLOSE + 7 * DAY)


def test_a_clock_set_forward_does_not_take_the_notice_away(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.ahead = 5 * DAY
    world.at(world.steady + HOUR)
    assert not world.of(ReviewClosed)
    world.at(CLOSE - 2 * DAY - 60)
    assert not world.of(Stopping)
    world.at(CLOSE - 2 * DAY)
    assert len(world.of(ReviewClosed)) == 1


def test_a_clock_set_back_does_not_close_a_review_twice(world: Clocked) -> None:
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE)
    world.ahead = -2 * DAY
    world.at(CLOSE + 2 * DAY + 60)
    world.at(CLOSE + 3 * DAY)
    assert len(world.of(ReviewClosed)) == 1
    assert world.reviewing.closes_next() == CLOSE + 7 * DAY


def test_a_server_that_starts_late_still_gives_the_whole_notice(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - HOUR)
    [opened] = world.of(ReviewOpened)
    assert isinstance(opened, ReviewOpened)
    assert opened.closes_at == CLOSE - HOUR + DAY
    world.at(CLOSE + 60)
    assert not world.of(ReviewClosed)
    world.at(CLOSE - HOUR + DAY)
    assert len(world.of(Stopping)) == 1


def test_a_review_during_which_nobody_could_answer_is_postponed(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    back = world.killed(for_seconds=3 * DAY)
    back.at(CLOSE + 60)
    [postponed] = back.of(ReviewPostponed)
    assert isinstance(postponed, ReviewPostponed)
    assert postponed.closes_at == CLOSE + DAY
    assert not back.of(ReviewClosed)
    back.at(CLOSE + 0.6 * DAY)
    back.at(CLOSE + DAY)
    assert len(back.of(Stopping)) == 1
    assert [message.urgent for message in back.told if message.asks][-1], "and they are reminded again"


def test_a_short_absence_postpones_nothing(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE - HOUR)
    back = world.killed(for_seconds=HOUR)
    assert not back.of(ReviewPostponed)
    back.at(CLOSE)
    assert len(back.of(Stopping)) == 1


def test_killed_after_any_fact_it_ends_the_same(world: Clocked) -> None:
    """Between opening and listing, between closing and stopping: nobody is missed, or stopped twice."""
    world.runs("1")
    world.runs("2", name="b")
    before = len(world.events)
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE - DAY)
    world.at(CLOSE)
    for facts in range(before, len(world.events) + 1):
        back = world.killed(facts=facts)
        for days in (0, 1, 2, 4, 6, 7):
            back.at(CLOSE + days * DAY)
        stopped = [event.job for event in back.of(Stopping) if isinstance(event, Stopping)]
        assert sorted(stopped) == ["1", "2"], facts
        first = next(event for event in back.of(ReviewClosed) if isinstance(event, ReviewClosed))
        assert {one.job for one in first.stopped} == {"1", "2"}, facts


def test_forgotten_work_is_told_to_who_stands_in(world: Clocked) -> None:
    world.reviewing.present = lambda owner: owner != "ana"
    world.runs("1", Charter(owner="ana", purpose="Does it work?", until=CLOSE + DAY))
    world.at(CLOSE - 3 * DAY)
    [message] = world.told
    assert message.to == "prof"
    assert "ana is not here any more" in message.sentence


def test_nobody_to_be_told_is_nobody_to_be_stopped(world: Clocked) -> None:
    world.reviewing.stand_in = lambda team: ()
    world.runs("1", Charter())
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE)
    assert not world.of(Stopping)


def test_who_was_asked_and_stays_silent_answers_for_nothing_any_more(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.runs("9", Charter(owner="ana", purpose="Does it work?", until=CLOSE + 90 * DAY), name="b")
    asked_at = world.steady
    world.at(asked_at + 14 * DAY - 60)
    assert items(world)["job:9"].kind == "defended"
    world.at(asked_at + 14 * DAY)
    assert "has not called" in items(world)["job:9"].because
    world.reviewing.heard_of("ana")
    assert items(world)["job:9"].kind == "defended"


def test_that_somebody_calls_is_noted_once_a_day_or_when_they_were_asked(world: Clocked) -> None:
    for _ in range(3):
        world.reviewing.heard_of("ana")
    assert len(world.of(PersonSeen)) == 1
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.reviewing.heard_of("ana")
    world.reviewing.heard_of("ana")
    assert len(world.of(PersonSeen)) == 2


def items(world: Clocked) -> dict[str, Item]:
    return {item.subject: item for item in asyncio.run(world.reviewing._look_around()).items}


def test_an_effort_is_listed_and_stopped_as_one(world: Clocked) -> None:
    effort = Effort(name="llama", charter=Charter(owner="ana"), opened_at=MONDAY, opened_by="ana")
    world.note(EffortOpened(MONDAY, effort))
    for job in ("1", "2"):
        world.runs(job, effort="llama")
    world.at(CLOSE - 3 * DAY)
    [message] = world.told
    assert (message.about, message.action.split()[:3]) == ("effort:llama", ["muster", "defend", "llama"])
    world.at(CLOSE)
    assert len(world.of(Stopping)) == 2


def test_closing_early_waits_for_the_notice_and_takes_the_place_of_the_scheduled_one(world: Clocked) -> None:
    world.runs("1")
    with pytest.raises(IllegalTransition, match="no review is open; the next opens Mon 2026-11-16 17:00"):
        world.reviewing.check_closable()
    world.at(CLOSE - 3 * DAY)
    with pytest.raises(IllegalTransition, match="people have until Tue 2026-11-17 17:00"):
        world.reviewing.check_closable()
    world.at(CLOSE - 2 * DAY)
    assert world.reviewing.check_closable().number == 1
    asyncio.run(world.reviewing.close("bo"))
    world.at(CLOSE + 60)
    [closed] = world.of(ReviewClosed)
    assert isinstance(closed, ReviewClosed)
    assert closed.by == "bo"


def test_what_was_recovered_grows_until_it_is_brought_back(world: Clocked) -> None:
    world.runs("1")
    world.at(CLOSE - 3 * DAY)
    world.at(CLOSE)
    world.at(CLOSE + 2 * DAY)
    assert world.reviewing.recovered_seconds() == (2 * HOUR, 2 * HOUR)
    world.note(Exited(world.steady, "1", 1, Outcome.STOPPED, verdict=Verdict.UNDEFENDED))
    world.note(Submitted(world.steady, Job("2", single(cpus_milli=1), world.steady, revives="1")))
    world.at(CLOSE + 3 * DAY)
    assert world.reviewing.recovered_seconds() == (2 * HOUR, 2 * HOUR)
    world.at(CLOSE + 60 * DAY)
    assert world.reviewing.recovered_seconds()[0] == 2 * HOUR


def test_a_second_review_on_a_day_has_minutes_of_its_own(world: Clocked) -> None:
    world.reviewing.set_rules(ReviewRules(schedule=parse_schedule("daily 17:00"), timezone="UTC"))
    world.at(CLOSE - 2 * DAY)
    world.at(CLOSE - 1 * DAY)
    asyncio.run(world.reviewing.close("bo"))
    assert len(list(world.folder.iterdir())) == len(world.of(ReviewClosed)) == 2
    assert sorted(path.name for path in world.folder.iterdir())[0] == "2026-11-18-2.md"


def test_schedule_off_is_no_review(world: Clocked) -> None:
    world.reviewing.set_rules(ReviewRules(schedule=None))
    world.runs("1")
    world.at(CLOSE + 30 * DAY)
    assert not world.of(ReviewOpened)
    with pytest.raises(IllegalTransition, match="schedule is off"):
        world.reviewing.check_closable()


# --- What can be brought back -------------------------------------------------------------------------


def test_members_of_an_array_that_were_stopped_are_kept_with_what_they_tried(world: Clocked) -> None:
    template = Job("5", single(cpus_milli=100), MONDAY, owner="ana", held=True)
    world.note(ArraySubmitted(MONDAY, template, (1, 2, 3), None, (("lr", ("a", "b", "c")),)))
    world.note(Withdrawn(MONDAY, "5_1"))
    for job in ("5_3", "5_2"):
        world.note(Withdrawn(MONDAY, job, verdict=Verdict.UNDEFENDED))
    kept = world.fold.stewardship.reviews.stopped("5")
    assert kept is not None
    assert kept.members == [(3, (("lr", "c"),)), (2, (("lr", "b"),))]
    again = Job("6", single(cpus_milli=100), MONDAY, owner="ana", revives="5")
    params = tuple(tried for _, tried in kept.members)
    event = ArraySubmitted(MONDAY, again, (3, 2), None, (), params)
    members = list(event.members())
    assert [(m.id, m.params, m.revives) for m in members] == [
        ("6_3", (("lr", "c"),), "5_3"),
        ("6_2", (("lr", "b"),), "5_2"),
    ]
    world.note(event)
    assert kept.revived_by == "6"


def test_a_revival_that_was_not_written_down_can_be_tried_again(world: Clocked) -> None:
    world.runs("1")
    world.note(Exited(MONDAY, "1", 1, Outcome.STOPPED, verdict=Verdict.OUT_OF_TIME))
    world.note(Submitted(MONDAY, Job("2", single(cpus_milli=1), MONDAY, revives="1")))
    kept = world.fold.stewardship.reviews.stopped("1")
    assert kept is not None
    assert kept.revived_by == "2"
    world.note(Withdrawn(MONDAY, "2", taken_back=True))
    assert kept.revived_by is None


def test_what_won_or_failed_by_itself_is_not_for_reviving(world: Clocked) -> None:
    for job, verdict in (("1", Verdict.WON), ("2", Verdict.LOST), ("3", None)):
        world.runs(job)
        world.note(Exited(MONDAY, job, 1, Outcome.STOPPED, verdict=verdict))
    assert world.fold.stewardship.reviews.revivable == {}
