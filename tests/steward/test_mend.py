"""What a machine can mend, and how often it tries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.job import Gang, Job, Part, Shape, single
from muster.model.units import GIB, MIB, parse_bytes, parse_seconds, show_bytes
from muster.steward.cause import Cause, Evidence, Kind
from muster.steward.humane import bytes_up, cpus_up, flags, seconds_up
from muster.steward.mend import MendRules, mend

RULES = MendRules(most_memory_bytes=256 * GIB, most_gpu_memory_bytes=80 * GIB)


def job(gang: Gang | None = None, **asked: int) -> Job:
    return Job("7", gang or single(**asked), 0.0)  # type: ignore[arg-type]


def cause(kind: Kind, peak: int | None = None, limit: int | None = None) -> Cause:
    return Cause(kind, Evidence("e"), "a.", peak, limit)


@pytest.mark.parametrize("kind", [Kind.PREEMPTED, Kind.NODE_FAULT, Kind.GPU_FAULT])
def test_who_had_bad_luck_is_run_again_as_it_was(kind: Kind) -> None:
    again = mend(cause(kind), job(gpus=4, memory_bytes=GIB), RULES, 0)
    assert again is not None
    assert again.gang == single(gpus=4, memory_bytes=GIB)


MENDED = {Kind.PREEMPTED, Kind.NODE_FAULT, Kind.GPU_FAULT, Kind.HOST_OUT_OF_MEMORY, Kind.GPU_OUT_OF_MEMORY}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in MENDED])
def test_the_rest_is_never_run_again(kind: Kind) -> None:
    assert mend(cause(kind, GIB, GIB), job(gpus=1, memory_bytes=GIB), RULES, 0) is None


@pytest.mark.parametrize("kind", sorted(MENDED))
def test_nothing_is_tried_for_ever(kind: Kind) -> None:
    assert mend(cause(kind, GIB, GIB), job(gpus=1, memory_bytes=GIB), RULES, RULES.tries) is None


def test_who_ran_out_of_memory_gets_half_as_much_again() -> None:
    again = mend(cause(Kind.HOST_OUT_OF_MEMORY), job(memory_bytes=64 * GIB), RULES, 0)
    assert again is not None
    assert again.gang == single(memory_bytes=96 * GIB)
    assert again.because == "it ran out of memory: it is run again with more (64G → 96G)"


def test_who_asked_for_no_memory_gets_more_than_it_took() -> None:
    again = mend(cause(Kind.HOST_OUT_OF_MEMORY, 5 * GIB), job(), RULES, 0)
    assert again is not None
    assert again.gang == single(memory_bytes=parse_bytes("7.5G"))
    assert mend(cause(Kind.HOST_OUT_OF_MEMORY), job(), RULES, 0) is None  # and nothing if nobody knows


def test_more_memory_ends_at_the_cap() -> None:
    again = mend(cause(Kind.HOST_OUT_OF_MEMORY), job(memory_bytes=200 * GIB), RULES, 0)
    assert again is not None
    assert again.gang == single(memory_bytes=256 * GIB)
    assert mend(cause(Kind.HOST_OUT_OF_MEMORY), job(memory_bytes=256 * GIB), RULES, 0) is None
    assert mend(cause(Kind.HOST_OUT_OF_MEMORY), job(memory_bytes=GIB), MendRules(), 0) is None


def test_every_part_of_a_gang_gets_more_memory() -> None:
    gang = Gang((Part(Shape(memory_bytes=2 * GIB)), Part(Shape(memory_bytes=8 * GIB), 3)))
    again = mend(cause(Kind.HOST_OUT_OF_MEMORY), job(gang), RULES, 1)
    assert again is not None
    assert [part.shape.memory_bytes for part in again.gang.parts] == [3 * GIB, 12 * GIB]
    assert [part.count for part in again.gang.parts] == [1, 3]


def test_a_share_of_a_gpu_grows_by_memory() -> None:
    asks = {"gpus": 1, "gpu_milli": 0, "gpu_memory_bytes": 8 * GIB}
    again = mend(cause(Kind.GPU_OUT_OF_MEMORY, limit=8 * GIB), job(**asks), RULES, 0)
    assert again is not None
    assert again.gang.parts[0].shape.gpu_memory_bytes == 12 * GIB


def test_a_whole_gpu_that_was_too_small_is_followed_by_a_larger_one() -> None:
    again = mend(cause(Kind.GPU_OUT_OF_MEMORY, limit=40 * GIB), job(gpus=1), RULES, 0)
    assert again is not None
    assert again.gang.parts[0].shape.gpu_memory_bytes == 60 * GIB
    assert mend(cause(Kind.GPU_OUT_OF_MEMORY, limit=80 * GIB), job(gpus=1), RULES, 0) is None


def test_who_holds_no_gpu_gets_none() -> None:
    assert mend(cause(Kind.GPU_OUT_OF_MEMORY, limit=8 * GIB), job(memory_bytes=GIB), RULES, 0) is None


_amounts = st.integers(0, 1 << 42)
_shapes = st.builds(
    Shape,
    memory_bytes=_amounts,
    gpus=st.integers(0, 2),
    gpu_memory_bytes=_amounts,
    cpus_milli=st.integers(0, 9),
)
_gangs = st.lists(st.builds(Part, _shapes, st.integers(1, 4)), min_size=1, max_size=3).map(
    lambda p: Gang(tuple(p))
)
_causes = st.builds(cause, st.sampled_from(Kind), st.none() | _amounts, st.none() | _amounts)
_rules = st.builds(MendRules, st.integers(0, 4), st.floats(0.1, 8), _amounts, _amounts)


@given(_causes, _gangs, _rules, st.integers(0, 5))
def test_mending_never_takes_memory_away_nor_gives_more_than_the_cap(
    why: Cause, gang: Gang, rules: MendRules, tried: int
) -> None:
    again = mend(why, job(gang), rules, tried)
    if again is None:
        return
    assert tried < rules.tries
    for before, after in zip(gang.parts, again.gang.parts, strict=True):
        old, new = before.shape, after.shape
        assert before.count == after.count
        assert old.memory_bytes <= new.memory_bytes <= max(old.memory_bytes, rules.most_memory_bytes)
        most_on_gpu = max(old.gpu_memory_bytes, rules.most_gpu_memory_bytes)
        assert old.gpu_memory_bytes <= new.gpu_memory_bytes <= most_on_gpu
        assert (old.cpus_milli, old.gpus) == (new.cpus_milli, new.gpus)


# --- Amounts that people would write --------------------------------------------------------------------


@given(st.floats(0, 1e14))
def test_a_humane_size_is_enough_and_is_what_its_text_says(value: float) -> None:
    humane = bytes_up(value)
    assert value <= humane <= max(1.3 * value, value + 64 * MIB)
    assert parse_bytes(show_bytes(humane)) == humane


@given(st.floats(0, 1e8))
def test_a_humane_span_is_enough_and_is_what_its_text_says(value: float) -> None:
    humane = seconds_up(value)
    assert value <= humane <= max(1.3 * value, value + 60)
    assert parse_seconds(flags(seconds=humane).removeprefix("--time ")) == humane


def test_cpus_are_whole_or_a_half() -> None:
    assert [cpus_up(value) for value in (0.0, 0.2, 0.5, 0.51, 1.0, 1.01, 3.0)] == [
        500, 500, 500, 1000, 1000, 2000, 3000,
    ]  # fmt: skip


def test_flags_are_ready_to_paste() -> None:
    said = flags(cpus_milli=4000, memory_bytes=12 * GIB, gpu_memory_bytes=8 * GIB, seconds=9000.0)
    assert said == "--mem 12G --cpus 4 --gpu-memory 8G --time 2h30m"
    assert flags() == ""
