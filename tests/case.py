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

import msgspec

from muster.model.events import (
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
    Gang,
    Job,
    JobId,
    Part,
    Priority,
    Shape,
    Together,
)
from muster.model.node import Device, Health, Node
from muster.model.plan import Evict, Plan, Promise, Start, Wait
from muster.model.policy import Policy, preset
from muster.model.reasons import Reason
from muster.model.state import State
from muster.model.tenancy import Quota, Team
from muster.model.units import MILLI, parse_bytes, parse_seconds
from muster.schedule import schedule
from muster.server.loop import consequences_of
from muster.store.fold import Fold
from room_check import validate

Span = float | str

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

    def policy(self, name: str = "fair", **knobs: object) -> "Case":
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
        owned = Quota(gpus_milli=_milli(quota), cpus_milli=_milli(cpus))
        team = Team(name, parent, owned, weight, _limit(borrow), _limit(lend))
        return self._happens(TeamSet(0.0 if self._fold is None else self.now, team))

    # --- Who runs, who waits ------------------------------------------------------------------------

    def waiting(self, *, submitted_ago: Span = 0.0, runs: Span | None = None, **asked: object) -> JobId:
        """A job in the queue. ``runs`` is its true length, which only ``*-true`` policies know."""
        job = self._job(self.now - _seconds(submitted_ago), **asked)
        if runs is not None:
            self._known[job.id] = _seconds(runs)
        self._happens(Submitted(job.submitted_at, job))
        return job.id

    def running(
        self,
        *,
        on: str | tuple[str, ...],
        since_seconds: Span = "1h",
        lasts: Span | None = None,
        devices: tuple[int, ...] | None = None,
        **asked: object,
    ) -> JobId:
        """A job that has run for a while. ``lasts`` is its limit, and how long it is thought to run."""
        at = self.now - _seconds(since_seconds)
        job = self._job(at, time_limit=lasts, **asked)
        self._known[job.id] = 1e9 if lasts is None else _seconds(lasts)
        shapes = [p.shape for p in job.gang.parts for _ in range(p.count)]
        nodes = (on,) * len(shapes) if isinstance(on, str) else on
        seats = tuple(self._sit(n, s, devices) for n, s in zip(nodes, shapes, strict=True))
        self._happens(Submitted(at, job))
        limit = job.time_limit_seconds
        self._happens(Placed(at, job.id, 1, seats, limit, limit))
        self._happens(Started(at, job.id, 1))
        return job.id

    def ended(self, *, ran: Span, ago: Span = "1d", **asked: object) -> JobId:
        """A job of the past, which succeeded."""
        at = self.now - _seconds(ago)
        job = self._job(at, **asked)
        node = next(iter(self._nodes))
        seats = tuple(Seat(node, p.shape) for p in job.gang.parts)
        self._happens(Submitted(at, job))
        self._happens(Placed(at, job.id, 1, seats))
        self._happens(Started(at, job.id, 1))
        self._happens(Exited(at + _seconds(ran), job.id, 1, Outcome.SUCCEEDED))
        return job.id

    # --- What happens afterwards --------------------------------------------------------------------

    def passes(self, span: Span) -> "Case":
        """Time goes by, and it is decided again."""
        self._settle()
        self.now += _seconds(span)
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

    def node_is(self, name: str, health: Health) -> "Case":
        return self._happens(NodeHealth(self.now, name, health))

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
        **gang: object,
    ) -> Job:
        number = len(self._jobs) + 1
        job = Job(
            id=f"j{number:02}",
            gang=gang_of(**gang),  # type: ignore[arg-type]
            submitted_at=at,
            name=name,
            owner=owner,
            team=team,
            priority=Priority[priority.upper()],
            time_limit_seconds=None if time_limit is None else _seconds(time_limit),
            begin_at=None if begin_in is None else self.now + _seconds(begin_in),
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
        milli = _share(shape, node) if shape.gpus else 0
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
        """The facts in order of time. Nodes and teams are seen before there are jobs, as by a loop."""
        fold = Fold(self._policy, self._known)
        for fact in sorted(self._facts, key=lambda f: (not isinstance(f, NodeSeen | TeamSet), f.at)):
            if isinstance(fact, Submitted) and not fold.records:
                fold.snapshot()
                fold.release()
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


class Expected:
    """What is expected of one job. Each check says what was found instead."""

    def __init__(self, case: Case, job_id: JobId) -> None:
        self._case, self._id = case, job_id
        self._record = case.fold.records[job_id]

    def starts_on(self, *nodes: str) -> Seat:
        """Its parts sit on just these nodes. Returns the first seat."""
        self.starts()
        seats = self._case.starts[self._id].seats
        found = {s.node for s in seats}
        assert found == set(nodes), f"{self._id} starts on {sorted(found)}"
        return seats[0]

    def starts(self) -> None:
        assert self._id in self._case.starts, f"{self._id} does not start: {self._why()}"
        assert self._record.running is not None, f"{self._id} started, and did not stay"

    def starts_before(self, other: JobId) -> None:
        """It gets room first, if the other does at all."""
        self.starts()
        order = list(self._case.starts)
        ahead = other not in order or order.index(self._id) < order.index(other)
        assert ahead, f"{other} starts before {self._id}"

    def waits(self, because: type[Reason] | None = None) -> Reason:
        """It waits, and this is the deciding reason, which can say itself."""
        wait = self._wait()
        reason = wait.reasons[0]
        assert not wait.infeasible, f"{self._id} can never run: {reason}"
        assert because is None or isinstance(reason, because), f"{self._id} waits because {reason}"
        assert reason.sentence()
        return reason

    def never_runs(self, because: type[Reason]) -> Reason:
        wait = self._wait()
        assert wait.infeasible, f"{self._id} only waits: {wait.reasons[0]}"
        assert isinstance(wait.reasons[0], because), f"{self._id} can't run because {wait.reasons[0]}"
        assert "can never run" in wait.reasons[0].sentence()
        return wait.reasons[0]

    def is_withdrawn(self, outcome: Outcome = Outcome.DEPENDENCY_FAILED) -> None:
        assert self._case.withdrawn.get(self._id) is outcome, f"{self._id} is {self._record.state}"

    def is_preempted(self, because: str) -> None:
        causes = self._case.evictions.get(self._id, [])
        assert because in causes, f"{self._id} was made to leave because of {causes or 'nothing'}"

    def stays(self) -> None:
        """It ran, and goes on where it is."""
        assert self._id not in self._case.evictions, f"{self._id} had to leave"
        assert self._record.running is not None, f"{self._id} is {self._record.state}"

    def is_promised(self, within: Span | None = None, *, firm: bool | None = None) -> Promise:
        """Room is kept for it."""
        promise = self._case.promises.get(self._id)
        assert promise is not None, f"no room is kept for {self._id}"
        assert firm is None or promise.firm is firm, f"firm is {promise.firm}"
        if within is not None:
            assert self._id in self._case.promised_at, "when it starts was not worked out"
            in_seconds = self._case.promised_at[self._id] - self._case.now
            assert in_seconds <= _seconds(within), f"{self._id} is promised room in {in_seconds} s"
        return promise

    def is_promised_nothing(self) -> None:
        assert self._id not in self._case.promises, f"{self._case.promises[self._id]}"

    def _wait(self) -> Wait:
        waiting = self._record.waiting
        assert waiting is not None, f"{self._id} is {self._record.state}"
        wait = self._case.plan.wait_of(waiting)
        assert wait is not None, f"{self._id} waits without a reason"
        return wait

    def _why(self) -> object:
        if self._record.state in (State.QUEUED, State.HELD):
            return self._wait().reasons[0]
        return self._record.state


def gang_of(
    *,
    gpus: int = 0,
    share: float | None = None,
    gpu_memory: str | None = None,
    cpus: float = 1,
    memory: str | None = None,
    disk: str | None = None,
    parts: int | tuple[dict[str, object], ...] = 1,
    together: str = "anywhere",
    model: str | tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
) -> Gang:
    """A gang in words. ``parts`` is how many there are, or a tuple of what each asks for."""
    if isinstance(parts, tuple):
        kinds = tuple(p for words in parts for p in gang_of(**words).parts)  # type: ignore[arg-type]
        return Gang(kinds, Together(together))
    by_memory = gpu_memory is not None and not gpus and share is None
    whole = share is None and not by_memory
    shape = Shape(
        cpus_milli=round(cpus * MILLI),
        memory_bytes=parse_bytes(memory or "0"),
        gpus=gpus if whole else 1,
        gpu_milli=MILLI if whole else round((share or 0) * MILLI),
        gpu_memory_bytes=parse_bytes(gpu_memory or "0"),
        gpu_models=(model,) if isinstance(model, str) else model,
        labels=labels,
        disk_bytes=parse_bytes(disk or "0"),
    )
    return Gang((Part(shape, parts),), Together(together))


def _share(shape: Shape, node: Node) -> int:
    """What the part holds of a device of this node, in thousandths."""
    memory = node.devices[0].memory_bytes or 1
    by_memory = -(-shape.gpu_memory_bytes * MILLI // memory) if shape.gpu_milli < MILLI else 0
    return max(shape.gpu_milli, by_memory)


def _milli(amount: float | None) -> int | None:
    return None if amount is None else round(amount * MILLI)


def _limit(gpus: float | None) -> Quota | None:
    return None if gpus is None else Quota(gpus_milli=_milli(gpus))


def _seconds(span: Span) -> float:
    return parse_seconds(span) if isinstance(span, str) else span
