"""Figures of hand-made replays, small enough to work out on paper."""

import numpy as np
import pytest

from muster.simulate.measure import (
    Spread,
    allocation,
    curve,
    measure,
    rows,
    wait_by_size,
)
from muster.simulate.records import JobRecord, Replay, Sample


def record(
    name: str, gpus: float, submitted: float, started: float | None, run: float, **more: object
) -> JobRecord:
    story = {
        "owner": f"owner of {name}",
        "team": f"team of {name}",
        "ended_at": None if started is None else started + run,
        **more,
    }
    return JobRecord(
        id=name,
        name=name,
        gpus_milli=round(gpus * 1000),
        cpus_milli=0,
        submitted_at=submitted,
        run_seconds=run,
        started_at=started,
        **story,  # type: ignore[arg-type]
    )


def sample(at: float, gpus: float, waiting: int = 0, useless: float | None = None) -> Sample:
    fragmented = None if useless is None else round(useless * 1000)
    return Sample(at, round(gpus * 1000), 0, 0, waiting, fragmented)


def replay(records: list[JobRecord], samples: list[Sample], **more: object) -> Replay:
    settings = {"gpus_total_milli": 2000, "cpus_total_milli": 0, "nodes": 1, **more}
    return Replay("trace", "fair", records=records, samples=samples, **settings)  # type: ignore[arg-type]


def numbers(spread: Spread | None) -> tuple[float, float, float]:
    assert spread is not None
    return spread.mean, spread.median, spread.p99


def small_then_big(**more: object) -> Replay:
    """One of two GPUs is held for 100 s while a job for both waits; then that runs for 50 s."""
    return replay(
        [record("small", 1, 0, 0, 100), record("big", 2, 0, 100, 50)],
        [sample(0, 1, waiting=1, useless=1), sample(100, 2), sample(150, 0)],
        **more,
    )


def test_times_and_slowdown_are_those_of_the_jobs_that_finished() -> None:
    report = measure(small_then_big())
    assert (report.finished, report.unfinished, report.infeasible) == (2, 0, 0)
    assert numbers(report.completion_seconds) == pytest.approx((125, 125, 149.5))
    assert numbers(report.wait_seconds) == pytest.approx((50, 50, 99))
    assert numbers(report.slowdown) == pytest.approx((2, 2, 2.98))
    assert report.makespan_seconds == 150


def test_utilisation_weighs_what_is_held_by_time() -> None:
    report = measure(small_then_big())
    assert report.gpu_utilisation == pytest.approx((100 * 1 + 50 * 2) / (2 * 150))
    assert report.gpu_peak == 1.0


def test_utilisation_counts_from_the_first_submission_to_the_last_end() -> None:
    late = replay([record("a", 2, 10, 20, 10)], [sample(20, 2), sample(30, 0), sample(99, 0)])
    assert measure(late).gpu_utilisation == pytest.approx(0.5)


def test_a_state_within_an_instant_is_no_peak() -> None:
    report = measure(replay([record("a", 1, 0, 0, 9)], [sample(0, 2), sample(0, 1), sample(9, 0)]))
    assert report.gpu_peak == 0.5


def test_fragmentation_is_a_mean_over_the_time_that_somebody_waited() -> None:
    assert measure(small_then_big()).fragmentation == pytest.approx(0.5)


def test_fragmentation_is_unknown_where_nobody_ever_waited() -> None:
    calm = replay([record("a", 2, 0, 0, 10)], [sample(0, 2), sample(10, 0)])
    assert measure(calm).fragmentation is None


def test_short_jobs_count_as_ten_seconds_in_slowdown() -> None:
    report = measure(replay([record("a", 1, 0, 29, 1)], [sample(29, 1), sample(30, 0)]))
    assert report.slowdown is not None
    assert report.slowdown.mean == 3.0


def test_a_job_cut_off_at_its_limit_waited_only_until_it_started() -> None:
    report = measure(replay([record("a", 1, 0, 30, 1000, ended_at=50.0)], [sample(0, 0)]))
    assert report.wait_seconds is not None
    assert report.wait_seconds.mean == 30
    assert report.gpu_hours_done == pytest.approx(20 / 3600)


def test_fairness_is_jains_index_over_mean_slowdowns() -> None:
    report = measure(small_then_big())
    assert report.teams is not None
    assert report.teams.jain == pytest.approx((1 + 3) ** 2 / (2 * (1 + 9)))
    assert report.teams.worst_to_mean == pytest.approx(1.5)
    assert report.users == report.teams


def test_fairness_is_unknown_where_there_is_nobody_to_compare_with() -> None:
    alone = replay([record("a", 1, 0, 0, 10, team=""), record("b", 1, 0, 0, 10, team="one")], [sample(0, 2)])
    assert measure(alone).teams is None


def test_lost_work_is_counted_in_gpu_hours() -> None:
    lossy = replay(
        [record("a", 2, 0, 0, 7200, preemptions=3, moves=1, failures=2, lost_seconds=1800.0)],
        [sample(0, 2)],
    )
    report = measure(lossy)
    assert (report.gpu_hours_done, report.gpu_hours_lost) == (4.0, 1.0)
    assert (report.preemptions, report.moves, report.failures) == (3, 1, 2)


def test_what_nobody_finished_is_unknown_and_not_zero() -> None:
    stuck = replay(
        [record("a", 1, 0, None, 10), record("b", 9, 0, None, 10, infeasible="asks 9 GPUs of 2")],
        [sample(0, 0, waiting=1, useless=2), sample(8, 0, waiting=1, useless=2)],
    )
    report = measure(stuck)
    assert (report.finished, report.unfinished, report.infeasible) == (0, 1, 1)
    assert report.completion_seconds is report.wait_seconds is report.slowdown is None
    assert report.makespan_seconds is report.wall_seconds is report.cycles_per_second is None
    assert report.gpu_utilisation == 0.0
    assert report.fragmentation == 1.0


def test_a_replay_of_nothing_has_no_figures_but_counts() -> None:
    empty = replay([], [])
    report = measure(empty)
    assert report.jobs == 0
    assert report.gpu_utilisation is report.gpu_peak is report.fragmentation is None
    assert curve(empty, 10) is None
    assert allocation(empty, 10) is None
    assert wait_by_size(empty) == []


def test_cpus_are_measured_where_there_are_no_gpus() -> None:
    job = record("a", 0, 0, 0, 10)
    job.cpus_milli = 4000
    samples = [Sample(0, 0, 4000, 1, 0, None), Sample(10, 0, 0, 0, 0, None)]
    report = measure(replay([job], samples, gpus_total_milli=0, cpus_total_milli=8000))
    assert report.cpu_utilisation == 0.5
    assert report.gpu_utilisation is report.gpu_hours_done is None


def test_cycles_per_second_are_of_wall_time() -> None:
    report = measure(small_then_big(cycles=30, wall_seconds=1.5))
    assert report.cycles_per_second == 20


def test_sizes_are_classes_that_double_with_fractions_apart() -> None:
    sizes = (0.25, 0.5, 1, 2, 3, 4, 5, 8, 9)
    jobs = [record(f"{gpus}", gpus, 0, gpus, 10) for gpus in sizes]
    classes = wait_by_size(replay(jobs, []))
    labels = [(c.label, c.jobs) for c in classes]
    assert labels == [("under 1", 2), ("1", 1), ("2", 1), ("3–4", 2), ("5–8", 2), ("9–16", 1)]
    assert classes[3].wait_seconds.mean == 3.5


def test_a_curve_holds_the_mean_of_each_span_of_time() -> None:
    found = curve(small_then_big(), 3)
    assert found is not None
    assert found.seconds.tolist() == [25, 75, 125]
    assert found.held.tolist() == [0.5, 0.5, 1.0]
    assert found.waiting.tolist() == [1, 1, 0]


def test_a_curve_over_more_time_than_the_replay_took_ends_where_it_ended() -> None:
    found = curve(small_then_big(), 6, seconds=300)
    assert found is not None
    assert found.held[:3].tolist() == [0.5, 0.5, 1.0]
    assert np.isnan(found.held[3:]).all()


def test_a_curve_of_any_number_of_points_keeps_the_mean() -> None:
    whole = measure(small_then_big()).gpu_utilisation
    for points in (1, 7, 600):
        found = curve(small_then_big(), points)
        assert found is not None
        assert found.held.mean() == pytest.approx(whole)


def test_allocation_is_what_was_held_after_so_much_was_asked_for() -> None:
    jobs = [record("a", 1, 0, 0, 9), record("b", 1, 1, 1, 9), record("c", 1, 2, None, 9)]
    found = allocation(replay(jobs, [sample(0, 1), sample(1, 2)]), 3)
    assert found is not None
    assert found.arrived.tolist() == [0.5, 1.0, 1.5]
    assert found.held.tolist() == [0.5, 1.0, 1.0]


def test_the_best_of_a_row_is_marked_and_nothing_where_all_read_the_same() -> None:
    slow = replay([record("a", 1, 0, 90, 10)], [sample(90, 1), sample(100, 0)])
    quick = replay([record("a", 1, 0, 0, 10)], [sample(0, 1), sample(10, 0)])
    table = {(r.heading, r.label): r for r in rows([measure(slow), measure(quick)])}
    assert table["Wait", "mean"].cells == ("1m 30s", "0s")
    assert table["Wait", "mean"].best == {1}
    assert table["Jobs", "finished"].best == frozenset()


def test_policies_that_finished_different_jobs_are_compared_by_count_alone() -> None:
    long, short = record("long", 1, 0, 0, 100), record("short", 1, 0, 0, 10)
    both = replay([long, short], [sample(0, 2), sample(100, 0)])
    lazy = replay([record("long", 1, 0, None, 100), short], [sample(0, 1), sample(10, 0)])
    table = {(r.heading, r.label): r for r in rows([measure(both), measure(lazy)])}
    assert table["Jobs", "finished"].best == {0}
    assert table["Completion time", "mean"].best == frozenset()


def test_rows_that_nobody_knows_are_left_out() -> None:
    labels = {(row.heading, row.label) for row in rows([measure(small_then_big())])}
    assert ("Cluster", "cpus held") not in labels
    assert ("Cluster", "GPUs held") in labels
