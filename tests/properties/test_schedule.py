"""What is true of every plan, on any cluster, under any policy: the promises, tried at random."""

import math
from collections import Counter

import msgspec
import pytest
from hypothesis import example, given
from worlds import ANY, ORDERLY, World, play, quick, seeds, world_of

from muster.model.events import Event, Evicting, Placed, Seat
from muster.model.job import JobId, Together
from muster.model.node import Health, Node
from muster.model.plan import Plan
from muster.model.policy import PRESETS, Policy
from muster.model.reasons import MakingRoom
from muster.model.snapshot import Snapshot
from muster.model.state import State
from muster.model.tenancy import Team, Tenancy
from muster.schedule import schedule
from muster.schedule.fit import never
from muster.store.fold import Fold

every_policy = pytest.mark.parametrize("name", list(PRESETS))
some_policies = pytest.mark.parametrize("name", ["fair", "easy", "gittins"])
without_turns = pytest.mark.parametrize("name", ["fair", "fifo", "easy", "easy-sjbf"])

WITHOUT_MEMORY_SHARES = ANY._replace(by_memory=False)


# --- Never more than there is -------------------------------------------------------------------------


@every_policy
@quick()
@given(seed=seeds)
@example(seed=78)
@example(seed=569)
def test_nothing_is_ever_oversubscribed(name: str, seed: int) -> None:
    play(world_of(seed), PRESETS[name])  # which checks the books after every cycle


@some_policies
@quick()
@given(seed=seeds)
def test_nor_when_nodes_are_lost_and_come_back(name: str, seed: int) -> None:
    play(world_of(seed, ANY._replace(outages=True)), PRESETS[name])


@pytest.mark.parametrize("place", ["random", "fgd", "packing", "clustering", "dot-product"])
@quick(8)
@given(seed=seeds)
def test_nor_by_any_way_of_placing(place: str, seed: int) -> None:
    play(world_of(seed), msgspec.structs.replace(Policy(), place=place))


# --- Gangs --------------------------------------------------------------------------------------------


@some_policies
@quick()
@given(seed=seeds)
def test_gangs_start_whole_and_as_close_as_asked_on_nodes_that_suit(name: str, seed: int) -> None:
    world = world_of(seed)
    by_id = {job.id: job for job in world.jobs}
    there = {node.name: node for node in world.nodes}

    def check(fact: Event) -> None:
        if isinstance(fact, Placed):
            gang = by_id[fact.job].gang
            asked = Counter(shape for p in gang.parts for shape in [p.shape] * p.count)
            assert Counter(seat.shape for seat in fact.seats) == asked
            assert _is_close(gang.together, [there[seat.node] for seat in fact.seats])
            for seat in fact.seats:
                _check_seat(seat, there[seat.node])

    play(world, PRESETS[name], record=check)


def _is_close(together: Together, nodes: list[Node]) -> bool:
    names = [n.name for n in nodes]
    if len(nodes) == 1:
        return True
    return {
        Together.ANYWHERE: True,
        Together.NODE: len(set(names)) == 1,
        Together.RACK: len({n.rack for n in nodes}) == 1 and nodes[0].rack is not None,
        Together.SWITCH: len({n.switch for n in nodes}) == 1 and nodes[0].switch is not None,
        Together.SPREAD: len(set(names)) == len(names),
    }[together]


def _check_seat(seat: Seat, node: Node) -> None:
    shape, devices = seat.shape, [node.devices[g] for g in seat.devices]
    assert node.health is Health.UP
    assert set(shape.labels) <= node.labels
    assert len(devices) == len(set(seat.devices)) == shape.gpus
    assert all(d.healthy for d in devices)
    assert all(not shape.gpu_models or d.model in shape.gpu_models for d in devices)
    assert all((d.memory_bytes or 0) >= shape.gpu_memory_bytes for d in devices)


# --- Every no has a reason ----------------------------------------------------------------------------


@every_policy
@quick(8)
@given(seed=seeds)
@example(seed=1171)
def test_no_job_waits_without_a_reason_that_can_say_itself(name: str, seed: int) -> None:
    def check(snap: Snapshot, plan: Plan, now: float) -> None:
        done = {s.job for s in plan.starts} | {w.job for w in plan.withdraws}
        waiting = [w for jobs in snap.lanes.values() for w in jobs]
        for one in (*waiting, *snap.ineligible.values()):
            if one.job.id not in done:
                wait = plan.wait_of(one, snap.unmet)
                assert wait is not None, f"{one.job.id} waits without a reason"
                assert all(r.sentence() for r in wait.reasons)
                making = [r for r in wait.reasons if isinstance(r, MakingRoom)]
                assert all(r.victims for r in making), f"nobody makes room for {one.job.id}"

    play(world_of(seed), PRESETS[name], look=check)


@without_turns
@quick()
@given(seed=seeds)
def test_an_idle_cluster_starts_the_first_job_that_can_run(name: str, seed: int) -> None:
    taste = ANY._replace(teams=False, bound=False, broken=False, kinds=1, until=0)
    world = world_of(seed, taste)
    found: list[tuple[Snapshot, Plan]] = []
    play(world, PRESETS[name], look=lambda snap, plan, _: found.append((snap, plan)), most_steps=1)
    snap, plan = found[0]
    able = [job for job in world.jobs if never(snap.hardware, job.gang) is None]
    if able:
        first = max(job.priority for job in able)
        started = {start.job for start in plan.starts}
        assert any(job.id in started for job in able if job.priority is first)


@every_policy
@quick(8)
@given(seed=seeds)
@example(seed=1165)
def test_nobody_is_left_behind(name: str, seed: int) -> None:
    """All that can run has run in the end, whoever had to leave for whom meanwhile."""
    world = world_of(seed, ANY._replace(outages=True, broken=False))
    loop = play(world, PRESETS[name], most_steps=2000)
    assert loop.is_over, "it never ends"
    snap = loop.fold.snapshot()
    assert not snap.running
    for jobs in snap.lanes.values():
        for waiting in jobs:
            wait = loop.plan.wait_of(waiting, snap.unmet)
            assert wait is not None
            assert wait.infeasible, f"{waiting.job.id} still waits: {wait.reasons[0]}"


@every_policy
@quick(8)
@given(seed=seeds)
def test_a_plan_says_nothing_twice_and_nothing_of_others(name: str, seed: int) -> None:
    def check(snap: Snapshot, plan: Plan, now: float) -> None:
        waiting = {w.job.id: w for jobs in snap.lanes.values() for w in jobs}
        waiting |= dict(snap.ineligible)
        started, evicted = [s.job for s in plan.starts], [e.job for e in plan.evicts]
        assert len(set(started)) == len(started)
        assert len(set(evicted)) == len(evicted)
        assert all(s.attempt == waiting[s.job].attempt + 1 for s in plan.starts)
        assert all(e.attempt == snap.running[e.job].attempt for e in plan.evicts)
        assert not set(started) & {w.job for w in plan.withdraws}
        assert len({p.job for p in plan.promises}) == len(plan.promises)
        assert plan.wake_at is None or plan.wake_at > now

    play(world_of(seed), PRESETS[name], look=check)


# --- Quota --------------------------------------------------------------------------------------------


@some_policies
@quick()
@given(seed=seeds)
def test_no_team_holds_more_than_it_owns_and_may_borrow(name: str, seed: int) -> None:
    world = world_of(seed, WITHOUT_MEMORY_SHARES)
    limited = [team for team in world.teams if team.borrow is not None]

    def check(snap: Snapshot, plan: Plan, now: float) -> None:
        held = _held_by_tree(snap)
        for team in limited:
            assert team.borrow is not None
            most = _owned(world, team.name) + (team.borrow.gpus_milli or 0)
            assert held[team.name] <= most, f"{team.name} holds {held[team.name]}"

    play(world, PRESETS[name], look=check)


@some_policies
@quick()
@given(seed=seeds)
def test_what_a_team_does_not_lend_nobody_else_holds(name: str, seed: int) -> None:
    world = world_of(seed, WITHOUT_MEMORY_SHARES)
    total = sum(node.total.gpus_milli for node in world.nodes)
    there = max(total, sum(_own(team) for team in world.teams))

    def check(snap: Snapshot, plan: Plan, now: float) -> None:
        held = _held_by_tree(snap)
        for team in world.teams:
            if team.lend is not None:
                kept = max(0, _owned(world, team.name) - (team.lend.gpus_milli or 0))
                assert held[""] - held[team.name] <= there - kept, f"what {team.name} keeps is held"

    play(world, PRESETS[name], look=check)


def _own(team: Team) -> int:
    return team.quota.gpus_milli or 0


def _owned(world: World, name: str) -> int:
    tree = Tenancy(world.teams)
    return sum(_own(t) for t in world.teams if name in tree.path(t.name))


def _held_by_tree(snap: Snapshot) -> Counter[str]:
    """GPUs by team; who was told to leave does not count."""
    held: Counter[str] = Counter()
    for running in snap.running.values():
        if running.state is State.STOPPING:
            continue
        for team in snap.tenancy.path(running.job.team):
            held[team] += running.held.gpus_milli
    return held


# --- Promises -----------------------------------------------------------------------------------------


PROMISING = {
    "easy": PRESETS["easy"],
    "easy-sjbf": PRESETS["easy-sjbf"],
    "fair": msgspec.structs.replace(Policy(), patience=0.0),
    "fair, two at a time": msgspec.structs.replace(Policy(), patience=0.0, reservations=2),
}


@pytest.mark.parametrize("name", list(PROMISING))
@quick(25)
@given(seed=seeds)
@example(seed=313)
@example(seed=669)
@example(seed=692)
@example(seed=873)
def test_a_promise_is_kept_among_equal_nodes(name: str, seed: int) -> None:
    _promises_are_kept(world_of(seed, ORDERLY._replace(alike=True, gangs=False)), PROMISING[name])


@pytest.mark.parametrize("name", list(PROMISING))
@quick(25)
@given(seed=seeds)
@example(seed=62)
@example(seed=440)
@example(seed=958)
@example(seed=2055)
def test_a_promise_is_kept_to_picky_jobs_and_gangs(name: str, seed: int) -> None:
    _promises_are_kept(world_of(seed, ORDERLY), PROMISING[name])


def _promises_are_kept(world: World, policy: Policy) -> None:
    """Limits are enforced, so the longest that a job can take is known; and no node is lost."""
    due: dict[JobId, float] = {}
    started: dict[JobId, float] = {}

    def look(snap: Snapshot, plan: Plan, now: float) -> None:
        for promise in plan.promises:
            if promise.firm and promise.starts_at is not None:
                due[promise.job] = min(promise.starts_at, due.get(promise.job, math.inf))
        for start in plan.starts:
            started.setdefault(start.job, now)

    play(world, policy, look=look)
    for job_id, at in due.items():
        assert started.get(job_id, math.inf) <= at + 1e-6, f"{job_id} was promised {at}"


# --- The same input, the same plan --------------------------------------------------------------------


@every_policy
@quick(4)
@given(seed=seeds)
@example(seed=18)
def test_what_is_remembered_never_changes_a_plan(name: str, seed: int) -> None:
    def check(snap: Snapshot, plan: Plan, now: float) -> None:
        fresh = msgspec.structs.replace(snap, memo={})
        assert schedule(fresh, PRESETS[name], now=now) == plan
        assert schedule(snap, PRESETS[name], now=now) == plan

    play(world_of(seed), PRESETS[name], look=check)


@some_policies
@quick(8)
@given(seed=seeds)
def test_every_decision_can_be_replayed_from_the_journal(name: str, seed: int) -> None:
    world, policy = world_of(seed), PRESETS[name]
    journal: list[Event] = []
    decided: list[tuple[int, Plan, float]] = []

    def look(snap: Snapshot, plan: Plan, now: float) -> None:
        decided.append((snap.generation, plan, now))

    play(world, policy, look=look, record=journal.append)
    for generation, plan, now in decided[::3]:
        fold = Fold(policy, world.run_seconds)
        for fact in journal[:generation]:
            fold.apply(fact)
        assert schedule(fold.snapshot(), policy, now=now) == plan


@some_policies
@quick(8)
@given(seed=seeds)
@example(seed=78)
def test_a_snapshot_stays_as_it_is_while_facts_keep_coming(name: str, seed: int) -> None:
    kept: list[tuple[Snapshot, Plan, float]] = []
    play(world_of(seed), PRESETS[name], look=lambda *seen: kept.append(seen))
    for snap, plan, now in kept[::3]:
        assert schedule(snap, PRESETS[name], now=now) == plan


# --- Who yields -------------------------------------------------------------------------------------


@without_turns
@quick()
@given(seed=seeds)
def test_whoever_has_to_leave_is_one_that_may_be_told_to(name: str, seed: int) -> None:
    world = world_of(seed)
    by_id = {job.id: job for job in world.jobs}

    def check(snap: Snapshot, plan: Plan, now: float) -> None:
        held = _held_by_tree(snap)
        for evict in plan.evicts:
            victim = snap.running[evict.job]
            assert evict.in_favour_of is not None
            evictor = by_id[evict.in_favour_of]
            assert victim.elapsed(now) >= PRESETS[name].protected_seconds
            if evict.because == "priority":
                assert victim.job.priority < evictor.priority
            elif evict.because == "reclaim":
                over = [t for t in snap.tenancy.path(victim.job.team) if _is_over(world, t, held)]
                assert over, f"{evict.job} of {victim.job.team} was within its quota"
            else:
                assert evict.because == "compact"
                assert victim.job.checkpoint is not None

    play(world, PRESETS[name], look=check)


def _is_over(world: World, team: str, held: Counter[str]) -> bool:
    return held[team] > _owned(world, team)


# --- No circles ---------------------------------------------------------------------------------------


@without_turns
@quick(20)
@given(seed=seeds)
@example(seed=147)
def test_no_two_jobs_evict_each_other_in_turn(name: str, seed: int) -> None:
    world = world_of(seed, ANY._replace(until=0, bound=False))
    pairs: Counter[tuple[str, str]] = Counter()

    def check(fact: Event) -> None:
        if isinstance(fact, Evicting) and fact.because != "compact":
            assert fact.in_favour_of is not None
            pairs[fact.in_favour_of, fact.job] += 1

    policy = msgspec.structs.replace(PRESETS[name], evict="lower", protected_seconds=60.0)
    play(world, policy, record=check)
    for (evictor, victim), times in pairs.items():
        assert (victim, evictor) not in pairs, f"{evictor} and {victim} evict each other"
        assert times <= 2, f"{evictor} evicted {victim} {times} times"
