"""Where a job goes: only where it may, and where it destroys least."""

import pytest

from case import Case
from muster.model.node import Health
from muster.model.reasons import (
    NoRoom,
    NoSuchCombination,
    NoSuchLabel,
    NoSuchModel,
    OutOfService,
    TooLarge,
)


def test_a_model_is_respected() -> None:
    c = Case().node("a", gpus=4, model="A40").node("b", gpus=4, model="H100")
    c.expect(c.waiting(gpus=1, model="H100")).starts_on("b")


def test_one_of_several_models_will_do() -> None:
    c = Case().node("a", gpus=4, model="A40").node("b", gpus=4, model="H100")
    c.running(gpus=4, on="b")
    c.expect(c.waiting(gpus=1, model=("H100", "A40"))).starts_on("a")


def test_a_model_nobody_has_never_runs_and_the_answer_names_those_there_are() -> None:
    c = Case().node("a", gpus=4, model="A40").node("b", gpus=4, model="H100")
    reason = c.expect(c.waiting(gpus=1, model="B200")).never_runs(because=NoSuchModel)
    assert "A40, H100" in reason.sentence()


def test_all_labels_must_be_on_the_node() -> None:
    c = Case().node("a", gpus=1, labels=("ib",)).node("b", gpus=1, labels=("ib", "nvme"))
    c.expect(c.waiting(gpus=1, labels=("nvme", "ib"))).starts_on("b")


def test_a_label_that_is_nowhere_never_runs() -> None:
    c = Case().node("a", gpus=1, labels=("ib",))
    c.expect(c.waiting(gpus=1, labels=("nvme",))).never_runs(because=NoSuchLabel)


def test_things_that_exist_but_never_on_one_node_never_run() -> None:
    c = Case().node("a", gpus=8, cpus=8).node("b", cpus=128)
    c.expect(c.waiting(gpus=1, cpus=64)).never_runs(because=NoSuchCombination)


@pytest.mark.parametrize("health", ["drained", "down"])
def test_a_node_that_is_drained_or_down_takes_nothing_new(health: str) -> None:
    c = Case().node("a", gpus=8, drained=health == "drained", down=health == "down")
    running = c.running(gpus=1, on="a")
    waiting = c.waiting(gpus=1)
    c.expect(waiting).waits(because=OutOfService)
    c.expect(running).stays()


def test_nobody_is_evicted_from_a_node_that_takes_nothing_new() -> None:
    c = Case().node("a", gpus=8, drained=True)
    low = c.running(gpus=8, on="a", priority="low")
    c.expect(c.waiting(gpus=8)).waits()
    c.expect(low).stays()


def test_a_node_that_comes_back_takes_jobs_again() -> None:
    c = Case().node("a", gpus=8, down=True)
    job = c.waiting(gpus=8)
    c.expect(job).waits()
    c.node_is("a", Health.UP)
    c.expect(job).starts_on("a")


def test_a_job_that_asks_for_nothing_waits_while_no_node_is_up() -> None:
    c = Case().node("a", down=True)
    c.expect(c.waiting(cpus=0)).waits(because=OutOfService)


def test_an_unhealthy_gpu_is_not_used() -> None:
    c = Case().node("a", gpus=3, unhealthy=(0, 2))
    assert c.expect(c.waiting(gpus=1)).starts_on("a").devices == (1,)
    c.expect(c.waiting(share=0.1)).waits(because=NoRoom)


def test_a_job_that_needs_an_unhealthy_gpu_waits_until_it_is_mended() -> None:
    c = Case().node("a", gpus=8, unhealthy=(3,))
    job = c.waiting(gpus=8)
    c.expect(job).waits(because=OutOfService)
    c.node("a", gpus=8)
    c.expect(job).starts_on("a")


def test_a_drained_gpu_takes_nothing_new_and_what_runs_there_goes_on() -> None:
    c = Case().node("a", gpus=2)
    running = c.running(gpus=1, on="a", devices=(0,))
    c.expect(running).stays()
    c.gpu_is("a", 0, healthy=False)
    assert c.expect(c.waiting(gpus=1)).starts_on("a").devices == (1,)
    c.expect(running).stays()
    c.ends(running)
    waiting = c.waiting(share=0.5)
    c.expect(waiting).waits()
    c.gpu_is("a", 0, healthy=True)
    assert c.expect(waiting).starts_on("a").devices == (0,)


def test_nobody_is_evicted_from_a_drained_gpu() -> None:
    c = Case().node("a", gpus=2)
    on_drained = c.running(gpus=1, on="a", devices=(0,), priority="low")
    elsewhere = c.running(gpus=1, on="a", devices=(1,))
    c.expect(on_drained).stays()
    c.gpu_is("a", 0, healthy=False)
    c.expect(c.waiting(gpus=1)).waits()
    c.expect(on_drained).stays()
    c.expect(elsewhere).stays()


def test_a_gpu_that_breaks_while_it_is_held_spoils_no_other() -> None:
    c = Case().policy("easy").node("a", gpus=4)
    c.running(gpus=1, on="a", devices=(0,), lasts="3h")
    c.running(gpus=1, on="a", devices=(1,), lasts="2h")
    c.running(gpus=2, on="a", devices=(2, 3), lasts="4h")
    c.expect(c.waiting(cpus=1)).starts()
    c.node("a", gpus=4, unhealthy=(0,))
    next_free = c.waiting(gpus=1, time_limit="1h")
    c.expect(c.waiting(cpus=1)).starts()
    c.expect(next_free).is_promised(within="1h")


def test_a_small_job_goes_where_the_gap_is_small() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(gpus=2, on="b")
    c.waiting(gpus=4, held=True)  # whole nodes are wanted, too
    c.expect(c.waiting(gpus=2)).starts_on("b")


def test_a_job_without_gpus_keeps_away_from_free_ones() -> None:
    c = Case().node("a", gpus=8, cpus=64).node("b", cpus=64)
    c.waiting(gpus=8, cpus=64, begin_in="1h")
    c.expect(c.waiting(cpus=32)).starts_on("b")


@pytest.mark.parametrize(
    "place", ["random", "best-fit", "dot-product", "packing", "clustering", "fgd", "default"]
)
def test_every_placement_respects_what_was_asked(place: str) -> None:
    c = Case().policy(place=place).node("a", gpus=4, model="A40").node("b", gpus=2, model="H100")
    c.node("c", gpus=4, model="H100", labels=("ib",)).node("d", cpus=8)
    c.expect(c.waiting(gpus=2, model="H100", labels=("ib",))).starts_on("c")
    c.expect(c.waiting(share=0.5, model="A40")).starts_on("a")
    c.expect(c.waiting(gpus=3, model="H100")).waits(because=NoRoom)
    c.expect(c.waiting(gpus=5)).never_runs(because=TooLarge)
