"""Sharing a GPU: by fraction, by memory, or both; never on one that is held whole, never too much."""

from case import Case
from muster.model.reasons import NoRoom, TooLittleGpuMemory
from muster.model.units import MILLI


def test_two_halves_share_a_gpu() -> None:
    c = Case().node("a", gpus=1)
    halves = [c.waiting(share=0.5) for _ in range(2)]
    third = c.waiting(share=0.5, priority="low")
    for half in halves:
        c.expect(half).starts_on("a")
    c.expect(third).waits(because=NoRoom)


def test_a_share_is_not_put_on_a_gpu_that_is_held_whole() -> None:
    c = Case().node("a", gpus=1)
    c.running(gpus=1, on="a")
    share = c.waiting(share=0.01)
    c.expect(share).waits(because=NoRoom)


def test_a_whole_gpu_is_not_taken_where_somebody_has_a_share() -> None:
    c = Case().node("a", gpus=2)
    c.running(share=0.01, on="a")
    pair = c.waiting(gpus=2)
    one = c.waiting(gpus=1)
    c.expect(pair).waits(because=NoRoom)
    assert c.expect(one).starts_on("a").devices == (1,)


def test_a_share_goes_where_another_share_is() -> None:
    c = Case().node("a", gpus=4).node("b", gpus=4)
    c.running(share=0.5, on="b", devices=(2,))
    c.waiting(gpus=1, held=True)  # whole GPUs are wanted, too
    share = c.waiting(share=0.5)
    assert c.expect(share).starts_on("b").devices == (2,)


def test_a_share_can_be_asked_by_memory() -> None:
    c = Case().node("a", gpus=1, gpu_memory="40G")
    share = c.waiting(gpu_memory="10G")
    assert c.expect(share).starts_on("a").device_milli == MILLI // 4


def test_memory_shares_never_add_up_to_more_than_the_device_has() -> None:
    c = Case().node("a", gpus=1, gpu_memory="40G")
    three = [c.waiting(gpu_memory="13.4G") for _ in range(3)]
    started = [job for job in three if c.expect(job) and job in c.starts]
    assert len(started) == 2


def test_of_fraction_and_memory_the_larger_counts() -> None:
    c = Case().node("a", gpus=1, gpu_memory="40G")
    by_memory = c.waiting(share=0.1, gpu_memory="30G")
    half = c.waiting(share=0.5, priority="low")
    fits = c.waiting(share=0.25, priority="low")
    assert c.expect(by_memory).starts_on("a").device_milli == 750
    c.expect(half).waits()
    c.expect(fits).starts_on("a")


def test_the_same_memory_is_a_smaller_share_of_a_larger_gpu() -> None:
    c = Case().node("a", gpus=1, gpu_memory="40G").node("b", gpus=1, model="H100", gpu_memory="80G")
    large = c.waiting(gpu_memory="60G")
    assert c.expect(large).starts_on("b").device_milli == 750


def test_more_memory_than_any_gpu_has_never_runs_and_says_so() -> None:
    c = Case().node("a", gpus=1, gpu_memory="40G")
    large = c.waiting(gpu_memory="41G")
    reason = c.expect(large).never_runs(because=TooLittleGpuMemory)
    assert "memory" in reason.sentence()


def test_whole_gpus_with_more_memory_than_any_has_never_run_and_say_so() -> None:
    c = Case().node("a", gpus=4, gpu_memory="40G")
    large = c.waiting(gpus=2, gpu_memory="80G")
    reason = c.expect(large).never_runs(because=TooLittleGpuMemory)
    assert "memory" in reason.sentence()


def test_a_gpu_of_unknown_memory_is_not_shared_by_memory() -> None:
    c = Case().node("a", gpus=1, gpu_memory=None)
    share = c.waiting(gpu_memory="1G")
    half = c.waiting(share=0.5)
    c.expect(share).never_runs(because=TooLittleGpuMemory)
    c.expect(half).starts_on("a")


def test_whole_gpus_may_ask_for_memory_as_well() -> None:
    c = Case().node("a", gpus=2, gpu_memory="40G").node("b", gpus=2, model="H100", gpu_memory="80G")
    job = c.waiting(gpus=2, gpu_memory="80G")
    assert c.expect(job).starts_on("b").device_milli == MILLI


def test_shares_in_a_gang_find_room_on_one_device_each() -> None:
    c = Case().node("a", gpus=2)
    gang = c.waiting(share=0.6, parts=2)
    third = c.waiting(share=0.6, priority="low")
    c.expect(gang).starts_on("a")
    devices = {seat.devices for seat in c.starts[gang].seats}
    assert devices == {(0,), (1,)}
    c.expect(third).waits()


def test_a_share_of_a_model_that_is_too_small_never_runs() -> None:
    c = Case().node("a", gpus=1, gpu_memory="40G").node("b", gpus=1, model="H100", gpu_memory="80G")
    share = c.waiting(gpu_memory="60G", model="A40")
    c.expect(share).never_runs(because=TooLittleGpuMemory)
