"""What follows from findings: notes, two warnings at most, and an end only after both."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from muster.model.units import DAY, HOUR, MINUTE
from muster.steward.findings import CpuUnused, Finding, GpuMemoryOver, NoProgress
from muster.steward.respond import Answer, Handled, Note, Step, StopIt, SuspendIt, Warn, respond
from muster.steward.rules import Response, Rules

IDLE = Finding(
    kind="idle",
    job="7",
    attempt=1,
    since=0.0,
    seconds=HOUR,
    evidence=(CpuUnused(60, 0, 0.01, 8000, 0.1),),
    devices=(0, 1),
)
UNUSED = replace(IDLE, devices=(1,), whole=False)
STUCK = replace(IDLE, kind="stuck", evidence=(NoProgress(("log",), 3 * HOUR, 2 * HOUR, 60.0, True),))
GREEDY = replace(
    IDLE, kind="gpu-memory", devices=(0,), evidence=(GpuMemoryOver(0, 6 << 30, 4 << 30, 5 << 30),)
)
STOP = Rules(on_idle=Response("stop"), on_stuck=Response("stop"))


class Office:
    """Answers in a row, each given what the one before has said."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.handled: tuple[Handled, ...] = ()
        self.now = 0.0
        self.given: list[Step] = []

    def sees(self, *findings: Finding, minutes: int = 1) -> list[Step]:
        """The same for so many minutes, looked at in each."""
        steps: list[Step] = []
        for _ in range(minutes):
            answer: Answer = respond(findings, self.handled, self.rules, self.now)
            self.handled = answer.handled
            self.now += MINUTE
            steps += answer.steps
        self.given += steps
        return steps


def _kinds(steps: Iterable[Step]) -> list[type[Step]]:
    return [type(step) for step in steps]


def test_on_one_machine_the_owner_is_warned_twice_and_nothing_else_happens() -> None:
    office = Office(Rules())
    assert _kinds(office.sees(IDLE)) == [Warn]
    assert office.sees(IDLE, minutes=59) == []
    assert _kinds(office.sees(IDLE)) == [Warn]
    assert office.sees(IDLE, minutes=3000) == []
    first, second = office.given
    assert isinstance(first, Warn)
    assert isinstance(second, Warn)
    assert (first.number, second.number, second.of) == (1, 2, 2)
    assert first.sentence().startswith("warning 1 of 2: idle for 1h")
    assert "Unless" not in first.sentence()


def test_a_stop_comes_after_two_warnings_and_a_grace() -> None:
    office = Office(STOP)
    steps = office.sees(IDLE, minutes=300)
    assert _kinds(steps) == [Warn, Warn, StopIt]
    assert steps[0].sentence().endswith("Unless that changes, it is stopped in 2h")
    assert steps[1].sentence().endswith("Unless that changes, it is stopped in 1h")
    assert steps[2].sentence() == (
        f"stopped: {IDLE.sentence()}; its owner was warned twice, the last time 1h ago"
    )


def test_it_is_stopped_as_long_after_the_first_warning_as_was_said() -> None:
    office = Office(STOP)
    assert _kinds(office.sees(IDLE, minutes=120)) == [Warn, Warn]
    assert _kinds(office.sees(IDLE)) == [StopIt]


def test_a_policy_may_suspend_instead() -> None:
    office = Office(Rules(on_idle=Response("suspend", warnings=1, grace_seconds=10 * MINUTE)))
    steps = office.sees(IDLE, minutes=60)
    assert _kinds(steps) == [Warn, SuspendIt]
    assert "suspended in 10m" in steps[0].sentence()
    assert steps[1].sentence().startswith("suspended: idle")


def test_a_policy_may_only_note_and_does_so_once() -> None:
    office = Office(Rules(on_idle=Response("note")))
    steps = office.sees(IDLE, minutes=300)
    assert _kinds(steps) == [Note]
    assert steps[0].sentence() == IDLE.sentence()


def test_one_unused_gpu_is_noted_even_where_the_idle_are_stopped() -> None:
    assert _kinds(Office(STOP).sees(UNUSED, minutes=3000)) == [Note]


def test_who_left_a_habit_is_warned_and_never_stopped() -> None:
    assert _kinds(Office(STOP).sees(replace(STUCK, sure=False), minutes=3000)) == [Warn, Warn]
    assert _kinds(Office(STOP).sees(STUCK, minutes=3000)) == [Warn, Warn, StopIt]


# --- Gone, and back -----------------------------------------------------------------------------------


def test_what_is_gone_is_not_acted_on() -> None:
    office = Office(STOP)
    office.sees(IDLE, minutes=119)
    assert office.sees(minutes=500) == []


def test_what_comes_back_brings_no_more_warnings_and_the_full_time() -> None:
    office = Office(STOP)
    office.sees(IDLE, minutes=119)
    office.sees(minutes=2)
    assert office.sees(IDLE, minutes=120) == []
    assert _kinds(office.sees(IDLE)) == [StopIt]


def test_what_comes_and_goes_is_warned_of_twice_a_day_at_most() -> None:
    office = Office(Rules())
    for _ in range(16):
        office.sees(IDLE, minutes=50)
        office.sees(minutes=40)
    assert _kinds(office.given) == [Warn, Warn]


def test_the_second_warning_keeps_its_distance_from_the_first() -> None:
    office = Office(Rules())
    office.sees(IDLE)
    office.sees()
    assert office.sees(IDLE, minutes=58) == []
    assert _kinds(office.sees(IDLE)) == [Warn]


def test_what_has_been_gone_for_a_day_is_new() -> None:
    office = Office(Rules())
    office.sees(IDLE, minutes=100)
    office.sees(minutes=int(DAY / MINUTE) + 1)
    assert office.handled == ()
    assert _kinds(office.sees(IDLE, minutes=100)) == [Warn, Warn]


def test_who_was_suspended_and_resumed_is_suspended_again_without_another_warning() -> None:
    office = Office(Rules(on_idle=Response("suspend")))
    assert _kinds(office.sees(IDLE, minutes=200)) == [Warn, Warn, SuspendIt]
    office.sees(minutes=60)
    assert _kinds(office.sees(IDLE, minutes=200)) == [SuspendIt]


def test_another_attempt_is_another_matter() -> None:
    office = Office(Rules())
    office.sees(IDLE, minutes=100)
    assert _kinds(office.sees(replace(IDLE, attempt=2))) == [Warn]


def test_a_stop_is_said_once_even_if_it_takes_its_time() -> None:
    office = Office(STOP)
    office.sees(IDLE, minutes=121)
    assert office.sees(IDLE, minutes=300) == []


# --- Several at once ----------------------------------------------------------------------------------


def test_what_died_is_warned_of_once_though_it_is_idle_and_stuck() -> None:
    steps = Office(Rules()).sees(IDLE, STUCK, minutes=300)
    assert [type(s) for s in steps if s.finding.kind == "stuck"] == [Note]
    assert [type(s) for s in steps if s.finding.kind == "idle"] == [Warn, Warn]


def test_the_graver_policy_is_followed() -> None:
    rules = Rules(on_idle=Response("warn"), on_stuck=Response("stop"))
    steps = Office(rules).sees(IDLE, STUCK, minutes=300)
    assert [(s.finding.kind, type(s)) for s in steps] == [
        ("idle", Note),
        ("stuck", Warn),
        ("stuck", Warn),
        ("stuck", StopIt),
    ]


def test_jobs_are_answered_each_for_itself() -> None:
    office = Office(Rules())
    office.sees(IDLE)
    steps = office.sees(IDLE, replace(IDLE, job="8"))
    assert [(step.finding.job, type(step)) for step in steps] == [("8", Warn)]


@pytest.mark.parametrize("order", [1, -1])
def test_who_is_stopped_is_stopped_once_and_nothing_else_is_said_of_it(order: int) -> None:
    other = replace(GREEDY, devices=(1,))
    rules = replace(STOP, on_idle=Response("suspend", warnings=1, grace_seconds=MINUTE))
    office = Office(rules)
    office.sees(*(IDLE, GREEDY, other)[::order])
    steps = office.sees(*(IDLE, GREEDY, other)[::order])
    assert _kinds(steps) == [StopIt]
    assert steps[0].finding.kind == "gpu-memory"


# --- GPU memory ---------------------------------------------------------------------------------------


def test_too_much_gpu_memory_is_warned_of_at_once_and_stopped_a_minute_later() -> None:
    office = Office(Rules())
    (warning,) = office.sees(GREEDY)
    assert warning.sentence() == (
        "warning 1 of 1: more GPU memory than granted: GPU 0: takes 6G of its memory, was granted 4G "
        "(up to 5G is let pass). Unless that changes, it is stopped in 1m"
    )
    (stop,) = office.sees(GREEDY)
    assert isinstance(stop, StopIt)
    assert stop.sentence().startswith("stopped: more GPU memory than granted")
    assert stop.sentence().endswith("its owner was warned once, the last time 1m ago")


def test_who_gives_it_back_goes_on() -> None:
    office = Office(Rules())
    office.sees(GREEDY)
    assert office.sees(minutes=100) == []


def test_who_takes_it_again_is_stopped_after_the_grace_without_another_warning() -> None:
    office = Office(Rules())
    office.sees(GREEDY)
    office.sees(minutes=10)
    assert office.sees(GREEDY) == []
    assert _kinds(office.sees(GREEDY)) == [StopIt]
