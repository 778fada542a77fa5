"""Figures of now, from a real fold and from readings: what is not known is not told, and zero is known."""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.model.events import (
    ArraySubmitted,
    Event,
    Exited,
    Held,
    NodeSeen,
    Outcome,
    Placed,
    Seat,
    Started,
    Submitted,
    Suspended,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import After, Dependency, Job, Shape, single
from muster.model.ledger import By, Entry
from muster.model.node import Device, Health, Node
from muster.model.policy import Policy
from muster.model.resources import Resources
from muster.model.snapshot import Running
from muster.model.tenancy import Team
from muster.model.units import GIB
from muster.model.usage import ForeignProcess, GpuReading, NodeReading, Sample, Usage
from muster.server import figures
from muster.server import metrics as m
from muster.server.figures import TeamNames
from muster.server.prometheus import Figure, Labels, Metric
from muster.server.scrape import Rising, of_ledger
from muster.steward.findings import Finding
from muster.store.fold import Fold
from usage_world import DAY0, World

Told = dict[Metric, dict[Labels, float | None]]

NODE = Node("lab7", cpus_milli=8000, memory_bytes=64 * GIB, devices=(Device("A40", 48 * GIB),) * 2)
GPU = ("lab7", "0", "GPU-a", "NVIDIA A40")


def told(some: Iterable[Figure]) -> Told:
    found: Told = {}
    for metric, labels, value in some:
        assert len(labels) == len(metric.labels), metric.name
        if value is not None:
            found.setdefault(metric, {})[labels] = value
    return found


def folded(*events: Event, teams: Iterable[str] = ("vision", "nlp")) -> Fold:
    fold = Fold(Policy())
    for event in (NodeSeen(0.0, NODE), *(TeamSet(0.0, Team(name)) for name in teams), *events):
        fold.apply(event)
    return fold


def names_in(fold: Fold) -> TeamNames:
    names = TeamNames(lambda: fold.teams)
    for team in fold.teams:
        names(team)
    return names


def job(job_id: str, at: float = 0.0, *, team: str = "vision", **more: Any) -> Job:
    return Job(job_id, single(cpus_milli=1000), at, name="train", owner="ana", team=team, **more)


def placed(
    at: float, job_id: str, attempt: int = 1, devices: tuple[int, ...] = (), milli: int = 1000
) -> Placed:
    shape = Shape(cpus_milli=2000, memory_bytes=4 * GIB, gpus=len(devices))
    return Placed(at, job_id, attempt, (Seat("lab7", shape, devices, milli if devices else 0),))


def of_jobs(fold: Fold, now: float = 100.0) -> Told:
    return told(figures.of_jobs(fold, fold.ended, names_in(fold), now))


# --- Jobs -----------------------------------------------------------------------------------------------


def test_jobs_are_counted_by_team_and_state_and_every_team_has_every_state() -> None:
    fold = folded(
        Submitted(1.0, job("1")),
        placed(2.0, "1"),
        Started(2.0, "1", 1),
        Suspended(3.0, "1", 1),
        ArraySubmitted(3.0, job("2", team=""), (1, 2, 3)),
        Submitted(4.0, job("3", after=(Dependency("1", After.OK),))),
        Submitted(4.0, job("4", held=True)),
        Held(4.0, "2_3"),
    )
    jobs = of_jobs(fold)[m.JOBS]
    assert {labels for labels in jobs if jobs[labels]} == {
        ("vision", "SUSPENDED"),
        ("vision", "QUEUED"),
        ("vision", "HELD"),
        ("/", "QUEUED"),
        ("/", "HELD"),
    }
    assert (jobs["/", "QUEUED"], jobs["vision", "QUEUED"], jobs["nlp", "RUNNING"]) == (2, 1, 0)
    assert len(jobs) == 3 * 6


def test_who_waits_for_another_is_queued_and_not_in_the_queue_for_room() -> None:
    fold = folded(Submitted(1.0, job("1")), Submitted(4.0, job("2", after=(Dependency("1", After.OK),))))
    found = of_jobs(fold)
    assert found[m.JOBS]["vision", "QUEUED"] == 2
    assert found[m.QUEUE]["vision",] == 1


def test_the_oldest_wait_is_that_of_who_has_waited_longest_since_it_last_ran() -> None:
    fold = folded(
        Submitted(1.0, job("1", 1.0)),
        Submitted(20.0, job("2", 20.0)),
        Submitted(40.0, job("3", 40.0)),
        placed(41.0, "1"),
        Started(41.0, "1", 1),
        Vacated(90.0, "1", 1, "reclaim"),
    )
    found = of_jobs(fold)[m.OLDEST]
    assert found == {("vision",): 80.0, ("nlp",): 0.0}, "the first in the lane has waited since 90 only"


def test_ends_are_counted_by_outcome_from_the_first_day_on() -> None:
    fold = folded(
        *(Submitted(1.0, job(str(n))) for n in range(4)),
        Withdrawn(2.0, "0"),
        placed(2.0, "1"),
        Exited(3.0, "1", 1, Outcome.OUT_OF_MEMORY),
        Submitted(3.0, job("9", team="")),
        Withdrawn(3.0, "9"),
    )
    ended = of_jobs(fold)[m.ENDED]
    assert {labels: n for labels, n in ended.items() if n} == {
        ("vision", "STOPPED"): 1,
        ("vision", "OUT_OF_MEMORY"): 1,
        ("/", "STOPPED"): 1,
    }
    assert ended["nlp", "FAILED"] == 0


def test_teams_that_nobody_declared_are_summed_up_when_they_are_too_many() -> None:
    fold = folded(*(Submitted(1.0, job(str(n), team=f"t{n}")) for n in range(150)), teams=["vision"])
    jobs = of_jobs(fold)[m.QUEUE]
    assert len(jobs) == 102
    assert jobs["/others",] == 50
    assert sum(count or 0 for count in jobs.values()) == 150


def test_findings_are_counted_by_kind_while_the_job_runs() -> None:
    fold = folded(Submitted(1.0, job("1")), placed(2.0, "1"))
    idle = Finding(kind="idle", job="1", attempt=1, since=0.0, seconds=9.0, evidence=())
    found = told(figures.of_findings({"1": (idle,), "gone": (replace(idle, job="gone"),)}, fold.running))
    assert found == {m.FINDINGS: {("idle",): 1, ("stuck",): 0, ("gpu-memory",): 0}}


# --- Held and used --------------------------------------------------------------------------------------


def seats(samples: Mapping[str, Sample], *events: Event) -> Told:
    fold = folded(Submitted(1.0, job("1")), Submitted(1.0, job("2")), *events)

    def sample_of(running: Running) -> Sample | None:
        return samples.get(running.job.id)

    return told(figures.of_seats(fold.running.values(), sample_of, names_in(fold)))


def sample(**figures: Any) -> Sample:
    return Sample(job="", attempt=1, at=0.0, seconds=5.0, **figures)


def test_what_is_held_and_not_measured_is_used_nobody_knows_how_much() -> None:
    found = seats({}, placed(2.0, "1", devices=(0,)))
    assert found[m.HELD_CPUS] == {("vision",): 2.0, ("nlp",): 0.0}
    assert found[m.HELD_MEMORY]["vision",] == 4 * GIB
    assert found[m.MEASURED_CPUS]["vision",] == found[m.MEASURED_GPUS]["vision",] == 0
    for metric in (m.USED_CPUS, m.USED_MEMORY, m.USED_GPUS):
        assert found[metric] == {("nlp",): 0}, "who holds nothing uses nothing"


def test_use_is_summed_over_what_is_measured_and_says_how_much_that_is() -> None:
    read = {"1": sample(cpus=0.5, memory_bytes=GIB, gpu_busy=(0.5, None)), "2": sample(memory_bytes=GIB)}
    found = seats(read, placed(2.0, "1", devices=(0, 1)), placed(2.0, "2"))
    assert (found[m.HELD_CPUS]["vision",], found[m.MEASURED_CPUS]["vision",]) == (4.0, 2.0)
    assert (found[m.HELD_GPUS]["vision",], found[m.MEASURED_GPUS]["vision",]) == (2.0, 1.0)
    assert found[m.MEASURED_MEMORY]["vision",] == 8 * GIB
    assert (found[m.USED_CPUS]["vision",], found[m.USED_GPUS]["vision",]) == (0.5, 0.5)
    assert found[m.USED_MEMORY]["vision",] == 2 * GIB


def test_a_share_of_a_gpu_counts_as_its_share() -> None:
    found = seats({"1": sample(gpu_busy=(0.5,))}, placed(2.0, "1", devices=(0,), milli=250))
    assert (found[m.HELD_GPUS]["vision",], found[m.USED_GPUS]["vision",]) == (0.25, 0.125)


def test_a_sample_of_other_devices_than_are_held_says_nothing_of_gpus() -> None:
    found = seats({"1": sample(cpus=1.0, gpu_busy=(0.5,))}, placed(2.0, "1", devices=(0, 1)))
    assert ("vision",) not in found[m.USED_GPUS]
    assert found[m.USED_CPUS]["vision",] == 1.0


# --- Nodes and GPUs -------------------------------------------------------------------------------------


def test_a_node_is_in_one_health_and_tells_what_jobs_can_hold() -> None:
    found = told(figures.of_node(replace(NODE, health=Health.DRAINED)))
    assert found[m.NODE_HEALTH] == {("lab7", h): int(h == "drained") for h in Health}
    assert found[m.NODE_CAPACITY_CPUS] == {("lab7",): 8.0}
    assert found[m.NODE_CAPACITY_GPUS] == {("lab7",): 2}


def test_of_a_node_only_what_the_meters_show_is_told() -> None:
    assert told(figures.of_reading("lab7", NodeReading(at=0.0))) == {}
    found = told(figures.of_reading("lab7", NodeReading(at=0.0, io_stalled_seconds=1.5, disk_used_bytes=0)))
    assert found == {m.NODE_STALLED: {("lab7", "io"): 1.5}, m.NODE_DISK_USED: {("lab7",): 0}}


def of_gpus(*readings: GpuReading, held: int = 0, fresh: bool = True) -> Told:
    return told(figures.of_gpus(NODE, readings, {("lab7", 0): held}, fresh=fresh))


def test_a_gpu_is_told_with_the_name_of_the_metric_that_its_figure_is() -> None:
    stranger = ForeignProcess(7, None, None)
    shown = GpuReading(
        index=0,
        uuid="GPU-a",
        name="NVIDIA A40",
        metric="nvml-utilization",
        busy=0.37,
        memory_used_bytes=GIB,
        memory_total_bytes=48 * GIB,
        power_watts=61.5,
        temperature_celsius=44.0,
        uncorrected_errors=2,
        foreign=(stranger,),
    )
    found = of_gpus(shown, held=250)
    assert found[m.GPU_BUSY] == {(*GPU, "nvml-utilization"): 0.37}
    assert found[m.GPU_HELD] == {GPU: 0.25, ("lab7", "1", "", "A40"): 0.0}
    assert [found[x][GPU] for x in (m.GPU_MEMORY_USED, m.GPU_MEMORY_SIZE)] == [GIB, 48 * GIB]
    assert [found[x][GPU] for x in (m.GPU_POWER, m.GPU_TEMPERATURE, m.GPU_ERRORS)] == [61.5, 44.0, 2]
    assert [found[x][GPU] for x in (m.GPU_LOST, m.GPU_FOREIGN, m.GPU_HEALTHY)] == [0, 1, 1]


def test_of_a_gpu_that_is_lost_nothing_else_is_told() -> None:
    found = of_gpus(GpuReading(index=0, uuid="GPU-a", name="NVIDIA A40", lost=True))
    assert found.pop(m.GPU_LOST) == {GPU: 1}
    assert set(found) == {m.GPU_HELD, m.GPU_HEALTHY}


def test_an_old_reading_still_says_who_a_gpu_is_and_no_more() -> None:
    found = of_gpus(GpuReading(index=0, uuid="GPU-a", name="NVIDIA A40", busy=0.5, foreign=()), fresh=False)
    assert set(found) == {m.GPU_HELD, m.GPU_HEALTHY}
    assert GPU in found[m.GPU_HELD]


def test_whose_processes_are_on_a_gpu_may_not_be_known() -> None:
    assert m.GPU_FOREIGN not in of_gpus(GpuReading(index=0))
    assert list(of_gpus(GpuReading(index=0, foreign=()))[m.GPU_FOREIGN].values()) == [0]


# --- Counters -------------------------------------------------------------------------------------------


def entry(**more: Any) -> Entry:
    values = {"job": "1", "attempt": 1, "owner": "ana", "team": "vision", "holds": Resources(2000, GIB)}
    return Entry(**{"placed_at": 0.0, **values, **more})


def ledger(totals: dict[str, Usage], *living: Entry, until: float = 60.0) -> Told:
    return told(of_ledger(totals, living, TeamNames(dict), until))


def test_what_lives_has_held_until_a_moment_and_used_what_is_written_down() -> None:
    written = Usage(Resources(1000), Resources(500), Resources(250), 30.0, 15.0)
    found = ledger({"vision": written}, entry())
    assert found[m.HELD_CPU_SECONDS] == {("vision",): 1.0 + 120.0}
    assert found[m.HELD_BYTE_SECONDS] == {("vision",): 60 * GIB}
    assert found[m.HELD_SECONDS] == {("vision",): 90.0}
    assert found[m.MEASURED_CPU_SECONDS] == {("vision",): 0.5}
    assert found[m.USED_CPU_SECONDS] == {("vision",): 0.25}
    assert found[m.MEASURED_SECONDS] == {("vision",): 15.0}


@pytest.mark.parametrize("ended_at", [4.0, 50.0, 100.0])
def test_what_was_counted_of_one_that_lives_is_in_what_is_counted_once_it_has_ended(ended_at: float) -> None:
    """Whenever it is asked, before the end is told and after."""
    before = ledger({}, entry(), until=ended_at - 5.0)
    after = ledger({}, entry(ended_at=ended_at), until=ended_at + 1.0)
    (least,) = before[m.HELD_CPU_SECONDS].values()
    assert least is not None
    assert after.get(m.HELD_CPU_SECONDS, {}).get(("vision",), 0.0) >= max(0.0, least)  # type: ignore[operator]


@given(seed=st.integers(0, 2**32))
def test_the_counters_are_the_ledgers_sums(seed: int) -> None:
    book = World(seed).played(Random(seed))
    until = DAY0 + 1e6
    totals = {str(team): usage for team, usage in book.usage(By.TEAM, 0.0, until).items()}
    found = ledger(totals, until=until)
    for team, usage in totals.items():
        assert found[m.HELD_GPU_SECONDS][team,] == usage.held.gpus_milli / 1000
        assert found[m.USED_CPU_SECONDS][team,] == usage.used.cpus_milli / 1000


def test_a_counter_stands_still_where_it_would_fall() -> None:
    rising = Rising()
    values = [rising([(m.HELD_SECONDS, ("vision",), value)]) for value in (5.0, 3.0, 7.0)]
    assert [next(iter(some))[2] for some in values] == [5.0, 5.0, 7.0]
    assert next(iter(rising([(m.HELD_SECONDS, ("nlp",), 1.0)])))[2] == 1.0
