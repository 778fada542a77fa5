from statistics import pstdev

import numpy as np
import pytest

from muster.model.errors import BadInput
from muster.model.job import Priority
from muster.traces.generate import Generation, generate, parse_generation


def offered_load(trace) -> float:
    asked = sum(e.run_seconds * e.job.gang.asked().gpus_milli / 1000 for e in trace.jobs)
    gpus = sum(len(node.devices) for node in trace.nodes)
    return asked / (gpus * trace.jobs[-1].job.submitted_at)


def test_the_same_seed_makes_the_same_trace():
    assert generate("jobs=200,seed=7") == generate(Generation(jobs=200, seed=7))


def test_another_seed_makes_another_trace():
    assert generate("jobs=200,seed=7").jobs != generate("jobs=200,seed=8").jobs


@pytest.mark.parametrize("load", [0.5, 0.9, 1.4])
def test_the_load_is_near_what_was_asked(load):
    assert offered_load(generate(f"jobs=2000,load={load},gpus=64")) == pytest.approx(load, rel=0.02)


def test_jobs_come_in_order_within_their_limits():
    jobs = generate("jobs=500").jobs
    submitted = [entry.job.submitted_at for entry in jobs]
    assert submitted == sorted(submitted)
    assert all(e.run_seconds <= e.job.time_limit_seconds <= 11 * e.run_seconds for e in jobs)


def test_more_is_submitted_by_day_than_by_night():
    jobs = generate("jobs=5000").jobs
    by_day = sum(6 <= entry.job.submitted_at % 86_400 / 3600 < 18 for entry in jobs)
    assert by_day > 0.6 * len(jobs)


def test_run_times_have_a_heavy_tail():
    runs = np.array([entry.run_seconds for entry in generate("jobs=2000").jobs])
    assert runs.mean() > 1.8 * np.median(runs)


def test_sizes_go_from_shares_to_many_nodes_and_fit_the_cluster():
    gangs = {str(entry.job.gang).split(",")[0] for entry in generate("jobs=2000").jobs}
    assert {"0.25 of a GPU", "1 GPU", "8 GPUs", "2 × 8 GPUs", "4 × 8 GPUs"} <= gangs
    small = generate("jobs=300,gpus=3")
    assert {entry.job.gang.asked().gpus_milli for entry in small.jobs} == {250, 500, 1000, 2000}
    assert [len(node.devices) for node in small.nodes] == [3]


def test_a_few_owners_submit_most_and_all_are_in_teams():
    jobs = [entry.job for entry in generate("jobs=2000,teams=3,users=10").jobs]
    owners = [job.owner for job in jobs]
    assert owners.count("user1") > 5 * owners.count("user10") > 0
    assert {job.team for job in jobs} == {"team1", "team2", "team3"}
    assert len({(job.owner, job.team) for job in jobs}) == 10


def test_work_of_one_name_and_owner_runs_about_as_long_each_time():
    jobs = generate("jobs=2000").jobs
    logs: dict[tuple[str, str], list[float]] = {}
    for entry in jobs:
        logs.setdefault((entry.job.owner, entry.job.name), []).append(np.log(entry.run_seconds))
    within = np.mean([pstdev(runs) for runs in logs.values() if len(runs) > 9])
    assert within < 0.5 * pstdev([run for runs in logs.values() for run in runs])


def test_half_save_their_work_some_yield_and_most_say_why():
    jobs = [entry.job for entry in generate("jobs=2000").jobs]
    assert sum(job.checkpoint is not None for job in jobs) == pytest.approx(1000, abs=100)
    assert sum(job.priority is Priority.LOW for job in jobs) == pytest.approx(300, abs=75)
    assert sum(job.charter.purpose is not None for job in jobs) == pytest.approx(1600, abs=100)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("job=5", "unknown key to generate by 'job'; known: jobs, seed, teams, users, load, gpus"),
        ("jobs", "'jobs' is not key=value; write it like jobs=1000,seed=1"),
        ("jobs=0", "expected jobs, teams and gpus of 1 or more"),
        ("load=1e-9", "load from 0.001 to 100"),
        ("jobs=1e9", "expected jobs from 0 to 1e\\+06"),
        ("jobs=1.5", "expected jobs as a whole number"),
        ("load=-1", "load '-1' must be a finite number"),
        ("seed=nan", "seed 'nan'"),
        ("teams=9,users=3", "expected a user or more per team"),
    ],
)
def test_a_wrong_spec_is_refused_in_a_sentence(spec, says):
    with pytest.raises(BadInput, match=says):
        generate(spec)


def test_what_is_not_said_keeps_its_default():
    assert parse_generation(" jobs = 5, ") == Generation(jobs=5)
