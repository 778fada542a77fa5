"""What holds of findings whatever a job does and whatever its meters say."""

from typing import Any

from attempts import KINDS, START, Attempt, attempt, minute
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.model.units import HOUR, MIB, MINUTE
from muster.model.usage import Rollup, Stat
from muster.steward.find import find
from muster.steward.findings import Finding
from muster.steward.respond import Handled, StopIt, SuspendIt, Warn, respond
from muster.steward.rules import Response, Rules

RULES = Rules(idle_seconds=10 * MINUTE, idle_cpu_seconds=10 * MINUTE, settle_seconds=0.0, blips=0.2)
FIGURES = ("cpus", "read_bytes", "written_bytes", "memory_bytes", "gpu_busy", "measured_seconds")

QUIET: dict[str, Any] = {"gpu": (0.0, 0.0), "cpu": 0.01, "io": 0, "grows": 0, "measured": 1.0}
uses = st.fixed_dictionaries(
    {
        "gpu": st.tuples(*[st.sampled_from([0.0, 0.001, 0.02, 0.9])] * 2),
        "cpu": st.sampled_from([0.0, 0.001, 0.01, 0.5, 4.0]),
        "io": st.sampled_from([0, 1000, 50 * MIB]),
        "grows": st.sampled_from([0, 1000, 200 * MIB]),
        "measured": st.sampled_from([1.0, 0.9, 0.3]),
    }
)
# Stretches of anything and of nothing, so that there is something to find.
stretches = st.one_of(
    st.lists(uses.map(dict), min_size=1, max_size=4), st.integers(1, 14).map(lambda n: [QUIET] * n)
)
lives = st.lists(stretches, min_size=2, max_size=8).map(lambda parts: [use for part in parts for use in part])


def _lived(life: list[dict[str, Any]]) -> Attempt:
    one = attempt(gpus=2)
    minutes = tuple(minute(START + MINUTE * n, **use) for n, use in enumerate(life))
    one.now += MINUTE * len(life)
    return one.but(minutes=minutes)


def _found(one: Attempt) -> set[tuple[int, ...]]:
    """What is called idle: each device, and all of it."""
    found = find(one.watched, RULES, one.now)
    devices = {(device,) for finding in found for device in finding.devices}
    return devices | {(-1,) for finding in found if finding.whole}


def _without(row: Rollup, figure: str) -> Rollup:
    if figure == "measured_seconds":
        return replace(row, measured_seconds=0.0)
    return replace(row, **{figure: (None,) * 2 if figure == "gpu_busy" else None})


@given(lives, st.data())
def test_no_figure_that_goes_missing_makes_anybody_idle(life: list[dict[str, Any]], data: Any) -> None:
    one = _lived(life)
    before = _found(one)
    gone = data.draw(
        st.lists(st.tuples(st.integers(0, len(life) - 1), st.sampled_from(FIGURES)), max_size=20)
    )
    minutes = list(one.watched.minutes)
    for place, figure in gone:
        minutes[place] = _without(minutes[place], figure)
    assert _found(one.but(minutes=tuple(minutes))) <= before


@given(lives, st.data())
def test_no_minute_that_goes_missing_makes_anybody_idle(life: list[dict[str, Any]], data: Any) -> None:
    one = _lived(life)
    before = _found(one)
    lost = data.draw(st.sets(st.integers(0, len(life) - 1), max_size=10))
    minutes = tuple(row for n, row in enumerate(one.watched.minutes) if n not in lost)
    assert _found(one.but(minutes=minutes)) <= before


@given(lives, st.floats(1.0, 100.0))
def test_who_uses_more_is_not_more_idle(life: list[dict[str, Any]], times: float) -> None:
    one = _lived(life)
    before = _found(one)
    assert _found(one.but(minutes=tuple(_scaled(row, times) for row in one.watched.minutes))) <= before


def _scaled(row: Rollup, times: float) -> Rollup:
    def more(stat: Stat | None) -> Stat | None:
        return (
            None if stat is None else Stat(*(min(1.0, times * v) for v in (stat.least, stat.mean, stat.most)))
        )

    return replace(
        row, gpu_busy=tuple(map(more, row.gpu_busy)), read_bytes=int(times * (row.read_bytes or 0))
    )


@given(lives)
def test_who_works_in_every_minute_is_never_idle(life: list[dict[str, Any]]) -> None:
    one = _lived([{**use, "gpu": (use["gpu"][0], 0.5)} for use in life])
    assert _found(one) <= {(4,)}


@given(lives)
def test_who_is_suspended_is_never_found(life: list[dict[str, Any]]) -> None:
    assert _found(_lived(life).but(is_suspended=True)) == set()


@given(lives, st.floats(RULES.silent_seconds + 1, 1e6))
def test_a_silent_meter_finds_nobody(life: list[dict[str, Any]], silent: float) -> None:
    one = _lived(life)
    one.now += silent
    assert _found(one) == set()


@given(lives)
def test_an_idle_stretch_fills_the_window_and_ends_now(life: list[dict[str, Any]]) -> None:
    one = _lived(life)
    for finding in find(one.watched, RULES, one.now):
        assert finding.seconds >= RULES.idle_seconds
        assert finding.since + finding.seconds == one.now
        assert finding.sentence()


@given(st.lists(st.integers(1, 400), min_size=1, max_size=40), st.integers(0, 2000), st.sampled_from(KINDS))
def test_silence_shorter_than_before_is_never_stuck(gaps: list[int], silence: int, kind: Any) -> None:
    one = attempt(gpus=1, progress=(kind,))
    for gap in gaps:
        one.does(1, gpu=1.0, signs={kind: 1})
        one.now += (gap - 1) * MINUTE
    one.now += silence * MINUTE
    last = next(sign for sign in one.watched.signs if sign.kind == kind)
    stuck = [f for f in find(one.watched, Rules(), one.now) if f.kind == "stuck"]
    if stuck:
        assert one.now - (last.last_at or 0.0) > max(2 * HOUR, 3 * last.longest_seconds)


# --- Responses ----------------------------------------------------------------------------------------

KINDS_FOUND = ("idle", "stuck", "gpu-memory")
CASES = [
    Finding(
        kind=kind,  # type: ignore[arg-type]
        job="7",
        attempt=1,
        since=0.0,
        seconds=1.0,
        evidence=(),
        devices=(0,),
        whole=whole,
        sure=sure,
    )
    for kind in KINDS_FOUND
    for whole in (True, False)
    for sure in (True, False)
    if (whole or kind == "idle") and (sure or kind == "stuck")
]
responses = st.builds(
    Response,
    st.sampled_from(["note", "warn", "suspend", "stop"]),
    st.integers(1, 2),
    st.sampled_from([0.0, MINUTE, HOUR]),
    st.sampled_from([0.0, MINUTE, HOUR]),
)


@given(
    st.builds(Rules, on_idle=responses, on_stuck=responses, on_gpu_memory=responses),
    st.lists(st.tuples(st.sets(st.sampled_from(CASES)), st.integers(1, 60)), max_size=30),
)
def test_two_warnings_at_most_and_no_end_without(rules: Rules, looks: list[tuple[set[Finding], int]]) -> None:
    handled: tuple[Handled, ...] = ()
    now, warned = 0.0, dict.fromkeys((case.subject for case in CASES), 0)
    for found, minutes in looks:
        now += minutes * MINUTE  # thirty hours at most, so a day's oblivion comes once at most
        answer = respond(sorted(found, key=CASES.index), handled, rules, now)
        handled = answer.handled
        for step in answer.steps:
            assert step.finding in found
            if isinstance(step, Warn):
                warned[step.finding.subject] += 1
            if isinstance(step, StopIt | SuspendIt):
                assert warned[step.finding.subject] >= 1
                assert step.finding.whole
                assert step.finding.sure
        ends = [step for step in answer.steps if isinstance(step, StopIt | SuspendIt)]
        assert len(ends) <= 1
    assert max(warned.values()) <= (2 if now < rules.forget_seconds else 4)
