"""The API's table of routes: what can be asked, and who answers."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from muster.application.request import ManyRequests, Request
from muster.model.errors import BadInput
from muster.model.job import JobId
from muster.model.state import State
from muster.server import answers, inventory, members
from muster.server.commands import Commands
from muster.server.errors import Forbidden, NotFound
from muster.server.http import Answered, Call, Handler, Route, Streamed
from muster.server.logs import (
    Source,
    followed,
    followed_together,
    lines_of,
    lines_together,
    offset_of_last,
)
from muster.server.narrowed import ANY, Narrowed
from muster.server.openapi import describe
from muster.server.people import may_read_log
from muster.server.prometheus import CONTENT_TYPE
from muster.server.scrape import Scrape
from muster.server.service import Service
from muster.server.stewardship.hindsight_routes import hindsight_on
from muster.server.told import ReportBody
from muster.server.told_over_time import MetricsQuery, told_over_time
from muster.server.use import Count, JobUseQuery, UseQuery, Using
from muster.server.when import When

_MOST_LISTED = 1000

Offset = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Days = Annotated[float, msgspec.Meta(gt=0, le=3650)]
Grace = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Sentence = Annotated[str, msgspec.Meta(max_length=500)]


class SubmitQuery(msgspec.Struct, forbid_unknown_fields=True):
    dry_run: bool = False


class JobsQuery(msgspec.Struct, forbid_unknown_fields=True):
    all: bool = False  # those that have ended, too
    mine: bool = False
    owner: str | None = None
    team: str | None = None
    effort: str | None = None
    state: State | None = None
    job: str | None = None  # only the jobs that this id speaks of, ended or not
    members: bool = False  # each member of an array by itself
    limit: Count = _MOST_LISTED  # 0: as many as there are


class AdviceQuery(msgspec.Struct, forbid_unknown_fields=True):
    owner: str | None = None
    mine: bool = False


class LogQuery(msgspec.Struct, forbid_unknown_fields=True):
    follow: bool = False
    offset: Offset = 0
    last_bytes: Offset | None = None  # from so long before its end on, instead
    attempt: Count | None = None
    part: Count = 0


class EventsQuery(msgspec.Struct, forbid_unknown_fields=True):
    job: str | None = None


class StopBody(msgspec.Struct, forbid_unknown_fields=True):
    because: Sentence = ""
    grace_seconds: Grace | None = None


class DrainBody(msgspec.Struct, forbid_unknown_fields=True):
    because: Annotated[Sentence, msgspec.Meta(min_length=1)]
    device: Count | None = None  # of its GPUs; None: all of the node


class ResumeBody(msgspec.Struct, forbid_unknown_fields=True):
    device: Count | None = None


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing to say."""


class TokenBody(msgspec.Struct, forbid_unknown_fields=True):
    user: Annotated[str, msgspec.Meta(max_length=64)]
    role: str = "user"
    days: Days = 90.0


class Routes:
    """The handlers. Each is a few lines: they ask, somebody else knows."""

    def __init__(
        self,
        service: Service,
        commands: Commands,
        when: When,
        home: "inventory.Place",
        steward: Iterable[Route] = (),
    ) -> None:
        self._service, self._commands, self._when, self._place = service, commands, when, home
        self._steward = tuple(steward)
        self._using = Using(service)
        self._scrape = Scrape(service)

    # --- Jobs ---------------------------------------------------------------------------------------

    async def submit(self, call: Call) -> answers.JobView | Answered:
        if call.query.dry_run:
            return Answered(200, await self.plan(call))
        return await self._commands.submit(call.person, call.body)

    async def submit_many(self, call: Call) -> answers.Submitted:
        entries = await self._commands.submit_many(call.person, call.body)
        said = dict.fromkeys(warning for entry in entries for warning in entry.warnings)
        return answers.Submitted([entry.id for entry in entries], list(said))

    async def plan(self, call: Call) -> answers.Forecast:
        entry = self._commands.built(call.person, call.body)
        return await self._when.forecast(entry.job)

    async def jobs(self, call: Call) -> answers.Jobs:
        q: JobsQuery = call.query
        if q.job is not None:
            return self._each_of(q.job, q.limit)
        owners = self._names(call.person.name if q.mine else q.owner)
        wanted = Narrowed(owners, q.team, q.effort, q.state)
        views, more = self._service.listed(
            q.limit or None, ended=q.all, members=q.members, wanted=ANY if wanted == ANY else wanted
        )
        return answers.Jobs(views, more)

    def _names(self, owner: str | None) -> frozenset[str] | None:
        return None if owner is None else frozenset(self._service.directory.all_names(owner))

    def _each_of(self, job_id: str, limit: int) -> answers.Jobs:
        """The jobs that an id speaks of, each by itself."""
        ids = members.each(self._service, job_id)
        shown = ids[: limit or None]
        return answers.Jobs([self._commands.view(one) for one in shown], len(ids) - len(shown))

    async def job(self, call: Call) -> answers.JobView:
        view = self._commands.view(call.path[0])
        if view.state is not State.ENDED and view.counts is None:
            view.limits = self._place.limits_of(view.id)
            view.efficiency = self._place.efficiency_of(view.id)
            view.measured = self._place.measured_by(view.id)
            if view.budget is not None:
                view.budget.used = await self._using.used_of(view.id, view.budget.text)
        elif view.counts is None:
            hindsight = await hindsight_on(self._service.journal, view)
            view = msgspec.structs.replace(view, hindsight=hindsight)
        return view

    async def advice(self, call: Call) -> answers.AdviceList:
        q: AdviceQuery = call.query
        return await self._place.advice(call.person.name if q.mine else q.owner)

    async def stop(self, call: Call) -> answers.JobView:
        body: StopBody = call.body
        return await self._commands.stop(call.person, call.path[0], body.because, body.grace_seconds)

    async def hold(self, call: Call) -> answers.JobView:
        return await self._commands.hold(call.person, call.path[0])

    async def release(self, call: Call) -> answers.JobView:
        return await self._commands.release(call.person, call.path[0])

    async def requeue(self, call: Call) -> answers.JobView:
        return await self._commands.requeue(call.person, call.path[0])

    async def suspend(self, call: Call) -> answers.JobView:
        return await self._commands.suspend(call.person, call.path[0])

    async def resume(self, call: Call) -> answers.JobView:
        return await self._commands.resume(call.person, call.path[0])

    async def report(self, call: Call) -> answers.JobView:
        body: ReportBody = call.body
        return await self._commands.report(call.person, call.path[0], body.told())

    async def metrics_of_job(self, call: Call) -> answers.JobMetrics:
        view = self._commands.view(call.path[0])
        if view.counts is not None:
            raise BadInput(f"{view.id} is an array; each member has its metrics, such as {view.id}_1")
        return await told_over_time(self._service, view.id, call.query)

    async def why(self, call: Call) -> answers.Why:
        view = self._commands.view(call.path[0])
        among = () if view.counts is None else members.living(self._service, call.path[0])
        return await self._when.why(view, among)

    async def log(self, call: Call) -> Streamed:
        q: LogQuery = call.query
        job_id = call.path[0]
        view = self._commands.view(job_id)
        if not may_read_log(call.person, view.owner, view.team, self._service.fold.tenancy, view.answers):
            raise Forbidden(f"the log of job {job_id} is {view.owner}'s")
        if view.adopted is not None:
            raise NotFound(
                f"job {job_id} was not started by Muster, which has no log of it; "
                f"see where it writes: scontrol show job {job_id[1:]}"
            )
        if view.counts is not None:
            return self._logs_of_many(job_id, q, view.parts)
        if q.attempt is not None and q.attempt > view.attempt:
            raise NotFound(f"job {job_id} has had {view.attempt} attempts; there is no log of a later one")
        log = self._source(job_id, q, view.parts)
        path = log.path()
        offset = q.offset if q.last_bytes is None else offset_of_last(path, q.last_bytes)
        if not q.follow:
            return Streamed(_TEXT, _empty() if path is None else lines_of(path, offset))
        return Streamed(_TEXT, followed(log, offset))

    def _logs_of_many(self, job_id: str, q: LogQuery, parts: int) -> Streamed:
        """Those of several members, one after the other, or as they come."""
        if q.offset or q.last_bytes is not None:
            raise BadInput(
                f"{job_id} is several jobs with a log each; an offset is one in the log of one job"
            )
        sources = [self._source(one, q, parts) for one in members.each(self._service, job_id)]
        return Streamed(_TEXT, followed_together(sources) if q.follow else lines_together(sources))

    def _source(self, job_id: JobId, q: LogQuery, parts: int) -> Source:
        service = self._service

        def path() -> Path | None:
            attempt = q.attempt or members.attempt_of(service, job_id)
            return self._place.log_path(job_id, attempt, q.part, parts) if attempt else None

        return Source(job_id, path, lambda: service.stream.is_closed or members.is_over(service, job_id))

    async def events(self, call: Call) -> Streamed:
        job_id = call.query.job
        only = None if job_id is None else frozenset(members.ids_in(job_id))
        return Streamed("text/event-stream", self._changes(only))

    async def _changes(self, only: frozenset[JobId] | None) -> AsyncIterator[bytes]:
        yield b": hello\n\n"
        async for changed in self._service.stream.changes(only):
            if not changed:
                yield b": still here\n\n"
            for job_id in changed:
                view = self._service.look_up(job_id)
                if view is not None:
                    yield b"event: job\ndata: " + msgspec.json.encode(view) + b"\n\n"

    # --- Use ----------------------------------------------------------------------------------------

    async def use(self, call: Call) -> answers.Use:
        return await self._using.summed(call.query, call.person.name)

    async def use_of_job(self, call: Call) -> answers.JobUse:
        view = self._commands.view(call.path[0])
        if view.counts is not None:
            raise BadInput(f"{view.id} is an array; each member has its use, such as {view.id}_1")
        return await self._using.of_job(view.id, call.query)

    # --- The rest -----------------------------------------------------------------------------------

    async def accuracy(self, _: Call) -> answers.Accuracy:
        return await self._when.accuracy()

    async def nodes(self, _: Call) -> answers.Nodes:
        return self._place.nodes()

    async def drain(self, call: Call) -> answers.NodeView:
        body: DrainBody = call.body
        return await self._place.drain(call.person, call.path[0], body.device, body.because)

    async def resume_node(self, call: Call) -> answers.NodeView:
        return await self._place.resume(call.person, call.path[0], call.body.device)

    async def teams(self, _: Call) -> answers.Teams:
        return self._place.teams()

    async def whoami(self, call: Call) -> answers.Whoami:
        person = call.person
        return answers.Whoami(person.name, person.role, list(person.teams or ()))

    async def health(self, _: Call) -> answers.Health:
        return self._place.health()

    async def token(self, call: Call) -> answers.Token:
        body: TokenBody = call.body
        return await self._place.new_token(call.person, body.user, body.role, body.days)

    async def down(self, call: Call) -> answers.Nothing:
        if call.person.role != "admin":
            raise Forbidden("only an admin may stop the server")
        self._place.stop_serving()
        return answers.Nothing()

    async def metrics(self, _: Call) -> Streamed:
        return Streamed(CONTENT_TYPE, _whole(await self._scrape.page()))

    async def openapi(self, _: Call) -> dict[str, object]:
        return describe(self.table())

    def table(self) -> list[Route]:
        jobs, rest = (*self._of_jobs(), *self._of_one_job()), (*self._of_nodes(), *self._of_the_place())
        return [*jobs, *self._steward, *rest]

    def _of_jobs(self) -> list[Route]:
        submitting = (403, 404, 413, 507)
        return [
            Route(
                "POST",
                f"{_V1}/jobs",
                self.submit,
                answers.JobView,
                "Submit a job, an array or a sweep.",
                query=SubmitQuery,
                body=Request,
                status=201,
                errors=submitting,
                besides=((200, answers.Forecast),),
            ),
            Route(
                "POST",
                f"{_V1}/submissions",
                self.submit_many,
                answers.Submitted,
                "Submit many at once: all of them, or none.",
                body=ManyRequests,
                status=201,
                errors=submitting,
            ),
            Route(
                "POST",
                f"{_V1}/plan",
                self.plan,
                answers.Forecast,
                "What would happen, changing nothing.",
                body=Request,
                errors=submitting,
            ),
            Route(
                "GET",
                f"{_V1}/jobs",
                self.jobs,
                answers.Jobs,
                "Jobs: running, waiting, ended.",
                query=JobsQuery,
            ),
            Route(
                "GET",
                f"{_V1}/events",
                self.events,
                "text/event-stream",
                "Changes of jobs.",
                query=EventsQuery,
            ),
            Route(
                "GET",
                f"{_V1}/advice",
                self.advice,
                answers.AdviceList,
                "Requests that are far from the truth.",
                query=AdviceQuery,
            ),
            Route("GET", f"{_V1}/accuracy", self.accuracy, answers.Accuracy, "How good past estimates were."),
            Route(
                "GET",
                f"{_V1}/use",
                self.use,
                answers.Use,
                "What was held and used, by whom.",
                query=UseQuery,
                errors=(507,),
            ),
        ]

    def _of_one_job(self) -> list[Route]:
        job, view = f"{_V1}/jobs/{{id}}", answers.JobView
        acts: tuple[tuple[str, Handler, type[msgspec.Struct], str], ...] = (
            ("stop", self.stop, StopBody, "End a job."),
            ("hold", self.hold, NoBody, "Keep a waiting job from starting."),
            ("release", self.release, NoBody, "Let a held job start."),
            ("requeue", self.requeue, NoBody, "Stop a running job and let it wait again."),
            ("suspend", self.suspend, NoBody, "Let a running job stand still; it keeps what it holds."),
            ("resume", self.resume, NoBody, "Let a suspended job go on."),
            ("report", self.report, ReportBody, "How it is doing."),
        )
        return [
            Route("GET", job, self.job, view, "A job or an array."),
            Route(
                "GET", f"{job}/log", self.log, "text/plain", "What it printed.", query=LogQuery, errors=(403,)
            ),
            Route("GET", f"{job}/why", self.why, answers.Why, "Why it waits, and when it will start."),
            Route(
                "GET",
                f"{job}/use",
                self.use_of_job,
                answers.JobUse,
                "What it used, over time.",
                query=JobUseQuery,
                errors=(507,),
            ),
            Route(
                "GET",
                f"{job}/metrics",
                self.metrics_of_job,
                answers.JobMetrics,
                "What it reported, over time.",
                query=MetricsQuery,
                errors=(507,),
            ),
            *(
                Route("POST", f"{job}/{verb}", handler, view, summary, body=body, errors=(403, 409, 507))
                for verb, handler, body, summary in acts
            ),
        ]

    def _of_nodes(self) -> list[Route]:
        node, view = f"{_V1}/nodes/{{id}}", answers.NodeView
        drain, resume = "Let nothing new start there; what runs goes on.", "Let jobs start there again."
        errors = (403, 409, 507)
        return [
            Route("GET", f"{_V1}/nodes", self.nodes, answers.Nodes, "The machines."),
            Route("POST", f"{node}/drain", self.drain, view, drain, body=DrainBody, errors=errors),
            Route("POST", f"{node}/resume", self.resume_node, view, resume, body=ResumeBody, errors=errors),
        ]

    def _of_the_place(self) -> list[Route]:
        a = answers
        return [
            Route("GET", f"{_V1}/teams", self.teams, a.Teams, "The teams."),
            Route("GET", f"{_V1}/whoami", self.whoami, a.Whoami, "Who you are here."),
            Route("GET", f"{_V1}/health", self.health, a.Health, "How the server is."),
            Route(
                "POST",
                f"{_V1}/tokens",
                self.token,
                a.Token,
                "Make a token.",
                body=TokenBody,
                status=201,
                errors=(403, 507),
            ),
            Route(
                "POST", f"{_V1}/down", self.down, a.Nothing, "Stop the server.", body=NoBody, errors=(403,)
            ),
            Route("GET", "/metrics", self.metrics, "text/plain", "Figures, as Prometheus reads them."),
            Route("GET", f"{_V1}/openapi.json", self.openapi, dict, "This description."),
        ]


_V1 = "/api/v1"
_TEXT = "text/plain; charset=utf-8"


async def _empty() -> AsyncIterator[bytes]:
    yield b""


async def _whole(page: bytes) -> AsyncIterator[bytes]:
    yield page
