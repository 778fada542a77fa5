"""Reviews and defences, folded: what they change, what they refuse, and that they stay small."""

import pytest

from muster.model.charter import Charter, Verdict
from muster.model.errors import IllegalTransition, MusterError
from muster.model.events import ArraySubmitted, NodeSeen, Placed, Seat, Submitted, Withdrawn
from muster.model.job import Job, single
from muster.model.node import Node
from muster.model.policy import Policy
from muster.model.review import ReviewClosed, ReviewListed, ReviewOpened, of_work
from muster.model.stewardship import Defended
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of

SEAT = Seat("a", single(cpus_milli=1).parts[0].shape)
NEW = Charter(owner="bo", purpose="why", until=99.0)


def job(job_id: str, **more: object) -> Job:
    return Job(job_id, single(cpus_milli=1), 0.0, name="train-1", owner="ana", **more)  # type: ignore[arg-type]


def defence(subject: str, by: str = "bo") -> Defended:
    return Defended(5.0, subject, by, "it is needed", 99.0, NEW)


def folded(*events: object) -> Fold:
    fold = Fold(Policy())
    for event in (NodeSeen(0.0, Node("a", 8000, 1 << 30)), *events):
        fold.apply(event)  # type: ignore[arg-type]
    return fold


def charter_of(fold: Fold, job_id: str) -> Charter:
    record = fold.records[job_id]
    entry = record.running or record.waiting
    assert entry is not None
    return entry.job.charter


def test_a_defence_of_a_job_is_its_charter_from_then_on_whether_it_runs_or_waits() -> None:
    fold = folded(Submitted(0.0, job("1")), Submitted(0.0, job("2")), Placed(1.0, "2", 1, (SEAT,)))
    for job_id in ("1", "2"):
        fold.apply(defence(f"job:{job_id}"))
        assert charter_of(fold, job_id) == NEW
    assert fold.running["2"].job.charter == NEW
    assert len(fold.stewardship.defences[of_work("ana", "train-7", "why")]) == 2, "it is the same work"


def test_an_array_is_defended_with_all_of_its_members() -> None:
    fold = folded(ArraySubmitted(0.0, job("7"), (1, 2)), Placed(1.0, "7_1", 1, (SEAT,)))
    fold.apply(defence("job:7"))
    assert {charter_of(fold, "7_1"), charter_of(fold, "7_2"), fold.arrays["7"].template.charter} == {NEW}


def test_what_has_ended_or_never_was_can_not_be_defended() -> None:
    fold = folded(Submitted(0.0, job("1")), Withdrawn(1.0, "1"))
    for subject in ("job:1", "job:9", "effort:llama"):
        with pytest.raises(MusterError):
            fold.apply(defence(subject))
    assert fold.stewardship.defences == {}


def test_there_is_one_review_at_a_time_and_facts_name_it() -> None:
    fold = folded(ReviewOpened(1.0, 1, 0.0, 9.0))
    for wrong in (
        ReviewOpened(2.0, 2, 0.0, 9.0),
        ReviewListed(2.0, 2, {}),
        ReviewClosed(2.0, 3, "", (), ""),
    ):
        with pytest.raises(IllegalTransition):
            fold.apply(wrong)


def test_minutes_are_kept_of_the_last_two_hundred_reviews() -> None:
    fold = folded()
    for number in range(1, 251):
        fold.apply(ReviewOpened(number, number, 0.0, 9.0))
        fold.apply(ReviewClosed(number, number, "", (), f"# {number}"))
    past = fold.stewardship.reviews.past
    assert (len(past), min(past), fold.stewardship.reviews.last) == (200, 51, past[250])


def test_what_can_be_brought_back_is_bounded_and_in_the_image() -> None:
    fold = folded()
    for number in range(1, 1101):
        fold.apply(Submitted(0.0, job(str(number))))
        fold.apply(Withdrawn(1.0, str(number), verdict=Verdict.UNDEFENDED))
    reviews = fold.stewardship.reviews
    assert (len(reviews.revivable), reviews.stopped("100"), bool(reviews.stopped("101"))) == (
        1000,
        None,
        True,
    )
    assert fold_from(image_of(fold), Policy()).stewardship.reviews == reviews


def test_an_image_shows_the_moment_in_which_it_was_taken() -> None:
    fold = folded(ReviewOpened(1.0, 1, 0.0, 9.0))
    kept = fold.stewardship.copied()
    fold.apply(ReviewListed(2.0, 1, {"job:1": "ana"}))
    assert kept.reviews.current is not None
    assert (kept.reviews.current.listed, kept.reviews.asked) == ({}, {})
