"""A job's story, from the facts about it."""

from muster.model.charter import Charter, Verdict
from muster.model.events import (
    Amended,
    ArraySubmitted,
    Event,
    Evicting,
    Exited,
    Found,
    Held,
    Outcome,
    Placed,
    Promised,
    Released,
    Resumed,
    Retried,
    Seat,
    Seated,
    Started,
    Stopping,
    Submitted,
    Suspended,
    Vacated,
    Withdrawn,
)
from muster.model.job import Job, Shape, single
from muster.model.stewardship import BudgetReached, BudgetWarned, Defended
from muster.server.seeing.story import KINDS, lines_of, sentence_of

CHARTER = Charter(owner="ana", purpose="Does 8B beat 3B?", budget="200 GPUh")
JOB = Job("7", single(gpus=4), 0.0, name="fit", owner="ana", charter=CHARTER)
SEATS = (Seat("gpub001", Shape(gpus=2), (0, 1), 1000), Seat("gpub002", Shape(gpus=2), (0, 1), 1000))


def told(*facts: Event) -> list[tuple[float, str, str, str]]:
    return [(line.at, line.what, line.text, line.by) for line in lines_of(facts, 1000.0)]


def test_who_submitted_what_for_what_comes_first() -> None:
    assert told(Submitted(1.0, JOB)) == [(1001.0, "submitted", "4 × GPU: Does 8B beat 3B?", "ana")]
    assert told(ArraySubmitted(1.0, JOB, (1, 2, 3)))[0][2] == "4 × GPU, 3 members: Does 8B beat 3B?"


def test_placing_and_starting_is_one_line_and_says_where() -> None:
    assert told(Placed(1.0, "7", 1, SEATS), Started(2.0, "7", 1)) == [
        (1002.0, "started", "attempt 1 on gpub[001-002], 4 GPUs", "")
    ]


def test_where_it_truly_sits_is_told_if_nobody_decided_it() -> None:
    facts = (Placed(1.0, "7", 1, ()), Seated(2.0, "7", 1, SEATS), Started(2.0, "7", 1))
    assert told(*facts) == [(1002.0, "started", "attempt 1 on gpub[001-002], 4 GPUs", "")]


def test_it_is_evicted_goes_back_and_is_tried_again() -> None:
    assert [
        line[1:3]
        for line in told(
            Evicting(1.0, "7", 1, "reclaim", "9"),
            Vacated(2.0, "7", 1, "preempted", 120.0),
            Retried(3.0, "7", 2, Outcome.OUT_OF_MEMORY, 137, because="64G → 96G"),
            Retried(4.0, "7", 3, Outcome.FAILED, 1),
        )
    ] == [
        ("evicted", "reclaim, in favour of job 9"),
        ("requeued", "preempted; 2m of work lost"),
        ("retried", "out of memory, exit code 137; 64G → 96G"),
        ("retried", "failed, exit code 1; tried again, as asked"),
    ]


def test_what_changed_of_the_charter_is_said_with_who_changed_it_and_why() -> None:
    longer = Charter(owner="ana", purpose="Does 8B beat 3B?", budget="300 GPUh")
    assert told(Submitted(1.0, JOB), Amended(2.0, "7", longer, "ben", "two more epochs", 7200.0))[1] == (
        1002.0,
        "amended",
        "budget 200 GPUh → 300 GPUh, time limit 2h: two more epochs",
        "ben",
    )


def test_holding_pausing_warning_and_defending_are_told_in_their_order() -> None:
    defended = Defended(6.0, "job:7", "ben", "the paper needs it", 99.0, CHARTER)
    found = told(
        Held(1.0, "7"),
        Released(2.0, "7"),
        Suspended(3.0, "7", 1, "its budget is spent"),
        Suspended(3.5, "7", 1),
        Resumed(4.0, "7", 1),
        Found(5.0, "7", 1, "idle", "warn", "0 % for 9 h"),
        Promised(7.0, "7", nodes=("a",)),
        Promised(8.0, "7", nodes=("b",)),
        defended,
        BudgetWarned(5.5, "job:7", "200 GPUh", 160.0),
        BudgetReached(9.0, "job:7", "200 GPUh", 200.0, "its budget of 200 GPUh is spent"),
    )
    assert [line[1] for line in found] == [
        "held",
        "released",
        "paused",
        "resumed",
        "warned",
        "warned",
        "defended",
        "promised",
        "paused",
    ]
    assert found[6] == (1006.0, "defended", "the paper needs it", "ben")
    assert found[5][2] == "160 of its budget of 200 GPUh is spent"


def test_a_verdict_says_by_which_exit_and_how_the_process_ended() -> None:
    won = Exited(2.0, "7", 1, Outcome.STOPPED, None, 15, verdict=Verdict.WON, because="val_acc >= 0.92")
    assert [line[1:3] for line in told(Stopping(1.0, "7", 1, "won", Verdict.WON), won)] == [
        ("stopping", "won"),
        ("verdict", "won: val_acc >= 0.92 (stopped, by signal 15)"),
    ]
    assert told(Exited(1.0, "7", 1, Outcome.FAILED, 3))[0][1:3] == ("ended", "failed, exit code 3")
    assert told(Withdrawn(1.0, "7", because="stopped by ana"))[0][1:3] == (
        "ended",
        "stopped by ana, before it ran",
    )


def test_the_sentence_sums_it_up() -> None:
    lines = lines_of(
        [
            Submitted(1.0, JOB),
            Placed(2.0, "7", 1, SEATS),
            Started(2.0, "7", 1),
            Evicting(3.0, "7", 1, "priority"),
            Vacated(4.0, "7", 1, "priority"),
            Started(5.0, "7", 2),
            Exited(6.0, "7", 2, Outcome.SUCCEEDED, 0),
        ],
        0.0,
    )
    assert sentence_of("7", lines) == (
        "Job 7 was submitted by ana, started twice, evicted once, sent back to the queue once; succeeded."
    )
    assert sentence_of("7", []) == "Nothing is known of what happened to job 7."


def test_reports_are_no_part_of_it() -> None:
    assert "Reported" not in KINDS
    assert {"Submitted", "Exited", "Amended"} <= KINDS
