"""A scheduling case in a few words: what there is, who runs, who waits, and what is expected of it.

    c = Case().node("a", gpus=8).team("nlp", quota=4).team("vision", quota=4)
    borrower = c.running(team="nlp", gpus=8, on="a")
    owner = c.waiting(team="vision", gpus=4)
    c.expect(owner).starts_on("a")
    c.expect(borrower).is_preempted(because="reclaim")

Nothing is decided before the first ``expect``. Then the real cycle runs on a real fold, its plan is
applied, whoever is evicted leaves at once, and it is decided again until nothing changes: so *starts* means
what comes of it in the end. Afterwards time may pass, jobs may end and others come; the next ``expect``
decides anew.

Spans are seconds or text such as ``"90m"``; sizes are text such as ``"40G"``. A case that was built and never
checked is a mistake: see ``conftest``.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from asks import Span, gang_of, milli_of, quota_of, seconds_of, share_on
from expected import Expected
from muster.model.events import (
    DeviceHealth,
    Event,
    Exited,
    Held,
    NodeHealth,
    NodeSeen,
    Outcome,
    Placed,
    Released,
    Seat,
    Started,
    Submitted,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import (
    After,
    ArrayPlace,
    Checkpoint,
    Dependency,
    Job,
    JobId,
    Priority,
    Shape,
)
from muster.model.node import Device, Health, Node
from muster.model.plan import Evict, Plan, Promise, Start
from muster.model.policy import Policy, preset
from muster.model.tenancy import Quota, Team
from muster.model.units import MILLI, parse_bytes
from muster.schedule import schedule
from muster.server.loop import consequences_of
from muster.store.fold import Fold
from room_check import validate

_NOW = 1_000_000.0
_MOST_ROUNDS = 32  # of deciding, until nothing changes

made: list["Case"] = []  # by the test that runs; ``conftest`` looks after them


class Case:
    """A small cluster at one instant, and what is decided there."""

    def __init__(self) -> None:
        self.now = _NOW
        self.plan = Plan()  # of the last cycle
        self.starts: dict[JobId, Start] = {}  # in the order in which they happened
        self.evictions: dict[JobId, list[str]] = {}  # with their causes
        self.withdrawn: dict[JobId, Outcome] = {}
        self.promises: dict[JobId, Promise] = {}  # the last to each
        self.promised_at: dict[JobId, float] = {}  # the last time that was worked out
        self.checked = False
        self._policy = Policy()
        self._fold: Fold | None = None
        self._facts: list[Event] = []
        self._nodes: dict[str, Node] = {}
        self._free: dict[str, list[int]] = {}
        self._known: dict[JobId, float] = {}
        self._jobs: dict[JobId, Job] = {}
        self._slow: set[JobId] = set()
        self._stale = True
        made.append(self)

    # --- What there is ------------------------------------------------------------------------------

    def policy(self, name: str = "fair", **knobs: Any) -> "Case":
        """A preset, with some knobs turned."""
        assert self._fold is None, "say the policy before anything is expected"
        self._policy = msgspec.structs.replace(preset(name), **knobs)
        return self

    def node(
        self,
        name: str,
        *,
        gpus: int = 0,
        model: str = "A40",
        gpu_memory: str | None = "48G",
        unhealthy: tuple[int, ...] = (),
        cpus: float = 64,
        memory: str = "512G",
        rack: str | None = None,
        switch: str | None = None,
        labels: tuple[str, ...] = (),
        drained: bool = False,
        down: bool = False,
    ) -> "Case":
        size = None if gpu_memory is None else parse_bytes(gpu_memory)
        node = Node(
            name=name,
            cpus_milli=round(cpus * MILLI),
            memory_bytes=parse_bytes(memory),
            devices=tuple(Device(model, size, healthy=g not in unhealthy) for g in range(gpus)),
            rack=rack,
            switch=switch,
            labels=frozenset(labels),
            health=Health.DOWN if down else Health.DRAINED if drained else Health.UP,
        )
        self._nodes[name] = node
        self._free.setdefault(name, [MILLI if d.healthy else 0 for d in node.devices])
        return self._happens(NodeSeen(0.0 if self._fold is None else self.now, node))

    def team(
        self,
        name: str,
        *,
        quota: float | None = None,
        cpus: float | None = None,
        parent: str = "",
        weight: float = 1.0,
        borrow: float | None = None,
        lend: float | None = None,
    ) -> "Case":
        """Amounts are GPUs, but for ``cpus``, a quota of cpus."""
        owned = Quota(gpus_milli=milli_of(quota), cpus_milli=milli_of(cpus))
        team = Team(name, parent, owned, weight, quota_of(borrow), quota_of(lend))
        return self._happens(TeamSet(0.0 if self._fold is None else self.now, team))

    # --- Who runs, who waits ------------------------------------------------------------------------

    def waiting(self, *, submitted_ago: Span = 0.0, runs: Span | None = None, **asked: Any) -> JobId:
        """A job in the queue. ``runs`` is its true length, which only ``*-true`` policies know."""
        job = self._job(self.now - seconds_of(submitted_ago), **asked)
        if runs is not None:
            self._known[job.id] = seconds_of(runs)
        self._happens(Submitted(job.submitted_at, job))
        return job.id

    def running(
        self,
        *,
        on: str | tuple[str, ...],
        since_seconds: Span = "1h",
        lasts: Span | None = None,
        devices: tuple[int, ...] | None = None,
        **asked: Any,
    ) -> JobId:
        """A job that has run for a while. ``lasts`` is its limit, and how long it is thought to run."""
        at = self.now - seconds_of(since_seconds)
        job = self._job(at, time_limit=lasts, **asked)
        self._known[job.id] = 1e9 if lasts is None else seconds_of(lasts)
        shapes = [p.shape for p in job.gang.parts for _ in range(p.count)]
        nodes = (on,) * len(shapes) if isinstance(on, str) else on
        seats = tuple(self._sit(n, s, devices) for n, s in zip(nodes, shapes, strict=True))
        self._happens(Submitted(at, job))
        limit = job.time_limit_seconds
        self._happens(Placed(at, job.id, 1, seats, limit, limit))
        self._happens(Started(at, job.id, 1))
        return job.id

    def ended(self, *, ran: Span, ago: Span = "1d", **asked: Any) -> JobId:
        """A job of the past, which succeeded."""
        at = self.now - seconds_of(ago)
        job = self._job(at, **asked)
        node = next(iter(self._nodes))
        seats = tuple(Seat(node, p.shape) for p in job.gang.parts)
        self._happens(Submitted(at, job))
        self._happens(Placed(at, job.id, 1, seats))
        self._happens(Started(at, job.id, 1))
        self._happens(Exited(at + seconds_of(ran), job.id, 1, Outcome.SUCCEEDED))
        return job.id

    # --- What happens afterwards --------------------------------------------------------------------

    def passes(self, span: Span) -> "Case":
        """Time goes by, and it is decided again."""
        self._settle()
        self.now += seconds_of(span)
        self._stale = True
        return self

    def ends(self, job_id: JobId, outcome: Outcome = Outcome.SUCCEEDED) -> "Case":
        """A running job ends, a waiting one is withdrawn. Several at once, until something is expected."""
        if self._fold is None:
            self._settle()
        assert self._fold is not None
        record = self._fold.records[job_id]
        if record.running is None:
            return self._happens(Withdrawn(self.now, job_id, outcome))
        return self._happens(Exited(self.now, job_id, record.running.attempt, outcome))

    def leaves_slowly(self, job_id: JobId) -> "Case":
        """If it is made to leave, it is still busy saving for now."""
        self._slow.add(job_id)
        return self

    def holds(self, job_id: JobId) -> "Case":
        return self._happens(Held(self.now, job_id))

    def releases(self, job_id: JobId) -> "Case":
        return self._happens(Released(self.now, job_id))

    def node_is(self, name: str, health: Health, because: str = "") -> "Case":
        return self._happens(NodeHealth(self.now, name, health, because))

    def gpu_is(self, name: str, device: int, *, healthy: bool, because: str = "") -> "Case":
        return self._happens(DeviceHealth(self.now, name, device, healthy, because))

    # --- What is expected ---------------------------------------------------------------------------

    def expect(self, job_id: JobId) -> "Expected":
        self.checked = True
        self._settle()
        return Expected(self, job_id)

    @property
    def fold(self) -> Fold:
        """The facts so far; decides first, if that has not been done."""
        self._settle()
        assert self._fold is not None
        return self._fold

    @property
    def wakes_in_seconds(self) -> float | None:
        """When the cycle wants to be run again."""
        self.checked = True
        self._settle()
        return None if self.plan.wake_at is None else self.plan.wake_at - self.now

    # --- inside -------------------------------------------------------------------------------------

    def _job(
        self,
        at: float,
        *,
        name: str = "",
        owner: str = "ana",
        team: str = "",
        priority: str = "normal",
        time_limit: Span | None = None,
        begin_in: Span | None = None,
        after: Mapping[JobId, str] | None = None,
        array: tuple[str, int] | None = None,
        checkpoint: Checkpoint | None = None,
        held: bool = False,
        **gang: Any,
    ) -> Job:
        number = len(self._jobs) + 1
        job = Job(
            id=f"j{number:02}",
            gang=gang_of(**gang),
            submitted_at=at,
            name=name,
            owner=owner,
            team=team,
            priority=Priority[priority.upper()],
            time_limit_seconds=None if time_limit is None else seconds_of(time_limit),
            begin_at=None if begin_in is None else self.now + seconds_of(begin_in),
            after=tuple(Dependency(j, After(how)) for j, how in (after or {}).items()),
            array=None if array is None else ArrayPlace(array[0], number, array[1]),
            checkpoint=checkpoint,
            held=held,
        )
        self._jobs[job.id] = job
        return job

    def _sit(self, name: str, shape: Shape, devices: tuple[int, ...] | None) -> Seat:
        """The first devices that have as much free, or those asked for."""
        free, node = self._free[name], self._nodes[name]
        milli = share_on(shape, node) if shape.gpus else 0
        if devices is None:
            devices = tuple([g for g, f in enumerate(free) if f >= milli][: shape.gpus])
        assert len(devices) == shape.gpus, f"there is no room on {name} for {shape}"
        for g in devices:
            free[g] -= milli
        return Seat(name, shape, devices, milli)

    def _happens(self, fact: Event) -> "Case":
        """A fact; in order of time until it is first decided, and at once from then on."""
        self._stale = True
        if self._fold is None:
            self._facts.append(fact)
        else:
            self._fold.apply(fact)
        return self

    def _settle(self) -> None:
        """Decide until nothing changes."""
        if self._fold is None:
            self._fold = self._begin()
        if self._stale:
            self._stale = False
            for _ in range(_MOST_ROUNDS):
                if not self._decide(self._fold):
                    return
            raise AssertionError(f"nothing is settled after {_MOST_ROUNDS} cycles: {self.plan}")

    def _begin(self) -> Fold:
        """The facts in order of time; nodes and teams were there before all jobs."""
        fold = Fold(self._policy, self._known)
        for fact in sorted(self._facts, key=lambda f: (not isinstance(f, NodeSeen | TeamSet), f.at)):
            fold.apply(fact)
        return fold

    def _decide(self, fold: Fold) -> bool:
        """One cycle and what follows from it, as in the loop; whether anything did."""
        snap = fold.snapshot()
        self.plan = plan = schedule(snap, self._policy, now=self.now)
        facts = [fact for fact, _ in consequences_of(plan, snap, self.now)]
        fold.release()
        for fact in facts:
            fold.apply(fact)
            if isinstance(fact, Placed):
                fold.apply(Started(self.now, fact.job, fact.attempt))
        self._remember(plan)
        validate(fold)
        for evict in plan.evicts:
            if evict.job not in self._slow:
                self._leave(fold, evict)
        return bool(plan.withdraws or plan.evicts or plan.starts)

    def _remember(self, plan: Plan) -> None:
        self.withdrawn |= {w.job: w.outcome for w in plan.withdraws}
        self.starts |= {s.job: s for s in plan.starts}
        self.promises |= {p.job: p for p in plan.promises}
        self.promised_at |= {p.job: p.starts_at for p in plan.promises if p.starts_at is not None}
        for evict in plan.evicts:
            self.evictions.setdefault(evict.job, []).append(evict.because)

    def _leave(self, fold: Fold, evict: Evict) -> None:
        running = fold.records[evict.job].running
        assert running is not None
        lost = running.unsaved_seconds(self.now)
        fold.apply(Vacated(self.now, evict.job, evict.attempt, evict.because, lost))
