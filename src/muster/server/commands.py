"""What people can ask for: each command checks who asks and whether it makes sense, then notes events."""

import hashlib
import os
from collections.abc import Callable, Sequence

import msgspec

from muster.application.build import Built, build
from muster.application.request import ManyRequests, Request
from muster.model.errors import BadInput, IllegalTransition, MusterError
from muster.model.events import (
    ArraySubmitted,
    Event,
    Evicting,
    Held,
    Released,
    Resumed,
    Stopping,
    Submitted,
    Suspended,
    Withdrawn,
)
from muster.model.job import Dependency, Gang, Job, JobId
from muster.model.plan import Action, Evict, Resume, Stop, Suspend
from muster.model.run import GRACE_SECONDS, Run
from muster.model.state import State
from muster.model.units import show_seconds
from muster.schedule.offers import impossible
from muster.server import members
from muster.server.answers import JobView
from muster.server.config_tables import Config, Limits
from muster.server.errors import Forbidden, NotFound, StoreTrouble
from muster.server.people import Person, default_team, may_act_on, may_submit
from muster.server.service import Service
from muster.server.stewardship.door import judged, tell_named, with_owner
from muster.server.stewardship.efforts import Efforts
from muster.server.told import Told, as_reports, check_may_report
from muster.server.trackers import check_tracker
from muster.steward.passing import Judgement
from muster.store.records import Record, meets

_STOPPED = "stopped"
_MOST_INTERNED = 10_000
_MOST_ENVIRONMENTS = 1000  # at hand

Step = tuple[Event | None, *tuple[Action, ...]]  # without an event: the engine tells what comes of it


class Commands:
    """Commands on the service, by a person."""

    def __init__(self, service: Service, config: Config, efforts: Efforts) -> None:
        self._service, self.config, self._efforts = service, config, efforts
        self._interned: dict[object, object] = {}
        self._environments: dict[str, dict[str, str]] = {}

    # --- Submitting ---------------------------------------------------------------------------------

    async def submit(self, person: Person, request: Request) -> JobView:
        self._check_store()
        entry = self.built(person, request, _key_of(request.environment))
        self._keep(request.environment)
        self._service.note(entry.event)
        await self._service.durable(entry.id)
        tell_named(self._service.tell, person, [entry.job])
        view = self.view(entry.id)
        view.warnings = list(entry.warnings)
        return view

    async def submit_many(self, person: Person, many: ManyRequests) -> "list[Entry]":
        """All of them, or none."""
        self._check_store()
        shared = _key_of(many.environment)
        entries: list[Entry] = []
        for request in many.jobs:
            before = sum(entry.members for entry in entries)
            key = _key_of(request.environment) if request.environment else shared
            try:
                entries.append(self.built(person, request, key, len(entries), before))
            except MusterError as error:
                where = f"job {len(entries) + 1} of {len(many.jobs):,}"
                raise type(error)(f"{where}: {error}; none was submitted") from None
        for environment in (many.environment, *(r.environment for r in many.jobs if r.environment)):
            self._keep(environment)
        for entry in entries:
            self._service.note(entry.event)
        await self._service.durable(*(entry.id for entry in entries))
        tell_named(self._service.tell, person, [entry.job for entry in entries])
        return entries

    def _check_store(self) -> None:
        if self._service.journal.sick is not None:
            raise StoreTrouble(self._service.journal.sick)

    def _check_takes_jobs(self) -> None:
        shared = self._service.shared
        why_not = None if shared is None else shared.takes_jobs()
        if why_not is not None:
            raise IllegalTransition(why_not)

    def _keep(self, environment: dict[str, str]) -> None:
        """Under a key that follows from it: most submissions share one."""
        key = _key_of(environment)
        if key not in self._environments:
            self._service.keep_blob(key, msgspec.json.encode(environment, order="sorted"))
            self._remember(key, environment)

    def built(
        self,
        person: Person,
        request: Request,
        key: str = "",
        after: int = 0,
        members: int = 0,
        *,
        only_look: bool = False,
    ) -> "Entry":
        """The job as it would be submitted, or why not: ``after`` so many others, with so many members.

        ``only_look``: one that does not pass muster is built all the same.
        """
        service = self._service
        now = service.now()
        if not only_look:
            self._check_takes_jobs()
        built = build(
            request,
            job_id=service.next_id(after),
            owner=person.name,
            team=default_team(person),
            user="",
            environment_key=key,
            now=service.wall(),
        )
        job = msgspec.structs.replace(built.job, submitted_at=now)
        if (why_not := may_submit(person, job.team, job.owner)) is not None:
            raise Forbidden(why_not)
        job = with_owner(job, person, service.directory)
        job = self._efforts.joined(person, job)
        judgement = judged(
            job, self.config, service.directory, service.fold.stewardship, attended=request.attended
        )
        count, warnings = len(built.indices) or 1, list(built.warnings)
        why_held = None if job.held else service.fold.kept_back(job)
        warnings += [f"it is held: {why_held}"] if why_held else []
        if built.right_size and service.endings is not None:
            job, said = service.endings.right_sized(job, now)
            warnings += said
        if service.budgets is not None:
            warnings += service.budgets.check(job)
        job = _run_as(_user_of(person), self._limited(person, job, count, members))
        self._check_possible(job)
        check_tracker(job, self.config.monitor.mlflow_hosts)
        job = self._shared(self._with_dependencies(job))
        if judgement.refusal is not None and not only_look:
            raise BadInput(judgement.refusal)
        return Entry(job, _event(now, built, job), (*warnings, *judgement.warnings), count, judgement)

    def environment(self, key: str) -> dict[str, str]:
        """An environment that was kept; the engine asks when it starts a job."""
        found = self._environments.get(key)
        if found is None:
            body = self._service.journal.blob(key)
            found = msgspec.json.decode(body, type=dict[str, str]) if body else {}
            self._remember(key, found)
        return found

    def _remember(self, key: str, environment: dict[str, str]) -> None:
        if len(self._environments) >= _MOST_ENVIRONMENTS:
            self._environments.clear()
        self._environments[key] = environment

    def _shared(self, job: Job) -> Job:
        """Equal parts of jobs are one object: a hundred thousand like jobs should not cost what they say."""
        if len(self._interned) > _MOST_INTERNED:
            self._interned.clear()
        keep = self._interned.setdefault
        replace = msgspec.structs.replace
        return replace(job, gang=keep(job.gang, job.gang), run=keep(job.run, job.run))

    def _check_possible(self, job: Job) -> None:
        """As far as is known: of a host whose nodes are its own to tell, none may be known yet."""
        fold, shared = self._service.fold, self._service.shared
        why_not = None if shared is None else shared.cant_run(job)
        if why_not is not None:
            raise BadInput(why_not)
        reason = impossible(fold.hardware, job.gang) if shared is None or fold.nodes else None
        if reason is not None:
            raise BadInput(reason.sentence())

    def _limited(self, person: Person, job: Job, members: int, before: int) -> Job:
        """With what a job gets that asks for nothing; refused if it is more than this person may have.

        ``before``: how many come with it, and before it.
        """
        limits = self.config.limits_of(self._service.directory.now_called(person.name))
        if members > limits.array_members:
            raise BadInput(
                f"an array may have {limits.array_members:,} members here; this one has {members:,}"
            )
        names = self._service.directory.all_names(person.name)
        live = sum(map(self._service.fold.live_of, names)) + before
        if live + members > limits.jobs_waiting:
            raise Forbidden(f"{person.name} may have {limits.jobs_waiting:,} jobs here, and has {live:,}")
        asked, most = job.time_limit_seconds, limits.time_most_seconds
        if asked is None:
            asked = most if limits.time_default_seconds is None else limits.time_default_seconds
        if most is not None and asked is not None and asked > most:
            raise BadInput(
                f"jobs may run {show_seconds(most)} at most here; this one asks for {show_seconds(asked)}"
            )
        replace = msgspec.structs.replace
        return replace(
            job, time_limit_seconds=asked, gang=_remembering(job.gang, limits), run=_within(job.run, limits)
        )

    def _with_dependencies(self, job: Job) -> Job:
        """Those on jobs that have ended are answered at once, and left out if they are met."""
        left: list[Dependency] = []
        for dependency in job.after:
            outcome = self._service.outcome_of(dependency.job)
            if outcome is None and self._service.is_known(dependency.job):
                left.append(dependency)
            elif outcome is None:
                raise NotFound(f"there is no job {dependency.job} to wait for")
            elif not meets(dependency, outcome):
                raise BadInput(f"job {dependency.job} has ended as {outcome}: this job could never start")
        return msgspec.structs.replace(job, after=tuple(left))

    # --- Acting on jobs -----------------------------------------------------------------------------

    async def stop(
        self, person: Person, job_id: str, because: str = "", grace: float | None = None
    ) -> JobView:
        said = f"stopped by {person.name}" + (f": {because}" if because else "")
        now = self._service.now()

        def step(record: Record) -> Step | None:
            if record.waiting is not None and record.waiting.job.adopted is not None:
                return None, Stop(record.waiting.job.id, record.waiting.attempt, said, grace)
            if record.waiting is not None:
                return (Withdrawn(now, record.waiting.job.id),)
            assert record.running is not None
            job, attempt = record.running.job.id, record.running.attempt
            return Stopping(now, job, attempt, said), Stop(job, attempt, said, grace)

        self._check_reach(person, job_id)
        return await self._each(person, job_id, step, _STOPPED)

    def _check_reach(self, person: Person, job_id: str) -> None:
        """Whether what is in a queue of others can be stopped from here."""
        why_not = self._service.beyond(self._acted_on(person, job_id))
        if why_not is not None:
            raise Forbidden(why_not)

    async def hold(self, person: Person, job_id: str) -> JobView:
        now = self._service.now()
        return await self._each(
            person,
            job_id,
            lambda r: (Held(now, r.waiting.job.id),) if r.waiting and r.state is State.QUEUED else None,
            "held: only a job that waits can be; requeue a running one first",
        )

    async def release(self, person: Person, job_id: str) -> JobView:
        now = self._service.now()
        self._check_not_kept_back(person, job_id, "released", self._service.fold.kept_back)
        return await self._each(
            person,
            job_id,
            lambda r: (Released(now, r.waiting.job.id),) if r.waiting and r.state is State.HELD else None,
            "released: it is not held",
        )

    async def requeue(self, person: Person, job_id: str) -> JobView:
        now, said = self._service.now(), f"requeued by {person.name}"

        def step(job: JobId, attempt: int) -> Step:
            return Evicting(now, job, attempt, said), Evict(job, attempt, said)

        living = _of_running(step, State.STARTING, State.RUNNING, State.SUSPENDED)
        return await self._each(person, job_id, living, "requeued: it is not running")

    async def suspend(self, person: Person, job_id: str) -> JobView:
        now = self._service.now()

        def step(job: JobId, attempt: int) -> Step:
            return Suspended(now, job, attempt), Suspend(job, attempt)

        return await self._each(
            person, job_id, _of_running(step, State.RUNNING), "suspended: it is not running"
        )

    async def resume(self, person: Person, job_id: str) -> JobView:
        now = self._service.now()
        self._check_not_kept_back(person, job_id, "resumed", self._service.fold.why_spent)

        def step(job: JobId, attempt: int) -> Step:
            return Resumed(now, job, attempt), Resume(job, attempt)

        return await self._each(
            person, job_id, _of_running(step, State.SUSPENDED), "resumed: it is not suspended"
        )

    async def report(self, person: Person, job_id: str, told: Sequence[Told]) -> JobView:
        """Measurements, not events; but whoever is answered may rely on it that they are kept."""
        self._check_store()
        running = [record.running for record in self._acted_on(person, job_id) if record.running is not None]
        if not running:
            raise IllegalTransition(f"job {job_id} can't be reported on: it is not running")
        for one in running:
            check_may_report(one)
        reports = self._service.reports
        if reports is not None and told:
            for one in running:
                reports.take(as_reports(told, one, self._service.now(), self._service.wall()))
        await self._service.durable()
        return self.view(job_id)

    def _check_not_kept_back(
        self, person: Person, job_id: str, what: str, why_not: Callable[[Job], str | None]
    ) -> None:
        """What is paused for a budget, or with its effort, goes on when that does, and not before."""
        for record in self._acted_on(person, job_id):
            entry = record.running or record.waiting
            why = None if entry is None else why_not(entry.job)
            if why is not None:
                raise IllegalTransition(f"job {job_id} can't be {what}: {why}")

    async def _each(
        self, person: Person, job_id: str, step: Callable[[Record], Step | None], cannot: str
    ) -> JobView:
        """The same for every member that it can be done to; an error if it can be done to none."""
        records = self._acted_on(person, job_id)
        if cannot != _STOPPED:
            _check_own(records, cannot)
        steps = [s for record in records if (s := step(record)) is not None]
        if not steps:
            raise IllegalTransition(f"job {job_id} can't be {cannot}")
        for event, *actions in steps:
            if event is not None:
                self._service.note(event, *actions)
            for action in actions if event is None else ():
                self._service.order(action)
        await self._service.durable()
        return self.view(job_id)

    def _acted_on(self, person: Person, job_id: str) -> list[Record]:
        records = self.found(job_id)
        for record in records:
            self._check_may_act(person, record)
        return records

    def _check_may_act(self, person: Person, record: Record) -> None:
        entry = record.running or record.waiting
        assert entry is not None
        job = entry.job
        if not may_act_on(person, job.owner, job.team, self._service.fold.tenancy, job.charter.owner):
            raise Forbidden(f"job {job.id} is {job.owner}'s; only they, a lead of their team or an admin may")

    # --- Looking ------------------------------------------------------------------------------------

    def found(self, job_id: str) -> list[Record]:
        """The records that an id speaks of: a job, an array, or some members of one. Ended ones raise."""
        records = members.living(self._service, job_id)
        if not records:
            view = self.view(job_id)
            raise IllegalTransition(f"job {job_id} has already ended ({view.outcome})")
        return records

    def view(self, job_id: str) -> JobView:
        """A job, an array, or some members of one, living or ended."""
        return members.view(self._service, job_id)


def _of_running(make: Callable[[JobId, int], Step], *states: State) -> Callable[[Record], Step | None]:
    """A step for jobs that have seats and are in one of these states."""

    def step(record: Record) -> Step | None:
        running = record.running
        if running is None or running.behind is not None or running.state not in states:
            return None
        return make(running.job.id, running.attempt)

    return step


def _check_own(records: Sequence[Record], cannot: str) -> None:
    """What others submitted to another queue can be stopped, and nothing else."""
    for record in records:
        entry = record.running or record.waiting
        if entry is not None and entry.job.adopted is not None:
            verb, engine = cannot.partition(":")[0], entry.job.adopted.capitalize()
            raise IllegalTransition(
                f"job {entry.job.id} can't be {verb} here: it is in {engine}'s queue, so have it done there"
            )


class Entry(msgspec.Struct, frozen=True):
    """What will be noted for a submission."""

    job: Job
    event: Submitted | ArraySubmitted
    warnings: tuple[str, ...]
    members: int = 1
    judgement: Judgement = Judgement("off")

    @property
    def id(self) -> JobId:
        return self.job.id


def _run_as(user: str, job: Job) -> Job:
    if job.run is None or not user:
        return job
    return msgspec.structs.replace(job, run=msgspec.structs.replace(job.run, user=user))


def _remembering(gang: Gang, limits: Limits) -> Gang:
    """With the memory that a part gets which asks for none."""
    default, replace = limits.memory_default_bytes, msgspec.structs.replace
    if default is None or all(part.shape.memory_bytes for part in gang.parts):
        return gang
    parts = tuple(
        part if part.shape.memory_bytes else replace(part, shape=replace(part.shape, memory_bytes=default))
        for part in gang.parts
    )
    return replace(gang, parts=parts)


def _within(run: Run | None, limits: Limits) -> Run | None:
    """With a log no longer than allowed, and the grace of this place unless another was asked for."""
    if run is None:
        return None
    grace = limits.grace_seconds if run.grace_seconds == GRACE_SECONDS else run.grace_seconds
    return msgspec.structs.replace(run, log_bytes=min(run.log_bytes, limits.log_bytes), grace_seconds=grace)


def _key_of(environment: dict[str, str]) -> str:
    body = msgspec.json.encode(environment, order="sorted")
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _event(now: float, built: Built, job: Job) -> Submitted | ArraySubmitted:
    if not built.indices:
        return Submitted(now, job)
    return ArraySubmitted(now, job, built.indices, built.most_at_once, built.sweep)


def _user_of(person: Person) -> str:
    """The system user to run as: only root can become somebody else."""
    if os.geteuid() == 0:
        if person.uid is None:
            raise Forbidden(f"this machine has no user {person.name} to run jobs as")
        return person.name if person.uid != 0 else ""
    if person.uid == os.geteuid():
        return ""
    raise Forbidden(
        "this Muster does not run as root, so it can't run jobs as their owners, "
        "and takes jobs only from the user who started it"
    )
