"""What people say about work is folded, kept in an image, and refused where it makes no sense."""

import msgspec
import pytest

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import (
    Amended,
    Event,
    Evicting,
    Exited,
    Held,
    NodeSeen,
    Outcome,
    Placed,
    Released,
    Seat,
    Started,
    Stopping,
    Submitted,
    Vacated,
    Withdrawn,
)
from muster.model.job import Job, Shape, single
from muster.model.node import Node
from muster.model.policy import Policy
from muster.model.state import State
from muster.model.stewardship import (
    Defended,
    Effort,
    EffortAmended,
    EffortClosed,
    EffortGoesOn,
    EffortNoted,
    EffortOpened,
    EffortPaused,
    Told,
    of_effort,
)
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of
from muster.store.reads import decode_event

CHARTER = Charter(owner="ana", purpose="Does 8B beat 3B?", budget="9 GPUh")


def folded(*events: Event) -> Fold:
    fold = Fold(Policy())
    for event in (NodeSeen(0.0, Node("n", 4000, 1 << 30)), *events):
        fold.apply(event)
    return fold


def opened(name: str = "llama", at: float = 1.0) -> EffortOpened:
    return EffortOpened(at, Effort(name=name, charter=CHARTER, opened_at=at, opened_by="ana"))


def job(job_id: str, effort: str | None = "llama") -> Job:
    return Job(job_id, single(cpus_milli=1000), 2.0, "train", "ana", charter=CHARTER, effort=effort)


def running(job_id: str) -> tuple[Event, ...]:
    seats = (Seat("n", Shape(cpus_milli=1000)),)
    return (
        Submitted(2.0, job(job_id)),
        Placed(3.0, job_id, 1, seats),
        Started(4.0, job_id, 1),
    )


def test_an_effort_tells_its_story_in_order() -> None:
    fold = folded(
        opened(),
        EffortNoted(2.0, "llama", "ben", "chose AdamW"),
        EffortAmended(3.0, "llama", Charter(owner="ben", budget="12 GPUh"), "ana", "she left"),
        EffortPaused(4.0, "llama", "ben", "holidays"),
        EffortGoesOn(5.0, "llama", "ben"),
        Defended(6.0, of_effort("llama"), "ben", "nearly there", 99.0, CHARTER),
        EffortClosed(7.0, "llama", Verdict.WON, "ben", "92 %"),
    )
    story = fold.stewardship.stories["llama"]
    assert [entry.what for entry in story] == [
        Told.OPENED,
        Told.NOTE,
        Told.AMENDED,
        Told.PAUSED,
        Told.GOES_ON,
        Told.DEFENDED,
        Told.CLOSED,
    ]
    assert "budget 9 GPUh → 12 GPUh" in story[2].text
    assert "she left" in story[2].text
    assert fold.stewardship.efforts["llama"].verdict is Verdict.WON


def test_an_effort_counts_its_jobs_by_how_they_ended() -> None:
    fold = folded(
        opened(),
        *running("1"),
        Submitted(2.0, job("2")),
        Submitted(2.0, job("3", effort=None)),
        Stopping(5.0, "1", 1, "val_acc >= 0.9", Verdict.WON),
        Exited(6.0, "1", 1, Outcome.STOPPED, verdict=Verdict.WON),
        Withdrawn(7.0, "2"),
    )
    tally = fold.stewardship.tallies["llama"]
    assert (tally.living, tally.ended) == (0, {"won": 1, "stopped": 1})


def test_the_verdict_of_a_stop_is_kept_until_the_job_has_left() -> None:
    fold = folded(opened(), *running("1"), Stopping(5.0, "1", 1, "out of budget", Verdict.OUT_OF_BUDGET))
    again = fold_from(image_of(fold), Policy())
    record = again.records["1"].running
    assert record is not None
    assert record.verdict is Verdict.OUT_OF_BUDGET


def test_who_is_held_back_while_it_runs_waits_held_with_the_reason() -> None:
    fold = folded(
        opened(),
        *running("1"),
        Evicting(5.0, "1", 1, "its budget is used up", hold=True),
        Vacated(6.0, "1", 1, "held"),
    )
    record = fold.records["1"]
    assert record.state is State.HELD
    assert record.waiting is not None
    assert record.waiting.held_because == "its budget is used up"
    fold.apply(Released(7.0, "1"))
    assert fold.records["1"].state is State.QUEUED
    assert fold.records["1"].waiting is not None
    assert not fold.records["1"].waiting.held_because


def test_the_reason_of_a_hold_survives_an_image() -> None:
    fold = folded(opened(), Submitted(2.0, job("1")), Held(3.0, "1", "effort llama is paused"))
    waiting = fold_from(image_of(fold), Policy()).records["1"].waiting
    assert waiting is not None
    assert waiting.held_because == "effort llama is paused"


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_a_charter_can_be_amended_while_the_job_lives(state: str) -> None:
    events = running("1") if state == "running" else (Submitted(2.0, job("1")),)
    changed = Charter(owner="ben", purpose="the same", until=99.0)
    fold = folded(opened(), *events, Amended(5.0, "1", changed, "ben", "took over"))
    entry = fold.records["1"].running or fold.records["1"].waiting
    assert entry is not None
    assert entry.job.charter == changed


def test_all_of_it_survives_an_image() -> None:
    fold = folded(
        opened(),
        EffortNoted(2.0, "llama", "ben", "a note"),
        *running("1"),
        Defended(6.0, of_effort("llama"), "ben", "nearly there", 99.0, CHARTER),
    )
    assert fold_from(image_of(fold), Policy()).stewardship == fold.stewardship


def test_an_image_stays_as_it_was_drawn_while_the_story_goes_on() -> None:
    fold = folded(opened())
    drawn = fold.stewardship.copied()
    fold.apply(EffortNoted(2.0, "llama", "ben", "later"))
    assert len(drawn.stories["llama"]) == 1


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    fold = folded(opened(), EffortClosed(2.0, "llama", Verdict.LOST, "ana"))
    before = fold.stewardship.copied()
    for event, error in (
        (opened(at=3.0), BadInput),
        (EffortPaused(3.0, "llama", "ana", "x"), IllegalTransition),
        (EffortClosed(3.0, "llama", Verdict.WON, "ana"), IllegalTransition),
        (EffortAmended(3.0, "nothing", CHARTER, "ana"), BadInput),
        (Defended(3.0, of_effort("nothing"), "ana", "x", 9.0, CHARTER), BadInput),
    ):
        with pytest.raises(error):
            fold.apply(event)
    assert fold.stewardship == before


def test_a_closed_effort_can_still_be_noted_on() -> None:
    fold = folded(opened(), EffortClosed(2.0, "llama", Verdict.LOST, "ana"))
    fold.apply(EffortNoted(3.0, "llama", "ben", "we tried this again in May"))
    assert fold.stewardship.stories["llama"][-1].by == "ben"


def test_what_people_say_can_be_written_and_read() -> None:
    for event in (
        opened(),
        Defended(1.0, "job:1", "ana", "x", 9.0, CHARTER),
        Amended(1.0, "1", CHARTER, "b"),
    ):
        assert decode_event(msgspec.msgpack.encode(event)) == event
