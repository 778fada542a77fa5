"""A device or a node that fails again and again is drained, and it is said why."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model.units import DAY, HOUR
from muster.steward.faults import Fault, FaultKind, QuarantineRules, quarantine

RULES = QuarantineRules()
NOW = 100 * DAY


def ecc(job: str | None, ago: float = HOUR, device: int | None = 1, node: str = "a") -> Fault:
    return Fault(node, device, FaultKind.UNCORRECTED, NOW - ago, job)


def test_three_faults_under_different_jobs_within_a_day_drain_a_device() -> None:
    (bad,) = quarantine([ecc("1"), ecc("2"), ecc("3")], RULES, NOW)
    assert (bad.node, bad.device, bad.faults) == ("a", 1, 3)
    assert bad.because == (
        "GPU 1 of a had 3 faults within 1d (uncorrected memory errors), under 3 different jobs: "
        "it is drained until someone has looked at it (muster node resume a)"
    )


def test_two_do_not() -> None:
    assert quarantine([ecc("1"), ecc("2")], RULES, NOW) == ()


def test_one_job_that_fails_again_and_again_may_be_the_jobs_fault() -> None:
    assert quarantine([ecc("1")] * 9, RULES, NOW) == ()


def test_faults_while_nobody_is_there_are_nobodys_fault() -> None:
    assert len(quarantine([ecc(None)] * 3, RULES, NOW)) == 1


def test_faults_of_last_week_are_forgotten() -> None:
    assert quarantine([ecc("1"), ecc("2"), ecc("3", 2 * DAY)], RULES, NOW) == ()


def test_faults_of_two_devices_do_not_add_up() -> None:
    assert quarantine([ecc("1"), ecc("2"), ecc("3", device=2)], RULES, NOW) == ()


def test_a_device_that_no_longer_answers_is_drained_at_once() -> None:
    (bad,) = quarantine([Fault("a", 3, FaultKind.DEVICE_LOST, NOW)], RULES, NOW)
    assert (bad.node, bad.device) == ("a", 3)
    assert "no longer answers" in bad.because


def test_a_node_that_fails_again_and_again_is_drained() -> None:
    faults = [Fault("a", None, FaultKind.NODE, NOW - 1, str(n)) for n in range(3)]
    (bad,) = quarantine(faults, RULES, NOW)
    assert (bad.node, bad.device) == ("a", None)
    assert bad.because.startswith("node a had 3 faults")


def test_two_bad_devices_make_a_bad_node() -> None:
    found = quarantine([Fault("a", n, FaultKind.DEVICE_LOST, NOW) for n in (0, 1)], RULES, NOW)
    assert [bad.device for bad in found] == [None, 0, 1]
    assert found[0].because.startswith("node a has 2 bad GPUs")


def test_driver_errors_that_programs_cause_do_not_count() -> None:
    own = [Fault("a", 0, FaultKind.XID, NOW, str(n), code=31) for n in range(9)]
    hardware = [Fault("a", 0, FaultKind.XID, NOW, str(n), code=48) for n in range(3)]
    assert quarantine(own, RULES, NOW) == ()
    assert len(quarantine(hardware, RULES, NOW)) == 1


def test_what_somebody_brought_back_is_judged_by_what_came_after() -> None:
    faults = [ecc("1"), ecc("2"), ecc("3")]
    assert quarantine(faults, RULES, NOW, {"a": NOW - 60}) == ()
    assert len(quarantine(faults, RULES, NOW, {"a": NOW - DAY, "b": NOW})) == 1


_faults = st.builds(
    Fault,
    st.sampled_from("ab"),
    st.none() | st.integers(0, 2),
    st.sampled_from(FaultKind),
    st.floats(NOW - 2 * DAY, NOW + DAY),
    st.none() | st.sampled_from("123"),
    st.none() | st.sampled_from([31, 48, 79]),
)


@given(st.lists(_faults, max_size=12), st.lists(_faults, max_size=3))
def test_more_faults_never_clear_anything(before: list[Fault], more: list[Fault]) -> None:
    bad = {(q.node, q.device) for q in quarantine(before, RULES, NOW)}
    worse = {(q.node, q.device) for q in quarantine(before + more, RULES, NOW)}
    assert bad <= worse


@given(st.lists(_faults, max_size=12))
def test_nothing_is_drained_twice(faults: list[Fault]) -> None:
    found = quarantine(faults, RULES, NOW)
    assert len({(bad.node, bad.device) for bad in found}) == len(found)
