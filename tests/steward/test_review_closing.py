"""Closing a review: who is stopped and who is carried, what that frees, and what the minutes say of it."""

from msgspec.structs import replace
from review_world import NOW, WHOLE, consumer, defence, world

from muster.model.units import DAY, HOUR
from muster.steward.review.closing import closes_at_after, daily_rate, decided, freed, is_due
from muster.steward.review.items import Kind
from muster.steward.review.kinds import reviewed
from muster.steward.review.minutes import Meeting, minutes

LACKING = replace(WHOLE, purpose=None)
MEETING = Meeting(number=3, since=NOW - 7 * DAY, closed_at=NOW, revivable_until=NOW + 14 * DAY, by="")


def when(at: float) -> str:
    return f"day {(at - NOW) / DAY:.0f}"


def test_only_what_was_told_long_enough_ago_is_stopped() -> None:
    items = reviewed(world(*(consumer(str(n), charter=LACKING, name=f"{'abc'[n]}") for n in range(3))))
    told = {"job:0": NOW - DAY, "job:1": NOW - DAY + 1}
    close = decided(items, told, NOW, DAY)
    assert [item.subject for item in close.stopped] == ["job:0"]
    assert [item.subject for item in close.carried] == ["job:1", "job:2"]


def test_the_same_work_submitted_after_the_notice_is_carried() -> None:
    known, new = (
        consumer("1", charter=LACKING, submitted_at=0.0),
        consumer("2", charter=LACKING, submitted_at=NOW - HOUR),
    )
    [item] = reviewed(world(known, new))
    close = decided([item], {item.subject: NOW - 2 * DAY}, NOW, DAY)
    assert [one.stops for one in close.stopped] == [("1",)]
    assert [one.stops for one in close.carried] == [("2",)]


def test_a_habit_does_not_get_another_notice_by_being_submitted_again() -> None:
    known, new = (consumer("1", charter=WHOLE, submitted_at=0.0), consumer("2", submitted_at=NOW - HOUR))
    [item] = reviewed(world(known, new))
    habit = replace(item, kind=Kind.HABIT, stops=("1", "2"))
    close = decided([habit], {item.subject: NOW - 2 * DAY}, NOW, DAY)
    assert [one.stops for one in close.stopped] == [("1", "2")]


def test_what_is_defended_or_has_ended_is_neither() -> None:
    ended = consumer("2", charter=LACKING, running=0, name="b")
    close = decided(reviewed(world(consumer("1"), ended)), {"job:1": 0.0, "job:2": 0.0}, NOW, DAY)
    assert (close.stopped, close.carried) == ((), ())


def test_a_clock_that_jumps_does_not_take_the_notice_away() -> None:
    assert is_due(closes_at=NOW, wall=NOW, waits_from=NOW - DAY, now=NOW, notice_seconds=DAY)
    assert not is_due(closes_at=NOW, wall=NOW + 9 * DAY, waits_from=NOW - HOUR, now=NOW, notice_seconds=DAY)
    assert not is_due(closes_at=NOW, wall=NOW - 1, waits_from=NOW - 2 * DAY, now=NOW, notice_seconds=DAY)


def test_who_could_not_answer_is_given_the_notice_again() -> None:
    assert closes_at_after(NOW, NOW + 60, 2 * DAY, DAY) == NOW + 60 + DAY
    assert closes_at_after(NOW, NOW - 60, 0.2 * DAY, DAY) is None, "it was away for a moment"
    assert closes_at_after(NOW + 2 * DAY, NOW, 9 * DAY, DAY) is None, "there is time enough left"


def test_the_rate_is_over_the_days_since_it_first_held_something() -> None:
    assert daily_rate(((0.0, 0.0), (10.0, 2.0), (0.0, 0.0), (20.0, 4.0))) == (10.0, 2.0)
    assert daily_rate(()) == (0.0, 0.0)


def test_what_is_freed_is_that_of_what_is_stopped_alone() -> None:
    stopped, ended = consumer("1", charter=LACKING), consumer("2", charter=LACKING, running=0)
    [item] = reviewed(world(stopped, ended))
    [one] = freed(item)
    assert (one.job, one.gpu_seconds_a_day) == ("1", HOUR)


def test_the_minutes_say_what_consumed_who_defended_it_and_what_was_stopped() -> None:
    said = [defence("job:1", because="one more week"), defence("job:1", because="One  more week")]
    work = consumer("1").work
    items = reviewed(
        world(consumer("1"), consumer("2", charter=LACKING, name="old|1"), defences={work: said})
    )
    close = decided(items, {"job:2": 0.0}, NOW, DAY)
    text = minutes(MEETING, items, close, when)
    assert text.startswith(
        "# Review 3, day 0\n\nClosed on schedule. About what consumed since day -7: 2.00 GPU-h"
    )
    assert "- habit: 0 items, 0 GPU-hours" in text
    assert r"| 2 old\|1 | ana | forgotten | 1.00 | 2.00 | – | – | nobody said what it is for |" in text
    assert "**1 train**: ana, until day 7: “One more week” Defended 2 times, 2 times in a row with" in text
    assert "`muster revive 2 --because … --until …`" in text
    assert "brought back until day 14" in text
    assert (
        "Projected, had it gone on as it lately did: 7.00 GPU-hours and 14.0 cpu-hours over the next 7"
        in text
    )
    assert "Carried" not in text


def test_the_minutes_name_what_was_told_too_late() -> None:
    items = reviewed(world(consumer("2", charter=LACKING)))
    text = minutes(replace(MEETING, by="bo"), items, decided(items, {}, NOW, DAY), when)
    assert "Closed by bo." in text
    assert "## Stopped\n\nNothing." in text
    assert "## Carried to the next review\n\nUndefended, but told too late.\n\n- 2 train of ana" in text


def test_minutes_of_nothing_are_minutes() -> None:
    assert "Nothing consumed." in minutes(MEETING, (), decided((), {}, NOW, DAY), when)
