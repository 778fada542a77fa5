"""Every no has a reason, the deciding one, in a sentence that helps."""

from typing import Any

import pytest

from case import Case
from muster.model.node import Health
from muster.model.reasons import (
    BehindOthers,
    GangTooLarge,
    NoRoom,
    NoRoomTogether,
    NoSuchCombination,
    NotLookedAt,
    OutOfService,
    QuotaReached,
    TooLarge,
)


def test_too_many_gpus_on_one_node_says_what_was_meant() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=2)
    reason = c.expect(c.waiting(gpus=400)).never_runs(because=TooLarge)
    assert reason.sentence() == (
        "can never run: asks 400 GPUs on one node; the most is 4 GPUs, on a. "
        "Did you mean --gpus 4 --nodes 100?"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"cpus": 65}, "asks 65 cpus on one node; the most is 64 cpus, on a"),
        ({"memory": "1T"}, "asks 1T memory on one node; the most is 512G memory, on a"),
        ({"gpus": 1, "disk": "1G"}, "asks 1G disk on one node; the most is 0B disk"),
    ],
)
def test_too_much_of_anything_is_named(asked: dict[str, Any], said: str) -> None:
    c = Case().node("a", gpus=4)
    assert said in c.expect(c.waiting(**asked)).never_runs(because=TooLarge).sentence()


def test_gpus_where_there_are_none_say_so() -> None:
    c = Case().node("a")
    reason = c.expect(c.waiting(gpus=2)).never_runs(because=TooLarge)
    assert "the most is 0 GPUs" in reason.sentence()


def test_on_an_empty_cluster_nothing_runs_and_says_so() -> None:
    c = Case()
    c.expect(c.waiting(gpus=1)).never_runs(because=TooLarge)
    c.expect(c.waiting(cpus=0)).never_runs(because=NoSuchCombination)


@pytest.mark.parametrize(
    ("asked", "held", "what"),
    [
        ({"gpus": 4}, {"gpus": 2}, "GPUs"),
        ({"cpus": 40}, {"cpus": 32}, "cpus"),
        ({"memory": "300G"}, {"memory": "256G"}, "memory"),
        ({"gpus": 1, "memory": "300G"}, {"memory": "256G"}, "memory"),
        ({"share": 0.6}, {"share": 0.5, "parts": 4}, "GPU share"),
    ],
)
def test_what_is_short_is_named(asked: dict[str, Any], held: dict[str, Any], what: str) -> None:
    c = Case().node("a", gpus=4)
    if held.get("parts"):
        for g in range(4):
            c.running(share=0.5, on="a", devices=(g,))
    else:
        c.running(on="a", **held)
    reason = c.expect(c.waiting(**asked)).waits(because=NoRoom)
    assert isinstance(reason, NoRoom)
    assert reason.what == what
    assert reason.node == "a"
    assert 0 < reason.most < reason.asked


def test_the_most_that_is_free_is_told() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=8)
    c.running(gpus=1, on="a")
    c.running(gpus=6, on="b")
    reason = c.expect(c.waiting(gpus=4)).waits(because=NoRoom)
    assert reason.sentence() == "no node has 4 GPUs free together (the most is 3 GPUs, on a)"


def test_a_gang_says_how_much_of_it_fits() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=1, on="a")
    reason = c.expect(c.waiting(gpus=2, parts=4)).waits(because=NoRoomTogether)
    assert reason.sentence() == "only 3 of the 4 parts fit now"


def test_a_gang_too_large_says_how_much_would_fit() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    reason = c.expect(c.waiting(gpus=2, parts=5)).never_runs(because=GangTooLarge)
    assert reason.sentence() == ("can never run: the cluster has room for 4 of the 5 parts, even empty")


def test_quota_says_what_is_left() -> None:
    c = Case().node("a", gpus=8).team("nlp", quota=4, borrow=0).team("vision", quota=4)
    c.running(team="nlp", gpus=3, on="a")
    reason = c.expect(c.waiting(team="nlp", gpus=2)).waits(because=QuotaReached)
    assert reason.sentence() == (
        "team nlp has 1 GPU left of its quota and what it may borrow; this asks 2 GPUs"
    )


def test_behind_others_says_behind_whom() -> None:
    c = Case().policy("fifo").node("a", gpus=8)
    c.running(gpus=4, on="a")
    first = c.waiting(gpus=8, submitted_ago="1h")
    reason = c.expect(c.waiting(gpus=1)).waits(because=BehindOthers)
    assert first in reason.sentence()


def test_a_job_too_far_behind_says_so() -> None:
    c = Case().policy("easy-sjbf", depth=1).node("a", gpus=8)
    c.running(gpus=4, on="a", lasts="9h")
    c.waiting(gpus=8, time_limit="1h", submitted_ago="1h")
    c.waiting(gpus=2, time_limit="1d")
    last = c.waiting(gpus=3, time_limit="1d")
    c.expect(last).waits(because=NotLookedAt)


def test_all_jobs_of_a_lane_have_a_reason() -> None:
    c = Case().node("a", gpus=1)
    c.running(gpus=1, on="a")
    for job in [c.waiting(gpus=1) for _ in range(5)]:
        c.expect(job).waits(because=NoRoom)


# --- Out of service -----------------------------------------------------------------------------------


def test_who_waits_for_a_drained_node_is_told_why_it_is() -> None:
    c = Case().node("a", gpus=4).node("b", cpus=8)
    c.running(gpus=4, on="a")
    job = c.waiting(gpus=1)
    c.expect(job).waits(because=NoRoom)
    c.node_is("a", Health.DRAINED, "ana: fan is broken")
    reason = c.expect(job).waits(because=OutOfService)
    assert reason.sentence() == (
        "only what is out of service could take it: a is drained (ana: fan is broken)"
    )
    assert reason.action() == "bring it back, as an admin: muster node resume a"
    c.node_is("a", Health.UP)
    c.expect(job).waits(because=NoRoom)


def test_who_waits_for_a_drained_gpu_is_told_which_and_why() -> None:
    c = Case().node("a", gpus=8).node("b", gpus=4)
    c.gpu_is("a", 3, healthy=False, because="faults").gpu_is("b", 0, healthy=False)
    reason = c.expect(c.waiting(gpus=8)).waits(because=OutOfService)
    assert reason.sentence() == "only what is out of service could take it: GPU 3 of a is drained (faults)"
    assert reason.action() == "bring it back, as an admin: muster node resume a --gpu 3"


def test_a_gpu_of_another_model_is_not_what_a_job_waits_for() -> None:
    c = Case().node("a", gpus=1, model="A40", unhealthy=(0,)).node("b", gpus=1, model="H100", drained=True)
    reason = c.expect(c.waiting(gpus=1, model="H100")).waits(because=OutOfService)
    assert reason.sentence() == "only what is out of service could take it: b is drained"


def test_who_would_fit_if_others_left_waits_for_them_and_not_for_what_is_drained() -> None:
    c = Case().node("a", gpus=4, drained=True).node("b", gpus=4)
    c.running(gpus=4, on="b")
    c.expect(c.waiting(gpus=1)).waits(because=NoRoom)


def test_a_gang_waits_for_the_node_that_is_down() -> None:
    c = Case().node("a", gpus=4, down=True).node("b", gpus=4)
    c.running(gpus=1, on="b")
    reason = c.expect(c.waiting(gpus=4, parts=2)).waits(because=OutOfService)
    assert reason.sentence() == "only what is out of service could take it: a is down"
    assert reason.action() == "see what is down: muster node"


def test_where_much_is_out_of_service_a_few_are_named() -> None:
    c = Case()
    for name in "abcde":
        c.node(name, gpus=1, drained=True)
    reason = c.expect(c.waiting(gpus=1)).waits(because=OutOfService)
    assert reason.sentence().endswith("a is drained, b is drained, c is drained, and 2 more")
