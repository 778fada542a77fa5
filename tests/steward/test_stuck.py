"""Stuck: no progress, whatever the meters say; and a GPU's memory that others were promised."""

from attempts import START, attempt

from muster.model.job import Checkpoint
from muster.model.units import GIB, HOUR, MINUTE
from muster.steward.findings import NoProgress
from muster.steward.watch import Sign

BUSY = {"gpu": 1.0, "cpu": 4.0}


def test_who_reported_and_has_not_for_two_hours_is_stuck_if_the_charter_names_reports() -> None:
    training = attempt(gpus=1, progress=("report",)).does(60, **BUSY, signs={"report": 5})
    assert training.does(120, **BUSY).kinds() == ["stuck"]
    (finding,) = training.found()
    assert (finding.since, finding.sure, finding.whole) == (START + HOUR, True, True)
    assert finding.sentence() == (
        "no progress for 2h 5s, holding 1 GPU, 8 cpus, 64G memory: "
        "no report for 2h 5s (its charter names it; before at most 5m apart; window 2h)"
    )


def test_a_report_ends_it() -> None:
    training = attempt(gpus=1, progress=("report",)).does(60, **BUSY, signs={"report": 5}).does(180, **BUSY)
    assert training.kinds() == ["stuck"]
    assert training.does(5, **BUSY, signs={"report": 5}).found() == ()


def test_a_log_is_no_progress_if_the_charter_names_reports() -> None:
    loop = attempt(gpus=1, progress=("report",)).does(60, **BUSY, signs={"report": 5, "log": 1})
    assert loop.does(130, **BUSY, signs={"log": 1}).kinds() == ["stuck"]


def test_any_of_several_that_the_charter_names_is_progress() -> None:
    training = attempt(gpus=1, progress=("report", "checkpoint")).does(60, **BUSY, signs={"report": 5})
    assert training.does(180, **BUSY, signs={"checkpoint": 30}).found() == ()


def test_silence_is_judged_by_how_long_it_was_before() -> None:
    slow = attempt(gpus=1, progress=("report",)).does(270, **BUSY, signs={"report": 90})
    assert slow.does(265, **BUSY).found() == ()
    assert slow.does(10, **BUSY).kinds() == ["stuck"]


def test_checkpoints_are_waited_for_as_long_as_the_job_said() -> None:
    checkpoint = Checkpoint(every_seconds=3 * HOUR)
    training = attempt(gpus=1, progress=("checkpoint",), checkpoint=checkpoint)
    assert training.does(9 * 60 - 5, **BUSY).found() == ()
    assert training.does(10, **BUSY).kinds() == ["stuck"]


def test_who_never_showed_what_its_charter_names_is_given_longer() -> None:
    burner = attempt(gpus=1, progress=("report",))
    assert burner.does(239, **BUSY).found() == ()
    (finding,) = burner.does(2, **BUSY).found()
    assert finding.kind == "stuck"
    assert "before" not in finding.sentence()


def test_a_sign_that_nobody_looks_for_is_not_missed() -> None:
    blind = attempt(gpus=1, progress=("checkpoint",), looked_for=("report", "log"))
    assert blind.does(900, **BUSY).found() == ()


def test_silence_before_anybody_listened_does_not_count() -> None:
    training = attempt(gpus=1, progress=("report",)).does(300, **BUSY)
    assert training.but(signs=(Sign("report", training.now - HOUR),)).found() == ()


# --- Habits --------------------------------------------------------------------------------------------


def test_who_leaves_a_habit_is_stuck_and_we_are_not_sure() -> None:
    deadlock = attempt(gpus=2).does(120, gpu=0.9, cpu=3.0, signs={"log": 1})
    assert deadlock.does(239, gpu=1.0, cpu=2.0).found() == ()
    (finding,) = deadlock.does(1, gpu=1.0, cpu=2.0).found()
    assert (finding.kind, finding.sure) == ("stuck", False)
    assert "its habit so far" in finding.sentence()


def test_who_never_showed_a_sign_is_not_condemned() -> None:
    assert attempt(gpus=1).does(3000, **BUSY).found() == ()


def test_a_head_that_is_printed_is_no_habit() -> None:
    assert attempt(gpus=1).does(40, **BUSY, signs={"log": 1}).does(3000, **BUSY).found() == ()
    assert attempt(gpus=1).does(180, **BUSY, signs={"log": 60}).does(3000, **BUSY).found() == ()


def test_a_log_in_bursts_is_taken_as_it_is() -> None:
    training = attempt(gpus=1)
    for _ in range(4):
        training.does(170, **BUSY).does(10, **BUSY, signs={"log": 1})
    assert training.does(8 * 60, **BUSY).found() == ()
    assert training.does(60, **BUSY).kinds() == ["stuck"]


def test_loud_preparation_and_silent_work_is_no_habit_left() -> None:
    prepared = attempt(gpus=1).does(120, cpu=6.0, signs={"log": 1})
    assert prepared.does(600, **BUSY).found() == ()
    solver = attempt(cpus=16).does(120, cpu=1.0, signs={"log": 1})
    assert solver.does(600, cpu=15.0).found() == ()


def test_without_meters_a_habit_alone_finds_nothing() -> None:
    assert attempt(gpus=1).does(120, gpu=None, signs={"log": 1}).does(600, gpu=None).found() == ()
    named = attempt(gpus=1, progress=("log",)).does(120, gpu=None, signs={"log": 1})
    assert named.does(600, gpu=None).kinds() == ["stuck"]


def test_a_log_that_fell_quiet_does_not_judge_checkpoints_that_go_on() -> None:
    training = attempt(gpus=1).does(120, **BUSY, signs={"log": 1})
    assert training.does(270, **BUSY, signs={"checkpoint": 250}).found() == ()
    assert training.does(239, **BUSY).found() == ()


# --- Standing still ------------------------------------------------------------------------------------


def test_who_is_suspended_is_not_stuck_and_is_given_time_afterwards() -> None:
    training = attempt(gpus=1, progress=("report",)).does(60, **BUSY, signs={"report": 5}).does(300, **BUSY)
    training.but(is_suspended=True)
    assert training.found() == ()
    training.but(is_suspended=False, resumed_at=training.now)
    assert training.does(119, **BUSY).found() == ()
    assert training.does(2, **BUSY).kinds() == ["stuck"]


def test_what_died_is_idle_and_stuck() -> None:
    dead = attempt(gpus=1, progress=("report",)).does(120, **BUSY, signs={"report": 5}).does(150)
    assert dead.kinds() == ["idle", "stuck"]


# --- Signs ---------------------------------------------------------------------------------------------


def test_a_sign_remembers_its_longest_silence() -> None:
    sign = Sign("log", 0.0).again(10.0).again(20.0).again(80.0).again(90.0)
    assert (sign.count, sign.first_at, sign.last_at, sign.longest_seconds) == (4, 10.0, 90.0, 60.0)


def test_a_clock_that_was_set_back_shows_no_sign() -> None:
    sign = Sign("log", 0.0).again(100.0)
    assert sign.again(50.0) == sign


def test_evidence_without_two_signs_tells_no_interval() -> None:
    evidence = NoProgress(("log",), 3 * HOUR, 2 * HOUR, 0.0, True)
    assert evidence.sentence() == "no log for 3h (its charter names it; window 2h)"


# --- GPU memory ----------------------------------------------------------------------------------------


def test_who_takes_more_gpu_memory_than_granted_is_found_at_once() -> None:
    greedy = attempt(gpus=1, granted=4 * GIB).does(5, gpu=0.9, cpu=1.0).takes(78 * GIB)
    (finding,) = greedy.found()
    assert (finding.kind, finding.devices, finding.since) == ("gpu-memory", (4,), greedy.now)
    assert finding.sentence() == (
        "more GPU memory than granted: "
        "GPU 4: takes 78G of its memory, was granted 4G (up to 4.25G is let pass)"
    )


def test_since_when_it_took_too_much_is_told_by_its_minutes() -> None:
    greedy = attempt(gpus=1, granted=4 * GIB).does(5, gpu=0.9, gpu_memory=4 * GIB)
    greedy.does(3, gpu=0.9, gpu_memory=6 * GIB).takes(6 * GIB)
    (finding,) = greedy.found()
    assert finding.since == START + 5 * MINUTE


def test_a_little_more_is_let_pass() -> None:
    share = attempt(gpus=1, granted=16 * GIB).does(5, gpu=0.9)
    assert share.takes(int(16.7 * GIB)).found() == ()
    assert share.takes(int(16.9 * GIB)).kinds() == ["gpu-memory"]


def test_a_whole_gpu_cannot_be_exceeded() -> None:
    assert attempt(gpus=1).does(5, gpu=0.9).takes(80 * GIB).found() == ()
    assert attempt(gpus=1).but(gpu_granted_bytes=()).does(5, gpu=0.9).takes(80 * GIB).found() == ()


def test_memory_that_is_not_known_is_not_too_much() -> None:
    share = attempt(gpus=1, granted=GIB).does(5, gpu=0.9)
    assert share.takes(None).found() == ()
    assert share.takes().found() == ()
    assert share.takes(9 * GIB).kinds() == ["gpu-memory"]
    assert share.does(4, gpu=0.9).found() == ()  # that sample is old by now
