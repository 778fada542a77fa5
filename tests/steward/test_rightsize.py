"""What to ask for next time: enough, and not much more."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from usage_lines import minute, stat

from muster.model.events import Outcome
from muster.model.job import Gang, Job, Part, Shape, single
from muster.model.resources import Resources
from muster.model.run import Run
from muster.model.units import GIB, HOUR, MILLI, WEEK
from muster.model.usage import Rollup
from muster.steward.oversized import oversized
from muster.steward.past import PastUse, Request, command_of, past_use, same_work
from muster.steward.rightsize import SizeRules, advise

RULES = SizeRules()
ASKED = single(cpus_milli=16 * MILLI, memory_bytes=64 * GIB)
REQUEST = Request("ana", "train-", "c1", ASKED, 24 * HOUR)


def use(
    gib: float | None = 8.0,
    *,
    outcome: Outcome = Outcome.SUCCEEDED,
    seconds: float = HOUR,
    at: float = 0.0,
    cpus: float | None = 2.0,
    request: Request = REQUEST,
    **more: object,
) -> PastUse:
    peak = None if gib is None else round(gib * GIB)
    known = {"cpus": cpus, "memory_peak_bytes": peak, **more}
    return PastUse(job="7", request=request, ended_at=at, outcome=outcome, seconds=seconds, **known)  # type: ignore[arg-type]


# --- Memory ---------------------------------------------------------------------------------------


def test_steady_work_is_advised_what_it_needs_and_a_margin() -> None:
    memory = advise([use(8.0)] * 20, REQUEST).memory
    assert memory is not None
    assert memory.value == 9.5 * GIB
    assert (memory.asked, memory.needed, memory.runs) == (64 * GIB, 8 * GIB, 20)
    assert memory.margin == pytest.approx(0.1875)


def test_with_too_few_runs_nothing_is_advised() -> None:
    advice = advise([use()] * (RULES.least_runs - 1), REQUEST)
    assert (advice.memory, advice.cpus, advice.time, advice.flags) == (None, None, None, "")


def test_the_more_its_needs_differ_the_larger_is_the_margin() -> None:
    steady = advise([use(8.0 + 0.01 * n) for n in range(20)], REQUEST).memory
    broad = advise([use(8.0 * 1.1**-n) for n in range(20)], REQUEST).memory
    assert steady is not None
    assert broad is not None
    assert steady.value < broad.value


def test_the_more_runs_there_are_the_smaller_is_the_margin() -> None:
    few = advise([use(8.0 * 1.1**-n) for n in range(6)], REQUEST).memory
    many = advise([use(8.0 * 1.1 ** -(n % 6)) for n in range(120)], REQUEST).memory
    assert few is not None
    assert many is not None
    assert many.value < few.value


def test_a_request_that_has_held_is_not_raised_for_what_was_never_seen() -> None:
    request = msgspec.structs.replace(REQUEST, gang=single(memory_bytes=10 * GIB))
    memory = advise([use(8.0 / 2**n) for n in range(6)], request).memory
    assert memory is not None
    assert not memory.differs


def test_a_request_that_is_too_small_is_raised() -> None:
    request = msgspec.structs.replace(REQUEST, gang=single(memory_bytes=8 * GIB))
    memory = advise([use(7.9)] * 9, request).memory
    assert memory is not None
    assert memory.value == 9.5 * GIB


def test_who_ran_out_of_memory_needed_more_than_it_had() -> None:
    small = msgspec.structs.replace(REQUEST, gang=single(memory_bytes=20 * GIB))
    failed = use(19.9, outcome=Outcome.OUT_OF_MEMORY, request=small)
    memory = advise([*[use(8.0)] * 9, failed], REQUEST).memory
    assert memory is not None
    assert memory.needed == 30 * GIB


def test_runs_that_failed_by_themselves_are_no_evidence_that_little_suffices() -> None:
    failures = [use(0.1, outcome=Outcome.FAILED)] * 50
    assert advise(failures, REQUEST).memory is None
    assert advise([*failures, *[use(8.0)] * 9], REQUEST).memory == advise([use(8.0)] * 9, REQUEST).memory


def test_but_what_they_took_was_needed() -> None:
    memory = advise([*[use(8.0)] * 9, use(40.0, outcome=Outcome.FAILED)], REQUEST).memory
    assert memory is not None
    assert memory.needed == 40 * GIB


def test_what_is_long_ago_does_not_count() -> None:
    old, new = [use(30.0, at=0.0)] * 9, [use(8.0, at=30 * WEEK)] * 9
    memory = advise(old + new, REQUEST, now=31 * WEEK).memory
    assert memory is not None
    assert memory.needed == 8 * GIB


_needs = st.lists(st.floats(0.001, 4096), min_size=5, max_size=40)


@given(_needs, st.floats(0, 8192), st.sampled_from([Outcome.SUCCEEDED, Outcome.STOPPED, Outcome.TIMEOUT]))
def test_advice_is_never_below_what_was_needed_and_the_least_margin(
    needs: list[float], asked: float, outcome: Outcome
) -> None:
    request = msgspec.structs.replace(REQUEST, gang=single(memory_bytes=round(asked * GIB)))
    memory = advise([use(need, outcome=outcome) for need in needs], request).memory
    assert memory is not None
    assert memory.value >= round(max(needs) * GIB) * (1 + RULES.margin)
    assert memory.margin >= RULES.margin - 1e-9


@given(_needs, st.floats(0.001, 4096))
def test_one_more_record_never_lowers_advice(needs: list[float], more: float) -> None:
    record = max(needs) + more
    request = msgspec.structs.replace(REQUEST, gang=single())
    before = advise([use(need) for need in needs], request).memory
    after = advise([use(need) for need in [*needs, record]], request).memory
    assert before is not None
    assert after is not None
    assert after.value >= record * GIB * (1 + RULES.margin)


# --- Cpus, GPU memory and time --------------------------------------------------------------------


def test_cpus_are_advised_so_that_most_runs_have_enough() -> None:
    cpus = advise([use(cpus=1.8)] * 30 + [use(cpus=9.0)], REQUEST).cpus
    assert cpus is not None
    assert (cpus.value, cpus.asked, cpus.runs) == (2 * MILLI, 16 * MILLI, 31)


def test_who_was_held_back_by_its_cap_would_have_used_more() -> None:
    two = msgspec.structs.replace(REQUEST, gang=single(cpus_milli=2 * MILLI))
    cpus = advise([use(cpus=2.0, throttled=0.5, request=two)] * 9, two).cpus
    assert cpus is not None
    assert cpus.value == 3 * MILLI


def test_runs_by_the_same_command_tell_more_about_cpus() -> None:
    other = msgspec.structs.replace(REQUEST, command="c2")
    history = [use(cpus=1.0)] * 4 + [use(cpus=8.0, request=other)] * 1
    cpus = advise(history, REQUEST, msgspec.structs.replace(RULES, cpu_part=0.9)).cpus
    assert cpus is not None
    assert cpus.value == 1 * MILLI


def test_a_share_of_a_gpu_is_sized_by_memory() -> None:
    share = single(gpus=1, gpu_milli=0, gpu_memory_bytes=40 * GIB)
    request = msgspec.structs.replace(REQUEST, gang=share)
    history = [use(gpu_memory_peak_bytes=10 * GIB, request=request)] * 9
    assert advise(history, request).gpu_memory.value == 11.5 * GIB  # type: ignore[union-attr]
    assert advise(history, REQUEST).gpu_memory is None


def test_time_is_advised_by_runs_that_came_to_their_end() -> None:
    history = [*[use(seconds=2 * HOUR)] * 9, use(seconds=9 * HOUR, outcome=Outcome.FAILED)]
    time = advise(history, REQUEST).time
    assert time is not None
    assert (time.value, time.needed) == (2.5 * HOUR, 2 * HOUR)


def test_who_was_cut_off_needed_longer() -> None:
    time = advise(
        [*[use(seconds=2 * HOUR)] * 9, use(seconds=4 * HOUR, outcome=Outcome.TIMEOUT)], REQUEST
    ).time
    assert time is not None
    assert time.needed == 6 * HOUR


# --- In words -------------------------------------------------------------------------------------


def test_advice_is_ready_to_paste_and_says_what_it_rests_on() -> None:
    advice = advise([use(8.0, seconds=2 * HOUR)] * 20, REQUEST)
    assert advice.flags == "--mem 9.5G --cpus 2 --time 2h30m"
    assert advice.lines() == [
        "memory: 9.5G (64G asked): 8G was the most needed in 20 runs, and 19% of margin",
        "cpus: 2 (16 asked): 2 was used by most in 20 runs, and 0% of margin",
        "time: 2h 30m (1d asked): 2h was the most needed in 20 runs, and 25% of margin",
    ]


def test_what_is_right_already_is_not_among_the_flags() -> None:
    right = msgspec.structs.replace(REQUEST, gang=single(cpus_milli=2 * MILLI, memory_bytes=round(9.5 * GIB)))
    assert advise([use(8.0, seconds=2 * HOUR)] * 20, right).flags == "--time 2h30m"


# --- The same work --------------------------------------------------------------------------------


def test_other_owners_and_other_names_do_not_count() -> None:
    others = [
        use(40.0, request=msgspec.structs.replace(REQUEST, **changed))
        for changed in ({"whose": "bob"}, {"kind": "eval-"})
    ]
    assert advise(others * 9, REQUEST).memory is None


def test_runs_by_the_same_command_count_alone_once_there_are_enough() -> None:
    other = msgspec.structs.replace(REQUEST, command="c2")
    few, many = [use(8.0)] * 4, [use(8.0)] * 5
    large = [use(40.0, request=other)] * 9
    assert advise(large + few, REQUEST).memory.needed == 40 * GIB  # type: ignore[union-attr]
    assert advise(large + many, REQUEST).memory.needed == 8 * GIB  # type: ignore[union-attr]


def test_what_was_asked_is_no_likeness_so_advice_goes_on_learning() -> None:
    """Else the runs before the first advice, that asked for as much as this one, would count for ever."""
    advised = msgspec.structs.replace(REQUEST, gang=single(memory_bytes=10 * GIB))
    history = [use(8.0)] * 9 + [use(9.5, request=advised)]
    assert advise(history, REQUEST).memory.needed == 9.5 * GIB  # type: ignore[union-attr]


def test_jobs_without_a_name_have_only_their_command_in_common() -> None:
    nameless = Request("ana", "", "c1", ASKED)
    assert same_work([use(request=nameless)], nameless, least=1, most=9)
    assert not same_work([use(request=nameless)], Request("ana", "", "c2", ASKED), least=1, most=9)
    assert not same_work(
        [use(request=Request("ana", "", "", ASKED))], Request("ana", "", "", ASKED), least=1, most=9
    )


def test_equal_commands_are_known_by_what_they_are() -> None:
    one, other = Run(("python", "a.py")), Run(("python", "a.py --lr 1"))
    assert command_of(one) == command_of(Run(("python", "a.py"), cwd="/elsewhere"))
    assert command_of(one) != command_of(other)
    assert command_of(None) == command_of(Run()) == ""


def test_what_a_run_used_follows_from_its_minutes() -> None:
    job = Job("7", ASKED, 0.0, name="train-3", owner="ana", time_limit_seconds=HOUR)
    minutes = [minute(1.0, memory=3 * GIB, throttled=0.1)] * 18 + [minute(4.0, memory=5 * GIB)] * 2
    found = past_use(job, minutes, ended_at=9.0, outcome=Outcome.SUCCEEDED, seconds=1200.0)
    assert found.request == Request("ana", "train-", "", ASKED, HOUR)
    assert (found.cpus, found.memory_peak_bytes) == (4.0, 5 * GIB)
    assert found.throttled == pytest.approx(0.09)


def test_the_kernels_peak_is_better_than_that_of_minutes() -> None:
    ended = {"ended_at": 9.0, "outcome": Outcome.SUCCEEDED, "seconds": 60.0}
    found = past_use(Job("7", ASKED, 0.0), [minute(memory=3 * GIB)], memory_peak_bytes=6 * GIB, **ended)  # type: ignore[arg-type]
    assert found.memory_peak_bytes == 6 * GIB


def test_minutes_do_not_tell_which_of_several_parts_took_most_memory() -> None:
    gang = Gang((Part(Shape(memory_bytes=GIB), 4),))
    minutes: list[Rollup] = [
        msgspec.structs.replace(minute(4.0, memory=3 * GIB), gpu_memory_bytes=(stat(5.0),))
    ]
    found = past_use(Job("7", gang, 0.0), minutes, ended_at=9.0, outcome=Outcome.SUCCEEDED, seconds=60.0)
    assert (found.memory_peak_bytes, found.cpus, found.gpu_memory_peak_bytes) == (None, 1.0, 5)


# --- Far from the truth ---------------------------------------------------------------------------

CLUSTER = Resources(100 * MILLI, 1024 * GIB)


def test_requests_that_are_far_from_the_truth_are_listed_those_that_cost_most_first() -> None:
    small = Request("bob", "eval", "", single(cpus_milli=2 * MILLI, memory_bytes=32 * GIB))
    history = [use(8.0, request=small)] * 9 + [use(8.0)] * 9
    found = oversized(history, CLUSTER)
    assert [one.request.whose for one in found] == ["ana", "bob"]
    assert found[0].saved == Resources(9 * 3600 * 14 * MILLI, round(9 * 3600 * 54.5 * GIB))
    assert found[0].cluster_seconds == pytest.approx(9 * 3600 * 14 / 100)
    assert str(found[1]) == (
        "bob's eval: --mem 9.5G --time 1h15m would have freed 202 GiB·h of memory in 9 runs"
    )


def test_requests_that_are_nearly_right_are_not_listed() -> None:
    near = Request("bob", "eval", "", single(cpus_milli=2 * MILLI, memory_bytes=12 * GIB))
    assert oversized([use(8.0, request=near)] * 9, CLUSTER) == []


def test_what_is_not_measured_is_not_listed() -> None:
    assert oversized([use(None, cpus=None)] * 9, CLUSTER) == []
    assert oversized([], CLUSTER) == []


def test_every_part_of_a_gang_frees_what_it_held_too_much() -> None:
    gang = Gang((Part(Shape(memory_bytes=32 * GIB), 4),))
    (found,) = oversized([use(8.0, request=Request("bob", "eval", "", gang))] * 9, CLUSTER)
    assert found.saved.memory_bytes == round(4 * 9 * 3600 * 22.5 * GIB)
    assert math.isfinite(found.cluster_seconds)
