"""The place that is managed: its nodes, its teams, and the server itself."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from muster import __version__
from muster.application.names import parse_name
from muster.engines.base import Grant
from muster.engines.local.logs import log_name
from muster.engines.slurm.hostlist import unfolded
from muster.home import Home
from muster.model.errors import BadInput, UnknownChoice
from muster.model.events import DeviceHealth, NodeHealth
from muster.model.job import JobId
from muster.model.node import Device, Node
from muster.model.resources import NOTHING, Resources
from muster.model.tenancy import Quota
from muster.model.units import DAY, MILLI
from muster.model.usage import GpuReading
from muster.server import answers
from muster.server.config_tables import Config
from muster.server.errors import Forbidden, NotFound
from muster.server.measured import measured_by
from muster.server.people import AGENT, Person, Role, new_token, token_hash
from muster.server.service import Service
from muster.server.upkeep import draining, resuming
from muster.steward.oversized import Oversized
from muster.store.rows import Token

SIMULATED = "sim"  # the engine of which nothing is real


class Place:
    """Answers about what there is."""

    def __init__(
        self, service: Service, config: Config, home: Home, store: str, stop_serving: Callable[[], None]
    ) -> None:
        self._service, self.config, self._home, self._store = service, config, home, store
        self.stop_serving = stop_serving
        self._since = time.monotonic()

    # --- Nodes and teams ----------------------------------------------------------------------------

    def nodes(self) -> answers.Nodes:
        fold = self._service.fold
        held: dict[str, Resources] = {}
        jobs: dict[str, set[JobId]] = {}
        for running in fold.running.values():
            for seat in running.seats:
                s = seat.shape
                part = Resources(
                    s.cpus_milli, s.memory_bytes, len(seat.devices) * seat.device_milli, s.disk_bytes
                )
                held[seat.node] = held.get(seat.node, NOTHING) + part
                jobs.setdefault(seat.node, set()).add(running.job.id)
        limits = [_grant(grant) for grant in self._service.engine.grants_here()]
        agents = self._agents()
        return answers.Nodes(
            [
                answers.NodeView(
                    name=node.name,
                    health=node.health.value,
                    reason=node.because or None,
                    cpus=node.cpus_milli / MILLI,
                    memory_bytes=node.memory_bytes,
                    disk_bytes=node.disk_bytes,
                    devices=self._devices(node),
                    held=_amounts(held.get(node.name, NOTHING)),
                    jobs=len(jobs.get(node.name, ())),
                    limits=limits,
                    agent=agents.get(node.name),
                )
                for node in fold.nodes.values()
            ]
        )

    def _agents(self) -> dict[str, answers.AgentView]:
        metering = self._service.metering
        said = {} if metering is None else metering.agents()
        ahead = self._service.fold.wall_ahead_seconds
        return {
            node: answers.AgentView(one.at + ahead, one.is_fresh, list(one.silent))
            for node, one in said.items()
        }

    def _devices(self, node: Node) -> list[answers.DeviceView]:
        metering = self._service.metering
        reading = None if metering is None else metering.readings().get(node.name)
        shown = {} if reading is None else {gpu.index: gpu for gpu in reading.gpus}
        return [_device(device, shown.get(g)) for g, device in enumerate(node.devices)]

    async def drain(self, person: Person, name: str, device: int | None, because: str) -> answers.NodeView:
        """Nothing new starts there; what runs goes on."""
        self._check_admin(person, "drain nodes")
        because = " ".join(because.split())
        if not because:
            raise BadInput("say why, for those who find it drained: because")
        service = self._service
        self._check_whole(device)
        event = draining(service.fold, service.now(), name, device, f"{person.name}: {because}")
        if service.shared is not None:
            await asyncio.to_thread(service.shared.drain, name, f"{person.name}: {because}")
        return await self._noted(event)

    async def resume(self, person: Person, name: str, device: int | None) -> answers.NodeView:
        """What was drained takes jobs again."""
        self._check_admin(person, "resume nodes")
        self._check_whole(device)
        event, shared = resuming(self._service.fold, self._service.now(), name, device), self._service.shared
        if shared is not None:
            await asyncio.to_thread(shared.undrain, name)
        return await self._noted(event)

    async def _noted(self, event: NodeHealth | DeviceHealth) -> answers.NodeView:
        self._service.note(event)
        await self._service.durable()
        return next(view for view in self.nodes().nodes if view.name == event.node)

    def _check_whole(self, device: int | None) -> None:
        if device is not None and self._service.shared is not None:
            raise BadInput("this cluster's own scheduler drains whole nodes; leave the GPU out")

    def _check_admin(self, person: Person, what: str) -> None:
        if person.role != "admin":
            raise Forbidden(f"only an admin may {what}")

    def teams(self) -> answers.Teams:
        fold = self._service.fold
        names = sorted(
            {*fold.teams, *(r.job.team for r in fold.running.values()), *(k.team for k in fold.lanes)}
        )
        return answers.Teams([self._team(name) for name in names])

    def _team(self, name: str) -> answers.TeamView:
        fold = self._service.fold
        team = fold.teams.get(name)
        running = [r for r in fold.running.values() if r.job.team == name]
        held = sum((r.held for r in running), NOTHING)
        waiting = sum(len(jobs) for key, jobs in fold.lanes.items() if key.team == name)
        waiting += sum(1 for w in fold.ineligible.values() if w.job.team == name)
        return answers.TeamView(
            name=name,
            parent=team.parent if team else "",
            weight=team.weight if team else 1.0,
            quota=_quota(team.quota if team else Quota()),
            held=_amounts(held),
            waiting=waiting,
            running=len(running),
            users=self.config.users_of(name),
        )

    # --- Jobs ---------------------------------------------------------------------------------------

    def limits_of(self, job_id: JobId) -> list[answers.Grant]:
        """What this job is limited to, and how firmly."""
        record = self._service.fold.records.get(job_id)
        entry = None if record is None else record.running or record.waiting
        return [] if entry is None else [_grant(g) for g in self._service.engine.grants(entry.job)]

    def efficiency_of(self, job_id: JobId) -> list[tuple[str, str]]:
        """How well a running job uses what it holds."""
        running, endings = self._service.fold.running.get(job_id), self._service.endings
        if running is None or endings is None:
            return []
        summary = endings.summary(running, self._service.now())
        return [] if summary is None else summary.lines()

    def measured_by(self, job_id: JobId) -> answers.MeasuredBy | None:
        """By what a running job is measured."""
        running, metering = self._service.fold.running.get(job_id), self._service.metering
        return None if running is None or metering is None else measured_by(metering, running)

    async def advice(self, owner: str | None) -> answers.AdviceList:
        """Looked for in a thread: there may be much history."""
        endings, now = self._service.endings, self._service.now()
        found = [] if endings is None else await asyncio.to_thread(endings.far_off, now, owner)
        return answers.AdviceList([_oversized(one) for one in found])

    def log_path(self, job_id: JobId, attempt: int, part: int, parts: int) -> Path:
        if part >= parts:
            raise NotFound(f"job {job_id} has {parts} parts, counted from 0; there is no part {part}")
        return self._home.logs / log_name(job_id, attempt, part, parts)

    # --- The server ---------------------------------------------------------------------------------

    def health(self) -> answers.Health:
        service = self._service
        return answers.Health(
            version=__version__,
            pid=os.getpid(),
            home=str(self._home.path),
            store=self._store,
            engine=service.engine.name,
            simulated=service.engine.name == SIMULATED,
            waiting=service.fold.waiting_count + len(service.handed_over()),
            running=service.fold.running_count - len(service.handed_over()),
            uptime_seconds=time.monotonic() - self._since,
            trouble=service.journal.sick or (service.post.trouble if service.post else None),
        )

    async def new_token(self, person: Person, user: str, role: str, days: float) -> answers.Token:
        self._check_admin(person, "make tokens")
        if role not in get_args(Role):
            raise UnknownChoice("role", role, list(get_args(Role)))
        if role == AGENT:
            unfolded(user)  # the nodes that it speaks for
        token = new_token()
        now = self._service.now()
        self._service.keep_token(Token(token_hash(token), parse_name(user), role, now, now + days * DAY))
        await self._service.durable()
        return answers.Token(token)


def _grant(grant: Grant) -> answers.Grant:
    return answers.Grant(grant.what, grant.amount, grant.how, grant.by)


def _oversized(one: Oversized) -> answers.Oversized:
    return answers.Oversized(
        owner=one.request.whose,
        name=one.request.kind,
        job=one.job,
        runs=one.runs,
        flags=one.advice.flags,
        because=one.advice.lines(),
        saved_cpu_seconds=one.saved.cpus_milli / MILLI,
        saved_memory_byte_seconds=float(one.saved.memory_bytes),
        text=str(one),
    )


def _device(device: Device, shown: GpuReading | None) -> answers.DeviceView:
    view = answers.DeviceView(device.model, device.memory_bytes, device.healthy, device.because or None)
    if shown is not None:
        view.busy, view.metric, view.memory_used_bytes = shown.busy, shown.metric, shown.memory_used_bytes
        view.power_watts, view.temperature_celsius = shown.power_watts, shown.temperature_celsius
        view.foreign = [
            answers.ForeignView(f.pid, f.user, f.command, f.memory_bytes) for f in shown.foreign or ()
        ]
    return view


def _amounts(held: Resources) -> answers.Amounts:
    return answers.Amounts(held.cpus_milli / MILLI, held.memory_bytes, held.gpus_milli / MILLI)


def _quota(quota: Quota) -> answers.QuotaView:
    return answers.QuotaView(
        gpus=None if quota.gpus_milli is None else quota.gpus_milli / MILLI,
        cpus=None if quota.cpus_milli is None else quota.cpus_milli / MILLI,
        memory_bytes=quota.memory_bytes,
    )
