"""Idle: held and not used, by several meters that agree."""

import pytest
from attempts import SOME_IO, START, Attempt, attempt
from msgspec.structs import replace

from muster.model.errors import BadInput
from muster.model.units import GIB, HOUR, MIB, MINUTE
from muster.model.usage import Stat
from muster.steward.findings import CpuUnused, GpuUnused, IoUnused, Steady
from muster.steward.rules import Response, Rules


def _worked(gpus: int = 1) -> Attempt:
    return attempt(gpus=gpus).does(30, gpu=0.9, cpu=1.5)


def test_a_gpu_that_is_held_and_not_used_for_an_hour_is_idle() -> None:
    (finding,) = _worked().does(60, cpu=0.01).found()
    assert (finding.kind, finding.job, finding.attempt) == ("idle", "7", 1)
    assert (finding.whole, finding.sure, finding.devices) == (True, True, (4,))
    assert (finding.since, finding.seconds) == (START + 30 * MINUTE, HOUR)


def test_a_minute_less_is_not() -> None:
    assert _worked().does(59, cpu=0.01).found() == ()


def test_a_job_without_gpus_is_given_two_hours() -> None:
    worked = attempt().does(30, cpu=4.0)
    assert worked.does(119, cpu=0.01).found() == ()
    assert worked.does(1, cpu=0.01).kinds() == ["idle"]


def test_who_holds_neither_cpus_nor_gpus_is_never_idle() -> None:
    assert attempt(cpus=0).does(300).found() == ()


@pytest.mark.parametrize(
    "use",
    [{"gpu": 0.02}, {"cpu": 0.11}, {"io": SOME_IO}, {"grows": 100 * MIB}],
    ids=["gpu", "cpu", "disk", "memory"],
)
def test_a_single_meter_that_shows_use_is_enough_to_be_at_work(use: dict[str, float]) -> None:
    assert "idle" not in [f.kind for f in _worked().does(200, **use).found() if f.whole]


@pytest.mark.parametrize("blind", [{"gpu": None}, {"cpu": None}, {"io": None}, {"grows": None}])
def test_a_meter_that_says_nothing_counts_as_use(blind: dict[str, None]) -> None:
    assert not any(f.whole for f in _worked().does(200, **blind).found())


@pytest.mark.parametrize("lie", [-1.0, float("nan"), float("inf"), 2.0**64])
def test_a_figure_that_cannot_be_counts_as_use(lie: float) -> None:
    assert not any(f.whole for f in _worked().does(200, cpu=lie).found())
    assert _worked().does(200, gpu=lie).found() == ()


def test_who_fills_gpu_memory_is_at_work_if_the_rules_ask_for_it() -> None:
    asked = ("io", "gpu-memory")
    idle = _worked().does(70)
    assert idle.kinds(also=asked) == ["idle"]
    filling = (Stat(0.0, GIB / 2, GIB),)
    idle.but(minutes=tuple(replace(m, gpu_memory_bytes=filling) for m in idle.watched.minutes))
    assert [f.whole for f in idle.found()] == [True]
    assert [f.whole for f in idle.found(also=asked)] == [False]


def test_one_thread_on_sixty_four_cpus_is_at_work() -> None:
    assert attempt(cpus=64).does(300, cpu=1.0).found() == ()


def test_a_fifth_of_half_a_cpu_is_use() -> None:
    assert attempt(cpus=0.5).does(300, cpu=0.1).found() == ()
    assert attempt(cpus=8).does(300, cpu=0.09).kinds() == ["idle"]


# --- Pauses and blips ----------------------------------------------------------------------------------


def test_a_pause_between_epochs_does_not_condemn() -> None:
    training = attempt(gpus=1)
    for _ in range(5):
        training.does(20, gpu=0.9, cpu=1.0).does(50, cpu=0.0)
        assert training.found() == ()


def test_one_early_blip_does_not_exempt() -> None:
    assert attempt(gpus=1).does(20).does(2, gpu=1.0, cpu=1.0).does(61).kinds() == ["idle"]


def test_a_blip_does_not_start_the_clock_anew() -> None:
    (finding,) = _worked().does(65).does(1, gpu=1.0, cpu=1.0).does(20).found()
    assert finding.since == START + 30 * MINUTE


def test_a_timer_that_touches_the_gpu_every_hour_does_not_exempt() -> None:
    notebook = _worked()
    for _ in range(6):
        notebook.does(59).does(1, gpu=1.0, cpu=1.0)
    assert notebook.does(5).kinds() == ["idle"]


def test_a_blip_soon_after_work_is_taken_for_work_and_forgotten_after_a_window() -> None:
    blip = _worked().does(40).does(1, gpu=1.0, cpu=1.0)
    assert blip.does(59).found() == ()
    assert blip.does(1).kinds() == ["idle"]


def test_nothing_is_idle_in_the_minute_of_a_blip() -> None:
    idle = _worked().does(70)
    assert idle.kinds() == ["idle"]
    assert idle.does(1, gpu=1.0, cpu=1.0).found() == ()
    assert idle.does(1).kinds() == ["idle"]


def test_three_used_minutes_in_an_hour_are_more_than_a_blip() -> None:
    notebook = _worked()
    for _ in range(8):
        notebook.does(19).does(1, gpu=0.5, cpu=0.5)
    assert notebook.does(5).found() == ()


def test_loading_for_ten_minutes_is_not_idle_however_short_the_window() -> None:
    loading = attempt(gpus=1).does(12, cpu=0.02)
    assert loading.found(idle_seconds=5 * MINUTE) == ()
    assert loading.does(3).kinds(idle_seconds=5 * MINUTE) == ["idle"]


# --- What can't be known -------------------------------------------------------------------------------


def test_a_meter_that_fell_silent_says_nothing() -> None:
    assert _worked().does(90).does(2, lost=True).kinds() == ["idle"]
    assert _worked().does(90).does(3, lost=True).found() == ()


def test_no_minutes_no_finding() -> None:
    assert attempt(gpus=1).does(300, lost=True).found() == ()


def test_a_gap_counts_as_use_and_two_lost_minutes_as_a_blip() -> None:
    assert _worked().does(70).does(2, lost=True).does(10).kinds() == ["idle"]
    assert _worked().does(70).does(3, lost=True).does(10).found() == ()


def test_what_was_mostly_not_measured_is_not_judged() -> None:
    assert _worked().does(200, measured=0.9).kinds() == ["idle"]
    assert _worked().does(200, measured=0.7).found() == ()
    assert _worked().does(200, measured=0.7).kinds(covered=0.6) == ["idle"]
    assert _worked().does(200, measured=0.4).found(covered=0.1) == ()


def test_what_came_before_the_minutes_at_hand_is_not_known() -> None:
    idle = _worked().does(200)
    (finding,) = idle.but(minutes=idle.watched.minutes[-80:]).found()
    assert finding.seconds == 80 * MINUTE
    assert idle.but(minutes=idle.watched.minutes[-50:]).found() == ()


def test_meters_that_stand_still_while_a_log_grows_are_broken() -> None:
    assert _worked().does(200, cpu=0.0, signs={"log": 7}).found() == ()
    assert _worked().does(200, cpu=0.001, signs={"log": 7}).kinds() == ["idle"]


# --- Progress, and standing still ----------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["report", "checkpoint"])
def test_who_reports_or_saves_is_not_idle(sign: str) -> None:
    assert not any(f.whole for f in _worked().does(200, cpu=0.01, signs={sign: 50}).found())


def test_a_log_with_gpus_is_no_excuse_unless_the_charter_says_so() -> None:
    heartbeat = {"cpu": 0.01, "signs": {"log": 1}}
    assert attempt(gpus=1).does(200, **heartbeat).kinds() == ["idle"]
    assert not any(f.whole for f in attempt(gpus=1, progress=("log",)).does(200, **heartbeat).found())


def test_a_log_without_gpus_is_work_since_waiting_for_answers_looks_the_same() -> None:
    assert attempt(cpus=1).does(500, cpu=0.02, signs={"log": 60}).found() == ()
    assert attempt(cpus=1).does(500, cpu=0.02).kinds() == ["idle"]


def test_who_is_suspended_is_not_idle() -> None:
    assert _worked().does(300).but(is_suspended=True).found() == ()


def test_after_a_suspension_the_clock_starts_anew() -> None:
    resumed = _worked().does(300)
    resumed.but(resumed_at=resumed.now)
    assert resumed.does(69).found() == ()
    assert resumed.does(1).kinds() == ["idle"]


# --- One GPU of several --------------------------------------------------------------------------------


def test_one_gpu_of_four_is_a_finding_about_that_gpu() -> None:
    (finding,) = attempt(gpus=4).does(75, gpu=(0.9, 0.9, 0.0, 0.9), cpu=4.0).found()
    assert (finding.kind, finding.whole, finding.devices) == ("idle", False, (6,))
    assert finding.sentence() == (
        "a GPU unused for 1h 5m: GPU 6 (one of 4): at most 0 % busy (nvml-utilization, threshold 0.2 %) "
        "for 65 min while holding it"
    )


def test_gpus_of_a_job_that_works_on_cpus_are_noted_each() -> None:
    found = attempt(gpus=2).does(75, cpu=7.0).found()
    assert [(f.whole, f.devices) for f in found] == [(False, (4,)), (False, (5,))]


def test_a_gpu_whose_meter_is_missing_is_not_unused() -> None:
    assert attempt(gpus=2).does(200, gpu=(0.9, None), cpu=1.0).found() == ()
    assert attempt(gpus=2).does(200, gpu=(0.9,), cpu=1.0).found() == ()


# --- Evidence ------------------------------------------------------------------------------------------


def test_a_finding_says_metric_window_and_threshold() -> None:
    (finding,) = attempt(gpus=1).does(30, gpu=0.9, cpu=1.5).does(62, cpu=0.012, io=12_000).found()
    assert finding.sentence() == (
        "idle for 1h 2m, holding 1 GPU, 8 cpus, 64G memory: "
        "GPU 4: at most 0 % busy (nvml-utilization, threshold 0.2 %) for 62 min while holding it; "
        "cpu at most 0.012 of 8 (threshold 0.1) for 62 min; "
        "disks at most 11.72K a minute (threshold 10M) for 62 min; "
        "memory changes by at most 0B a minute (threshold 64M) for 62 min"
    )


def test_evidence_owns_up_to_blips() -> None:
    (finding,) = _worked().does(65).does(1, gpu=1.0, cpu=1.0).does(20, cpu=0.03).found()
    gpu, cpu, io, memory = finding.evidence
    assert isinstance(gpu, GpuUnused)
    assert (gpu.minutes, gpu.with_use, gpu.most) == (86, 1, 0.0)
    assert "in 85 of 86 min" in gpu.sentence()
    assert isinstance(cpu, CpuUnused)
    assert cpu.most == 0.03
    assert isinstance(io, IoUnused)
    assert isinstance(memory, Steady)


def test_a_meter_that_does_not_name_its_metric_is_quoted_so() -> None:
    (finding,) = _worked().does(70).but(gpu_metric=None).found()
    assert "metric not known" in finding.sentence()


# --- The rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"idle_seconds": 30.0},
        {"gpu_busy": 0.0},
        {"blips": 1.0},
        {"covered": 0.0},
        {"on_unused_gpu": Response("stop")},
    ],
)
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        Rules(**wrong)  # type: ignore[arg-type]


def test_more_than_two_warnings_are_refused() -> None:
    for count in (0, 3):
        with pytest.raises(BadInput, match="warnings"):
            Response("stop", warnings=count)
    with pytest.raises(BadInput, match="less than nothing"):
        Response(grace_seconds=-1.0)
