"""Who has acted is not asked again; and what owners are told of findings."""

import pytest

from muster.model.charter import Charter, Verdict
from muster.model.events import (
    Amended,
    Event,
    Exited,
    Found,
    Outcome,
    Released,
    Reported,
    Resumed,
    Started,
    Withdrawn,
)
from muster.model.job import Job, single
from muster.model.message import Message
from muster.model.stewardship import Defended, EffortAmended, EffortClosed, EffortGoesOn
from muster.server.stewardship.telling import of_finding, of_mending
from muster.steward.answering import ANSWERS, answer_to, subject_of

ANA = Charter(owner="ana")
EXITED = Exited(1.0, "1", 1, Outcome.STOPPED)
CLOSED = EffortClosed(1.0, "e", Verdict.LOST, "ana")
DEFENDED = Defended(1.0, "job:1", "ana", "it learns", 9.0, ANA)
AMENDED = Amended(1.0, "1", ANA, "ana")
EXTENDED = EffortAmended(1.0, "e", ANA, "ana")
RELEASED, RESUMED = Released(1.0, "1"), Resumed(1.0, "1", 1)
GOES_ON = EffortGoesOn(1.0, "e", "ana")
ALL: list[Event] = [EXITED, CLOSED, DEFENDED, AMENDED, EXTENDED, RELEASED, RESUMED, GOES_ON]


def asked(kind: str) -> Message:
    return Message(to="ana", about="job:1", kind=kind, sentence="?", asks=True)


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        ("budget", [EXITED, CLOSED, AMENDED, EXTENDED, RELEASED, GOES_ON]),
        ("review", [EXITED, CLOSED, DEFENDED, AMENDED, EXTENDED]),
        ("silent", [EXITED, CLOSED, DEFENDED, AMENDED, EXTENDED]),
        ("finding:idle", [EXITED, CLOSED, DEFENDED, RESUMED]),
        ("something-new", ALL),
    ],
)
def test_which_facts_answer_which_questions(kind: str, answers: list[Event]) -> None:
    assert [event for event in ALL if answer_to(asked(kind), event) is not None] == answers


def test_how_it_was_answered_is_said() -> None:
    said = [answer_to(asked("anything"), event) for event in ALL]
    assert said == [
        "it has ended",
        "closed by ana as lost",
        "defended by ana",
        "changed by ana",
        "changed by ana",
        "it goes on",
        "it goes on",
        "it goes on",
    ]


def test_who_has_handed_work_over_is_not_asked_about_it() -> None:
    taken_over = Amended(1.0, "1", Charter(owner="ben"), "ben")
    assert answer_to(asked("finding:idle"), taken_over) == "it is ben's now"


def test_facts_know_what_they_are_about() -> None:
    assert subject_of(EXTENDED) == "effort:e"
    assert subject_of(Withdrawn(1.0, "7")) == "job:7"
    assert subject_of(DEFENDED) == "job:1"
    for event in (Started(1.0, "1", 1), Reported(1.0, "1", 1, {})):
        assert subject_of(event) is None
        assert type(event) not in ANSWERS


JOB = Job("12", single(), 0.0, owner="ben", name="train", charter=ANA)


def found(act: str) -> Found:
    return Found(1.0, "12", 1, "idle", act, "nothing was used for 1h")


@pytest.mark.parametrize(
    ("act", "is_followed", "asks", "urgent", "action"),
    [
        ("warn", False, True, False, "muster stop 12"),
        ("warn", True, True, True, "muster stop 12"),
        ("suspend", False, True, True, "muster resume 12"),
        ("stop", False, False, False, "muster show 12"),
    ],
)
def test_the_owner_is_told_of_a_finding(
    act: str, is_followed: bool, asks: bool, urgent: bool, action: str
) -> None:
    told = of_finding(JOB, found(act), is_followed=is_followed)
    assert told == Message(
        to="ana",
        about="job:12",
        kind="finding:idle",
        sentence="job 12 train: nothing was used for 1h",
        action=action,
        asks=asks,
        urgent=urgent,
    )


def test_what_is_only_noted_is_told_to_nobody() -> None:
    assert of_finding(JOB, found("note"), is_followed=False) is None


def test_what_was_mended_asks_nothing() -> None:
    told = of_mending(JOB, "its node failed: it is run again as it was")
    assert (told.to, told.asks, told.urgent, told.action) == ("ana", False, False, "muster show 12")
