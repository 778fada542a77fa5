"""A job as points to draw, in minutes while they are kept, else in hours; and teams as rows."""

from stores import Opener
from usage_machine import Machine

from muster.model.events import Exited, Outcome, Vacated
from muster.model.ledger import By
from muster.model.resources import Resources
from muster.model.tenancy import Team, Tenancy
from muster.model.units import DAY, HOUR
from muster.model.usage import Rollup, Usage
from muster.monitor.upkeep import Upkeep
from muster.server.use import UseQuery, rows_of
from muster.server.use_series import series
from usage_world import DAY0, placed

T = DAY0


def drawn(machine: Machine, job: str, since: float, until: float) -> tuple[int, list[Rollup]]:
    entries = machine.journal.entries_of({job}) | {entry.key: entry for entry in machine.ledger.living}
    under_way = [m.rollup for m in machine.ledger.under_way(machine.now) if m.rollup.job == job]
    return series(machine.journal, entries, job, since, until, under_way, machine.now)


def test_a_job_of_today_is_drawn_in_minutes_up_to_the_one_that_is_under_way(url: str, opened: Opener) -> None:
    machine = Machine(opened(url))
    machine.tell(placed("1", T + 30))
    machine.now = T + 30
    machine.run(570, "1", step=10.0)
    machine.write()
    machine.run(20, "1", step=10.0)
    step, points = drawn(machine, "1", T + 30, machine.now)
    assert step == 60
    assert [point.start for point in points] == [T + 60 * n for n in range(11)]
    assert sum(point.measured_seconds for point in points) == 590.0
    assert [point.start for point in drawn(machine, "1", T + 150, T + 240)[1]] == [T + 120, T + 180]


def test_what_is_longer_than_a_day_is_drawn_in_hours_with_those_that_are_not_made_yet(
    url: str, opened: Opener
) -> None:
    journal = opened(url)
    machine = Machine(journal)
    machine.tell(placed("1", T))
    machine.run(DAY + 2.5 * HOUR, "1", step=60.0)
    machine.write()
    Upkeep(journal).roll_up(machine.now)
    machine.run(HOUR, "1", step=60.0)
    machine.write()
    step, points = drawn(machine, "1", T, machine.now)
    assert step == 3600
    assert [point.start for point in points] == [T + HOUR * n for n in range(28)]
    assert [point.held_seconds for point in points] == [HOUR] * 27 + [HOUR / 2]
    assert sum(point.measured_seconds for point in points) == machine.now - T


def test_hours_stand_for_minutes_that_are_no_longer_kept_and_attempts_stay_apart(
    url: str, opened: Opener
) -> None:
    journal = opened(url)
    machine = Machine(journal)
    machine.tell(placed("1", T))
    machine.run(1800, "1")
    machine.tell(Vacated(machine.now, "1", 1, "preempted"), placed("1", machine.now, 2))
    machine.run(600, "1", attempt=2)
    machine.tell(Exited(machine.now, "1", 2, Outcome.SUCCEEDED))
    machine.write()
    ended = machine.now
    assert drawn(machine, "1", T, ended)[0] == 60
    upkeep, machine.now = Upkeep(journal), T + 3 * DAY
    upkeep.roll_up(machine.now)
    assert drawn(machine, "1", T, ended)[0] == 60
    upkeep.prune(machine.now)
    step, points = drawn(machine, "1", T, ended)
    assert step == 3600
    assert [(p.attempt, p.start, p.measured_seconds) for p in points] == [(1, T, 1800.0), (2, T, 600.0)]


def test_who_never_ran_is_drawn_with_no_point(url: str, opened: Opener) -> None:
    assert drawn(Machine(opened(url)), "7", T, T + HOUR) == (60, [])


# --- Rows -----------------------------------------------------------------------------------------------


TENANCY = Tenancy([Team("lab"), Team("vision", "lab"), Team("faces", "vision"), Team("ops")])


def held(cpu_seconds: int, gpu_seconds: int = 0) -> Usage:
    return Usage(Resources(1000 * cpu_seconds, 0, 1000 * gpu_seconds), held_seconds=float(cpu_seconds))


def told(asked: UseQuery, **sums: Usage) -> list[tuple[str | None, str | None, float | None]]:
    by_group: dict[str | None, Usage] = {**sums}
    by_group |= {"": by_group.pop("nobody")} if "nobody" in sums else {}
    rows, _ = rows_of(by_group, asked, TENANCY)
    return [(row.group, row.parent, row.cpu_held_seconds) for row in rows]


def test_a_team_has_those_below_it_and_comes_after_the_one_above() -> None:
    assert told(UseQuery(), faces=held(30), vision=held(10), ops=held(20), nobody=held(5)) == [
        ("lab", "", 40.0),
        ("vision", "lab", 40.0),
        ("faces", "vision", 30.0),
        ("ops", "", 20.0),
        ("", None, 5.0),
    ]
    assert told(UseQuery(), faces=held(30)) == [
        ("lab", "", 30.0),
        ("vision", "lab", 30.0),
        ("faces", "vision", 30.0),
    ]


def test_of_one_team_nothing_above_it_is_told() -> None:
    assert told(UseQuery(team="vision"), faces=held(30), vision=held(10)) == [
        ("vision", "lab", 40.0),
        ("faces", "vision", 30.0),
    ]


def test_gpus_go_before_cpus_and_a_limit_says_how_many_more_there_are() -> None:
    sums: dict[str | None, Usage] = {"ana": held(50), "bo": held(10, 1), "cy": held(20, 1)}
    rows, more = rows_of(sums, UseQuery(By.OWNER, limit=2), TENANCY)
    assert ([row.group for row in rows], more) == (["cy", "bo"], 1)


def test_what_was_not_measured_is_unknown_and_what_was_and_is_nothing_is_nothing() -> None:
    idle = Usage(Resources(1000, 100), Resources(1000, 0), Resources(0, 70), 1.0, 1.0)
    rows, _ = rows_of({"ana": idle, "bo": held(1)}, UseQuery(By.OWNER), TENANCY)
    ana, bo = rows
    assert (ana.cpu_used_seconds, ana.memory_used_byte_seconds, ana.gpu_used_seconds) == (0.0, 70, None)
    assert (bo.cpu_used_seconds, bo.memory_used_byte_seconds, bo.coverage) == (None, None, 0.0)
