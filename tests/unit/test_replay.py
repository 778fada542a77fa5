"""Small traces end to end: what goes in comes out, whatever the policy."""

import msgspec
import pytest

from muster.engines.sim import Outage
from muster.model.errors import BadInput
from muster.model.job import Checkpoint, Job, Priority, Together, single
from muster.model.node import Device, Node
from muster.model.policy import PRESETS, preset
from muster.model.tenancy import Quota, Team
from muster.simulate.records import JobRecord, Replay
from muster.simulate.run import replay
from muster.traces.generate import generate
from muster.traces.trace import Trace, TraceJob

NODES = tuple(Node(name, 64_000, 1 << 40, devices=(Device(),) * 8) for name in ("n1", "n2"))
ONE = NODES[:1]
NEVER = 1e6


def trace(*jobs: TraceJob) -> Trace:
    return Trace("small", jobs)


def job(name: str, gpus: int, at: float, run_seconds: float, **more: object) -> TraceJob:
    gang = single(gpus=gpus, cpus_milli=1000)
    return TraceJob(Job(name, gang, at, **more), run_seconds)  # type: ignore[arg-type]


KEPT = Checkpoint(save_seconds=5, restore_seconds=3)


def crowd(count: int = 60, checkpoint: Checkpoint | None = KEPT) -> Trace:
    """More than two nodes can hold at once, of all sizes and lengths."""
    return trace(
        *(
            job(
                f"j{i}",
                1 + i * 5 % 8,
                at=i * 20.0,
                run_seconds=30.0 + i * 37 % 400,
                owner=f"u{i % 4}",
                time_limit_seconds=900.0,
                checkpoint=checkpoint if i % 3 else None,
            )
            for i in range(count)
        )
    )


def by_id(done: Replay) -> dict[str, JobRecord]:
    return {record.id: record for record in done.records}


def plain(done: Replay) -> bytes:
    """All of it but the time that it took on this machine."""
    return msgspec.json.encode(msgspec.structs.replace(done, wall_seconds=0.0))


# --- Conservation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", sorted(PRESETS))
def test_every_job_that_can_run_ends_and_takes_its_time(policy: str) -> None:
    done = replay(crowd(), NODES, preset(policy))
    for record in done.records:
        assert record.started_at is not None
        assert record.ended_at is not None
        assert record.started_at >= record.submitted_at
        took = record.ended_at - record.started_at
        assert took >= record.run_seconds + record.lost_seconds - 1e-6
        if not record.preemptions:
            assert took == pytest.approx(record.run_seconds)
            assert record.lost_seconds == 0
    assert not done.interrupted


@pytest.mark.parametrize("policy", sorted(PRESETS))
def test_no_more_is_held_than_there_is_and_in_the_end_nothing(policy: str) -> None:
    done = replay(crowd(), NODES, preset(policy))
    assert done.gpus_total_milli == 16_000
    assert all(0 <= s.gpus_held_milli <= 16_000 for s in done.samples)
    assert all(0 <= s.cpus_held_milli <= 128_000 for s in done.samples)
    last = done.samples[-1]
    assert (last.gpus_held_milli, last.cpus_held_milli) == (0, 0)
    assert (last.running, last.waiting) == (0, 0)


@pytest.mark.parametrize("policy", ["fair", "las"])
def test_what_is_held_is_held_for_the_work_and_for_what_was_lost_of_it(policy: str) -> None:
    outages = (Outage("n1", 300.0, 60.0), Outage("n2", 700.0, 10.0))
    done = replay(crowd(checkpoint=None), NODES, preset(policy), outages=outages)
    spans = zip(done.samples, done.samples[1:], strict=False)
    held = sum(before.gpus_held_milli * (after.at - before.at) for before, after in spans)
    needed = sum(r.gpus_milli * (r.run_seconds + r.lost_seconds) for r in done.records)
    assert sum(r.lost_seconds for r in done.records) > 0
    assert held == pytest.approx(needed)


def test_the_same_trace_gives_the_same_replay() -> None:
    made = generate("jobs=30,seed=4,gpus=16")
    first, second = (replay(made, NODES, preset("gittins")) for _ in range(2))
    assert plain(first) == plain(second)


# --- Who can't run, and who has to wait -----------------------------------------------------------


def test_a_job_that_can_never_run_is_reported_and_in_nobodys_way() -> None:
    done = by_id(replay(trace(job("vast", 9, 0, 5), job("ok", 8, 1, 5)), ONE, preset("fifo")))
    assert done["vast"].infeasible is not None
    assert (done["vast"].started_at, done["vast"].ended_at) == (None, None)
    assert done["ok"].infeasible is None
    assert done["ok"].ended_at == 6


def test_a_gang_that_no_node_can_hold_together_can_never_run() -> None:
    gang = single(gpus=1, parts=9, together=Together.NODE)
    done = replay(trace(TraceJob(Job("wide", gang, 0.0), 5.0)), NODES, preset("fair"))
    assert done.records[0].infeasible is not None


def test_two_jobs_that_do_not_fit_together_run_one_after_the_other() -> None:
    done = by_id(replay(trace(job("a", 5, 0, 10), job("b", 5, 1, 10)), ONE, preset("fair")))
    assert (done["a"].started_at, done["a"].ended_at) == (0, 10)
    assert (done["b"].started_at, done["b"].ended_at) == (10, 20)
    assert done["b"].wait_seconds == 9


def test_a_job_of_no_length_starts_and_ends_at_once() -> None:
    (record,) = replay(trace(job("a", 1, 7, 0)), ONE, preset("fair")).records
    assert (record.started_at, record.ended_at) == (7, 7)


def test_without_nodes_nothing_is_replayed() -> None:
    with pytest.raises(BadInput, match="--nodes"):
        replay(trace(job("a", 1, 0, 1)), (), preset("fair"))


# --- Evictions ------------------------------------------------------------------------------------


def test_an_eviction_and_what_it_cost_are_in_the_record() -> None:
    low = job("low", 8, 0, 2000, priority=Priority.LOW)
    high = job("high", 8, 1000, 50)
    done = by_id(replay(trace(low, high), ONE, preset("fair")))
    assert (done["low"].preemptions, done["low"].moves) == (1, 0)
    assert done["low"].lost_seconds == 1000
    assert done["low"].ended_at == 1000 + 50 + 2000
    assert (done["high"].started_at, done["high"].preemptions) == (1000, 0)


def test_an_evicted_job_that_keeps_checkpoints_loses_only_the_time_to_save() -> None:
    kept = Checkpoint(save_seconds=20, restore_seconds=10)
    low = job("low", 8, 0, 2000, priority=Priority.LOW, checkpoint=kept)
    high = job("high", 8, 1000, 50)
    done = by_id(replay(trace(low, high), ONE, preset("fair")))
    assert done["high"].started_at == 1000 + 20
    assert done["low"].ended_at == 1000 + 20 + 50 + 10 + 1000


def test_a_team_takes_back_what_it_owns() -> None:
    teams = tuple(Team(name, quota=Quota(gpus_milli=4000)) for name in ("lender", "borrower"))
    jobs = trace(job("borrowed", 8, 0, NEVER, team="borrower"), job("owned", 4, 1000, 50, team="lender"))
    done = by_id(replay(jobs, ONE, preset("fair"), teams=teams))
    assert done["owned"].started_at == 1000
    assert done["borrowed"].preemptions == 1


# --- Outages --------------------------------------------------------------------------------------


def test_an_outage_counts_as_a_failure_of_the_jobs_it_hit_and_not_as_an_eviction() -> None:
    jobs = trace(job("hit", 8, 0, 100), job("spared", 8, 0, 100))
    done = replay(jobs, NODES, preset("fair"), outages=(Outage("n1", 30.0, 1000.0),))
    hit, spared = sorted(done.records, key=lambda r: -r.failures)
    assert (hit.failures, hit.preemptions, hit.lost_seconds) == (1, 0, 30)
    assert hit.ended_at == 100 + 100  # on the other node, once that is free
    assert (spared.failures, spared.lost_seconds, spared.ended_at) == (0, 0, 100)


def test_a_job_waits_for_its_only_node_to_come_back() -> None:
    done = replay(trace(job("a", 8, 0, 100)), ONE, preset("fair"), outages=(Outage("n1", 30, 20),))
    assert done.records[0].ended_at == 150
    assert done.records[0].started_at == 0


# --- Ctrl-C ---------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_replay_with_what_is_known_so_far() -> None:
    reports: list[tuple[int, int, float]] = []

    def impatient(ended: int, jobs: int, now: float) -> None:
        reports.append((ended, jobs, now))
        raise KeyboardInterrupt

    done = replay(crowd(400), NODES, preset("fair"), progress=impatient)
    (told,) = reports
    ended = [r for r in done.records if r.ended_at is not None]
    assert done.interrupted
    assert told == (len(ended), 400, done.samples[-1].at)
    assert 0 < len(ended) < 400
    assert done.cycles > 0
    assert done.wall_seconds > 0


def test_progress_is_told_at_the_end_with_all_jobs() -> None:
    reports: list[tuple[int, int, float]] = []
    done = replay(crowd(), NODES, preset("fair"), progress=lambda *told: reports.append(told))
    assert reports[-1][:2] == (60, 60)
    assert not done.interrupted
