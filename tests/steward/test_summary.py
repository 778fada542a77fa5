"""How well a job used what it held, as ``muster show`` ends with it."""

from usage_lines import minute

from muster.model.events import Outcome
from muster.model.job import single
from muster.model.resources import Resources
from muster.model.units import GIB, HOUR, MILLI
from muster.model.usage import Usage
from muster.steward.past import PastUse, Request
from muster.steward.rightsize import advise
from muster.steward.scores import Bound
from muster.steward.summary import summarise

HELD = Resources(8 * MILLI, 64 * GIB, 2 * MILLI)
HOUR_OF_IT = Usage(HELD * 3600, HELD * 1800, Resources(1800 * MILLI, 0, 1116 * MILLI), 3600.0, 1800.0)


def test_a_summary_says_what_was_used_of_what_was_held_while_it_was_measured() -> None:
    minutes = [minute(1.0, memory=9 * GIB, gpus=((0.0, 0.3, 0.9), (0.0, 0.3, 0.9)), held=60.0)] * 30
    found = summarise(HOUR_OF_IT, minutes, HELD, gpu_metric="nvml-utilization")
    assert (found.coverage, found.cpu_part, found.gpu_part) == (0.5, 0.125, 0.31)
    assert found.memory_peak_bytes == 9 * GIB
    assert found.lines()[:4] == [
        ("measured", "50% of 1h"),
        ("cpu", "12% of 8 cpus"),
        ("memory", "9G at most, 14% of 64G asked"),
        ("GPU", "31% busy, of 2 (by nvml-utilization)"),
    ]


def test_it_ends_with_what_bounds_it_and_the_request_to_use_next_time() -> None:
    request = Request("ana", "train-", "", single(cpus_milli=8 * MILLI, memory_bytes=64 * GIB), None)
    ended = {"ended_at": 0.0, "outcome": Outcome.SUCCEEDED, "seconds": HOUR, "memory_peak_bytes": 8 * GIB}
    history = [PastUse(job="7", request=request, **ended)] * 9  # type: ignore[arg-type]
    found = summarise(HOUR_OF_IT, [minute(8.0)] * 60, HELD, advise(history, request))
    *_, bound_by, next_time, memory, time = found.lines()
    assert found.verdict.bound is Bound.CPU
    assert bound_by == ("bound by", str(found.verdict))
    assert next_time == ("next time", "--mem 9.5G --time 1h15m")
    assert memory[1].startswith("memory: 9.5G (64G asked)")
    assert time[1].startswith("time: 1h 15m (none asked)")


def test_what_was_not_measured_is_not_shown_as_nothing() -> None:
    found = summarise(Usage(HELD * 60, held_seconds=60.0), [], HELD)
    assert (found.cpu_part, found.gpu_part, found.memory_peak_bytes, found.memory_part) == (None,) * 4
    assert found.lines() == [
        ("measured", "0% of 1m"),
        ("GPU", "not known how busy 2 GPUs were"),
        ("bound by", "What bounds it is not known: only 0% of its time was measured."),
    ]


def test_the_kernels_peak_is_shown_where_it_is_known() -> None:
    found = summarise(HOUR_OF_IT, [minute(memory=GIB)], Resources(MILLI), memory_peak_bytes=2 * GIB)
    assert ("memory", "2G at most") in found.lines()
