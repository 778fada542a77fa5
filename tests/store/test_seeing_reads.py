"""What pictures are drawn from agrees with what the sums say, whatever of it is rolled up."""

import pytest
from stores import Opener, put
from usage_machine import Machine

from muster.model.events import DeviceHealth, Exited, Held, NodeHealth, Outcome, Released, Vacated
from muster.model.ledger import By
from muster.model.node import Health
from muster.model.units import DAY, HOUR
from muster.model.usage import Usage
from muster.monitor.upkeep import Upkeep
from muster.server.seeing.use_answers import UseLine
from muster.server.seeing.use_history import History, HoursKept, Living
from muster.server.seeing.use_over_time import lines_of
from muster.store.journal import Batch
from muster.store.rows import Estimate
from muster.store.seeing_reads import AMOUNTS, amounts_of
from usage_world import DAY0, placed

T = DAY0
BUSY = {"gpu_busy": (0.5,), "gpu_memory_bytes": (1,)}


def busy_day(machine: Machine) -> None:
    """Five and a half hours of one GPU, in two attempts, and an hour of another."""
    machine.tell(placed("1", T, devices=(0,)), placed("2", T + 60, devices=(1,)))
    machine.run(HOUR, "1", "2", step=30.0, **BUSY)
    machine.tell(Exited(machine.now, "2", 1, Outcome.SUCCEEDED))
    machine.run(2 * HOUR, "1", step=30.0, **BUSY)
    machine.tell(Vacated(machine.now, "1", 1, "preempted"), placed("1", machine.now, 2, devices=(0,)))
    machine.run(2.5 * HOUR, "1", step=30.0, attempt=2, **BUSY)
    machine.write()


def drawn(machine: Machine, since: float, kept: HoursKept, step: float | None) -> tuple[int, UseLine]:
    ledger = machine.ledger
    living = Living(machine.now, since, machine.now, ledger.living, ledger.under_way(machine.now))
    history = History(machine.journal, living, 2 * DAY, kept, of_gpus=True)
    grid = history.grid(step)
    total, _, _ = lines_of(grid, history.spans, history.pieces(grid), lambda one: one.team, of_gpus=True)
    return grid.step, total


@pytest.mark.parametrize("step", [None, HOUR])
def test_the_picture_is_the_same_before_and_after_hours_are_made(
    url: str, opened: Opener, step: float | None
) -> None:
    journal = opened(url)
    machine, kept = Machine(journal), HoursKept()
    busy_day(machine)
    before = drawn(machine, T, kept, step)
    Upkeep(journal).roll_up(machine.now)
    assert drawn(machine, T, kept, step) == before
    assert drawn(machine, T, kept, step) == before  # from what is kept by now
    assert before[0] == (step or 120)
    usage = machine.cluster(T, machine.now)
    per_step = [before[0]] * (len(before[1].held) - 1) + [(machine.now - T) % before[0] or before[0]]
    held = sum(gpus * seconds for gpus, seconds in zip(before[1].held, per_step, strict=True))
    assert held == pytest.approx(usage.held.gpus_milli / 1000, rel=1e-3)
    assert {round(u / h, 2) for u, h in zip(before[1].used, before[1].held, strict=True) if u} == {0.5}


def test_attempts_add_up_to_what_jobs_used(url: str, opened: Opener) -> None:
    machine = Machine(opened(url))
    busy_day(machine)
    since, until = T + HOUR / 2, T + 4 * HOUR
    ledger = machine.ledger
    found = list(
        machine.journal.used_by_attempt(
            since, until, now=machine.now, living=ledger.living, under_way=ledger.under_way(machine.now)
        )
    )
    assert len(found) == 3
    sums = [sum(use.amounts[i] for use in found) for i in range(len(AMOUNTS))]
    usage = sum(machine.usage(By.JOB, since, until).values(), Usage())
    assert sums == list(amounts_of(usage))


def test_stays_have_their_devices_and_the_latest_come_first(url: str, opened: Opener) -> None:
    machine = Machine(opened(url))
    busy_day(machine)
    found = list(machine.journal.stays_between(T, machine.now, 10))
    assert [(one.job, one.attempt, one.outcome) for one in found] == [("1", 1, None), ("2", 1, "SUCCEEDED")]
    assert [[str(device) for device in one.devices] for one in found] == [["a/0"], ["a/1"]]
    assert [one.devices for one in machine.journal.stays_between(T, machine.now, 1, with_devices=False)] == [
        ()
    ]
    assert machine.journal.nodes_of({"1"}) == {("1", 1): ("a",), ("1", 2): ("a",)}


def test_a_long_story_is_told_by_its_first_and_its_last_facts(url: str, opened: Opener) -> None:
    journal = opened(url)
    facts = [Held(float(n), "7") if n % 2 else Released(float(n), "7") for n in range(40)]
    put(journal, Batch(events=[*facts, Held(99.0, "8")]))
    found, count = journal.told_of("7", {"Held", "Released"}, 5)
    assert (found, count) == ([facts[0], *facts[-5:]], 40)
    assert journal.told_of("7", {"Held"}, 100) == ([one for one in facts if isinstance(one, Held)], 20)


def test_outages_are_found_among_all_the_rest_in_their_order(url: str, opened: Opener) -> None:
    journal = opened(url)
    out = [
        NodeHealth(1.0, "a", Health.DRAINED, "disk"),
        DeviceHealth(3.0, "a", 1, False),
        NodeHealth(4.0, "a", Health.UP),
    ]
    put(journal, Batch(events=[out[0], Held(2.0, "7"), *out[1:]]))
    assert journal.outages(10) == out
    assert journal.outages(1) == out[-1:]


def test_of_estimates_the_last_is_told(url: str, opened: Opener) -> None:
    journal = opened(url)
    said = [Estimate("7", at, at, at + 9, 0.8) for at in (1.0, 2.0)]
    put(journal, Batch(estimates=said))
    assert journal.last_estimates(["7", "8"]) == {"7": said[1]}
