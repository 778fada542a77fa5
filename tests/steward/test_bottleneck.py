"""What bounds a job: by minutes written for it, and by minutes recorded of real jobs whose bound is known."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from usage_lines import minute

from bench import bottleneck as bench
from muster.model.resources import Resources
from muster.model.units import GIB, MIB, MILLI
from muster.model.usage import Rollup, Stat
from muster.steward.bottleneck import Verdict, bound
from muster.steward.scores import Bound, BoundRules

FOUR = Resources(4 * MILLI, 8 * GIB)
WITH_GPU = Resources(4 * MILLI, 8 * GIB, MILLI)
MANY = 100 * MIB * 60


def judged(*minutes: Rollup, held: Resources = FOUR) -> Verdict:
    return bound(minutes, held)


# --- Cpus -----------------------------------------------------------------------------------------------


def test_who_uses_all_its_cpus_is_bound_by_them() -> None:
    verdict = judged(minute(3.96))
    assert (verdict.bound, verdict.helps) == (Bound.CPU, "more cpus")
    assert verdict.because == "it uses 4 of the 4 cpus it holds"
    assert verdict.how_sure == "high"


def test_who_is_held_back_by_its_cap_is_told_so() -> None:
    verdict = judged(minute(1.9, throttled=0.6), held=Resources(2 * MILLI))
    assert verdict.bound is Bound.CPU
    assert "held back by its cap 60% of the time" in verdict.because


def test_who_waits_for_its_turn_on_a_full_node_is_bound_by_cpus() -> None:
    verdict = judged(minute(2.0, pressure=(0.7, 0.0, 0.0)))
    assert verdict.bound is Bound.CPU
    assert "waits for its turn 70% of the time" in verdict.because


def test_one_busy_thread_is_not_helped_by_more_cpus() -> None:
    verdict = judged(minute((0.98, 0.99, 1.0)))
    assert verdict.bound is Bound.CPU
    assert (verdict.helps, verdict.wasted) == (
        "more threads of its own, or faster cpus",
        "more cpus, memory or GPUs",
    )


def test_many_threads_that_wait_by_turns_are_not_one_busy_thread() -> None:
    assert judged(minute((0.3, 1.0, 1.9), processes=40)).bound is Bound.WAITING


# --- Memory and disks -------------------------------------------------------------------------------------


def test_who_waits_for_memory_is_bound_by_it_whatever_its_cpus_do() -> None:
    verdict = judged(minute(3.0, pressure=(0.1, 0.4, 0.5), read=MANY))
    assert (verdict.bound, verdict.helps) == (Bound.MEMORY, "more memory")
    assert verdict.because == "it waits for memory 40% of the time"


def test_who_reads_again_what_did_not_stay_lacks_memory_and_not_a_disk() -> None:
    waits = minute(0.1, pressure=(0.0, 0.0, 0.9), read=MANY)
    assert judged(waits).bound is Bound.DISK
    again = msgspec.structs.replace(waits, refaulted_bytes=MANY)
    verdict = judged(again)
    assert verdict.bound is Bound.MEMORY
    assert "100M a second that it has read before" in verdict.because


def test_who_waits_for_disks_is_bound_by_them() -> None:
    verdict = judged(minute(0.2, pressure=(0.0, 0.0, 0.8), written=MANY))
    assert verdict.bound is Bound.DISK
    assert verdict.because == "it waits for disks 80% of the time and reads and writes 100M a second"


# --- Without pressure ---------------------------------------------------------------------------------------


def test_without_pressure_cpus_and_throttling_still_tell() -> None:
    assert judged(minute(3.9, pressure=None)).bound is Bound.CPU
    assert judged(minute(0.5, throttled=0.8, pressure=None)).bound is Bound.CPU


def test_without_pressure_bytes_tell_of_disks_with_less_certainty() -> None:
    verdict = judged(minute(0.1, pressure=None, written=MANY))
    assert verdict.bound is Bound.DISK
    assert verdict.sure <= 0.5


def test_without_pressure_memory_at_its_limit_and_much_read_tells_of_memory() -> None:
    at_limit = minute(0.1, pressure=None, memory=8 * GIB - 1, read=MANY, refaulted=None)
    verdict = judged(at_limit)
    assert verdict.bound is Bound.MEMORY
    assert verdict.because == "its memory is at the limit, and it reads 100M a second besides"


def test_memory_at_its_limit_slows_nobody_by_itself() -> None:
    assert judged(minute(3.9, pressure=None, memory=8 * GIB, refaulted=None)).bound is Bound.CPU


# --- GPUs -------------------------------------------------------------------------------------------------


def test_a_busy_gpu_bounds_the_job_though_a_thread_spins() -> None:
    verdict = judged(minute(1.0, gpus=(0.97, 0.95)))
    assert (verdict.bound, verdict.because) == (
        Bound.GPU,
        "the busiest of its 2 GPUs is busy 97% of the time",
    )
    assert verdict.wasted == "more cpus or memory"


def test_a_gpu_in_bursts_while_cpus_are_pinned_is_starved_by_them() -> None:
    verdict = judged(minute(3.95, gpus=((0.0, 0.3, 0.98),)))
    assert verdict.bound is Bound.INPUT
    assert verdict.helps == "more cpus and workers that prepare its input"
    assert verdict.wasted == "more or faster GPUs"


def test_a_gpu_in_bursts_while_it_reads_is_starved_by_the_disk() -> None:
    verdict = judged(minute(0.3, pressure=(0.0, 0.0, 0.7), read=MANY, gpus=((0.0, 0.3, 0.98),)))
    assert verdict.bound is Bound.INPUT
    assert "a faster disk" in verdict.helps


def test_a_gpu_that_is_never_used_starves_nobody() -> None:
    assert judged(minute(3.95, gpus=(0.0,))).bound is Bound.CPU


def test_a_gpu_that_is_held_while_nothing_is_busy_waits_for_something_else() -> None:
    verdict = judged(minute(0.01, gpus=(0.0,)))
    assert verdict.bound is Bound.WAITING
    assert verdict.because == (
        "nothing of it is busy: it uses 0.01 of the 4 cpus it holds, and its GPU is busy 0% of the time"
    )


def test_one_busy_gpu_bounds_the_job_though_another_idles() -> None:
    assert judged(minute(0.1, gpus=(0.95, 0.0))).bound is Bound.GPU


def test_a_gpu_of_which_nothing_is_known_leaves_doubt_about_cpus_that_are_busy() -> None:
    verdict = judged(*[minute(3.9, gpus=(None,))] * 9, held=WITH_GPU)
    assert (verdict.bound, verdict.how_sure) == (Bound.CPU, "medium")


def test_who_holds_a_gpu_of_which_nothing_is_known_is_not_said_to_wait() -> None:
    verdict = judged(minute(0.01, gpus=(None,)), held=WITH_GPU)
    assert str(verdict) == "What bounds it is not known: how busy its GPUs were was not measured."


# --- How sure -----------------------------------------------------------------------------------------------


def test_with_little_measured_nothing_is_said() -> None:
    verdict = judged(minute(3.9, measured=20.0), minute(None, measured=0.0))
    assert (verdict.bound, verdict.sure) == (Bound.UNKNOWN, 0.0)
    assert verdict.because == "only 17% of its time was measured"
    assert "not known" in str(verdict)


def test_without_minutes_nothing_is_said() -> None:
    assert judged().bound is Bound.UNKNOWN


def test_a_short_look_is_less_sure_than_a_long_one() -> None:
    short, long = judged(minute(3.9, measured=6.0, held=6.0)), judged(*[minute(3.9)] * 10)
    assert short.sure < long.sure


def test_what_bounds_it_most_of_the_time_counts() -> None:
    loading = minute(0.1, pressure=(0.0, 0.0, 0.9), read=MANY)
    assert judged(*[loading] * 3, *[minute(3.9)] * 7).bound is Bound.CPU
    assert judged(*[loading] * 7, *[minute(3.9)] * 3).bound is Bound.DISK


def test_a_verdict_is_a_sentence_that_says_what_to_do() -> None:
    assert str(judged(minute(3.96))) == (
        "Bound by cpu (high certainty): it uses 4 of the 4 cpus it holds. "
        "It would be faster with more cpus; more memory or GPUs would be wasted."
    )


_parts = st.floats(0, 1)
_stats = st.none() | st.tuples(_parts, _parts, _parts).map(lambda p: Stat(*sorted(p)))
_amounts = st.none() | st.integers(0, 1 << 50)
_minutes = st.builds(
    Rollup,
    job=st.just("7"),
    attempt=st.just(1),
    start=st.just(0.0),
    held_seconds=st.floats(0, 60),
    measured_seconds=st.floats(0, 60),
    cpus=st.none() | st.floats(0, 1000).map(lambda c: Stat(c, c, c)),
    throttled=st.none() | st.floats(0, 50).map(lambda c: Stat(c, c, c)),
    memory_bytes=_stats,
    processes=_stats,
    read_bytes=_amounts,
    written_bytes=_amounts,
    refaulted_bytes=_amounts,
    cpu_pressure=_stats,
    memory_pressure=_stats,
    io_pressure=_stats,
    gpu_busy=st.lists(_stats, max_size=3).map(tuple),
)
_held = st.builds(Resources, st.integers(0, 10**6), st.integers(0, 1 << 45), st.integers(0, 4000))


@given(st.lists(_minutes, max_size=5), _held)
def test_there_is_a_verdict_on_anything(minutes: list[Rollup], held: Resources) -> None:
    verdict = bound(minutes, held)
    assert 0 <= verdict.sure <= 1
    assert 0 <= verdict.coverage <= 1
    assert verdict.because
    if verdict.bound is not Bound.UNKNOWN:
        assert verdict.coverage >= BoundRules().least_coverage


# --- Recorded jobs ----------------------------------------------------------------------------------------

RECORDED = {one.name: one for one in bench.recorded()}


@pytest.mark.parametrize("name", RECORDED)
def test_the_bound_of_a_recorded_job_is_found(name: str) -> None:
    judgement = bench.judged(RECORDED[name])
    assert judgement.right, str(judgement.verdict)


def test_without_pressure_most_are_found_and_the_rest_is_not_said_with_certainty() -> None:
    found = [bench.judged(one, forget=True) for one in RECORDED.values()]
    assert sum(one.right for one in found) >= 0.8 * len(found)
    assert all(one.verdict.how_sure != "high" for one in found if not one.right)
