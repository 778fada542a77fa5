"""What ``muster.toml`` says, as frozen values in base units. Every default is what holds without a file."""

from collections.abc import Mapping
from datetime import date

import msgspec

from muster.engines.slurm.settings import Mode
from muster.model.errors import BadInput
from muster.model.node import Device, Node
from muster.model.policy import Policy, preset, tuned
from muster.model.run import GRACE_SECONDS, LOG_BYTES
from muster.model.tenancy import ROOT, Quota, Team
from muster.model.units import MINUTE
from muster.monitor.rates import PERIOD_SECONDS
from muster.server.config_post import Attention, Channel
from muster.server.config_values import HERE, Address
from muster.steward.budget import Budget, BudgetRules, Prices
from muster.steward.exits.replay import STALLED_SECONDS
from muster.steward.mend import MendRules
from muster.steward.passing import Require
from muster.steward.review.rules import ReviewRules
from muster.steward.rules import Rules as FindingRules
from muster.store.rows import Retention


class Server(msgspec.Struct, frozen=True):
    name: str | None = None  # None: the machine's
    address: Address | None = HERE  # where HTTP is served; None: on the Unix socket only
    store: str | None = None  # None: SQLite, in Muster's home
    remembers: int = 20_000  # ended jobs kept at hand


class Rules(msgspec.Struct, frozen=True):
    """How to decide: a preset, and knobs as text."""

    preset: str = "fair"
    knobs: tuple[tuple[str, str], ...] = ()


class Machine(msgspec.Struct, frozen=True):
    """What to make of the machine that was found. None: what was found."""

    reserve_cpus_milli: int = 0
    reserve_memory_bytes: int = 0
    cpus_milli: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    gpu_model: str = "gpu"
    gpu_memory_bytes: int | None = None
    labels: tuple[str, ...] = ()
    layout: str | None = None  # the file that says where it stands; None: the one in Muster's home, if any

    def applied_to(self, found: Node) -> Node:
        cpus_milli = found.cpus_milli if self.cpus_milli is None else self.cpus_milli
        memory_bytes = found.memory_bytes if self.memory_bytes is None else self.memory_bytes
        if self.reserve_cpus_milli >= cpus_milli or self.reserve_memory_bytes >= memory_bytes:
            raise BadInput(f"what [node] reserves leaves no cpu or no memory of {found.name} for jobs")
        return msgspec.structs.replace(
            found,
            cpus_milli=cpus_milli - self.reserve_cpus_milli,
            memory_bytes=memory_bytes - self.reserve_memory_bytes,
            devices=found.devices if self.gpus is None else (self._device,) * self.gpus,
            labels=found.labels | set(self.labels),
        )

    @property
    def _device(self) -> Device:
        return Device(self.gpu_model, self.gpu_memory_bytes)


class Limits(msgspec.Struct, frozen=True):
    """What one user may have at most, and what a job gets that asks for nothing. None: no limit."""

    jobs_waiting: int = 1_000_000
    array_members: int = 100_000
    time_default_seconds: float | None = None
    time_most_seconds: float | None = None
    memory_default_bytes: int | None = None
    log_bytes: int = LOG_BYTES
    grace_seconds: float = GRACE_SECONDS


class Monitor(msgspec.Struct, frozen=True):
    """How often is looked, for how long what was seen is kept, and who may be asked for metrics."""

    period_seconds: float = PERIOD_SECONDS
    retention: Retention = Retention()
    mlflow_hosts: tuple[str, ...] = ()  # besides this machine
    hindsight_seconds: float = STALLED_SECONDS  # without exits: nothing got better for so long at least


class TeamTable(msgspec.Struct, frozen=True):
    """A team, and who belongs to it. ``users`` None: as the team above says, and at the top everybody."""

    parent: str = ROOT
    quota: Quota = Quota()
    weight: float = 1.0
    borrow: Quota | None = None
    lend: Quota | None = None
    users: tuple[str, ...] | None = None
    leads: tuple[str, ...] = ()
    require: Require | None = None  # None: as the team above says, and at the top ``[charter]``
    budget: Budget | None = None  # of it and the teams below

    def members(self) -> tuple[str, ...]:
        return (*(self.users or ()), *self.leads)


class UserTable(msgspec.Struct, frozen=True):
    role: str = "user"
    team: str | None = None  # None: the one that lists the user
    limits: Limits | None = None  # None: those of everybody
    was: tuple[str, ...] = ()  # names that they had before
    left: bool | date = False  # whether they are gone, or since which day
    email: str | None = None
    channels: tuple[str, ...] | None = None  # None: those of everybody


class EngineTable(msgspec.Struct, frozen=True):
    """What runs the jobs."""

    kind: str = "local"  # or slurm


class SlurmTable(msgspec.Struct, frozen=True):
    """How Muster stands to a cluster that Slurm runs."""

    decide: Mode = "govern"  # Slurm schedules, Muster lets go; ``place``: Muster chooses node and time
    observe: bool = False  # look, and change nothing there
    stop_adopted: bool = False  # whether the steward may stop what others submitted
    conf: str | None = None  # SLURM_CONF; None: as the environment or the installation says
    rest: str | None = None  # where slurmrestd is; None: by Slurm's commands
    rest_token: str | None = None  # the file with a token for it; None: SLURM_JWT, or none
    partition: str | None = None  # None: the cluster's default, or one that has the nodes chosen
    account: str | None = None
    qos: str | None = None
    options: tuple[str, ...] = ()  # for sbatch, before Muster's own
    soon_seconds: float = MINUTE  # in ``place``: what Slurm has not started by then is taken back
    period_seconds: float = 5.0  # between two looks
    limit_seconds: float = MINUTE  # that a command of Slurm's may take


class CharterTable(msgspec.Struct, frozen=True):
    """What a job must bring: an owner, a purpose and an end."""

    require: Require = "warn"


class Config(msgspec.Struct, frozen=True):
    """All of it. ``rules`` is the table ``[policy]``, the others are called as their tables."""

    server: Server = Server()
    rules: Rules = Rules()
    node: Machine = Machine()
    limits: Limits = Limits()
    monitor: Monitor = Monitor()
    findings: FindingRules = FindingRules()
    mend: MendRules = MendRules(tries=2)
    prices: Prices = Prices()
    budgets: BudgetRules = BudgetRules()
    team: Mapping[str, TeamTable] = {}
    user: Mapping[str, UserTable] = {}
    charter: CharterTable = CharterTable()
    attention: Attention = Attention()
    channel: Mapping[str, Channel] = {}
    review: ReviewRules = ReviewRules()
    engine: EngineTable = EngineTable()
    slurm: SlurmTable = SlurmTable()

    def policy(self) -> Policy:
        return tuned(preset(self.rules.preset), dict(self.rules.knobs))

    def teams(self) -> tuple[Team, ...]:
        """Parents before their children, so they can be set one after the other."""
        order = sorted(self.team, key=lambda name: (len(self.above(name)), name))
        return tuple(_team(name, self.team[name]) for name in order)

    def above(self, team: str) -> tuple[str, ...]:
        """The team and those above it, up to but without the root."""
        path: tuple[str, ...] = ()
        while team in self.team and team not in path:
            path, team = (*path, team), self.team[team].parent
        return path

    def require_of(self, team: str) -> Require:
        """How much of a charter the team's jobs need: the nearest team above that says so counts."""
        said = (self.team[name].require for name in self.above(team))
        return next((require for require in said if require is not None), self.charter.require)

    def limits_of(self, user: str) -> Limits:
        return self.user.get(user, UserTable()).limits or self.limits

    def teams_of(self, user: str) -> tuple[str, ...]:
        """The teams that the user belongs to."""
        own = self.user.get(user, UserTable()).team
        return tuple(name for name, team in self.team.items() if name == own or user in team.members())

    def channels_of(self, user: str) -> tuple[str, ...]:
        """Where they are written to; an e-mail needs an address."""
        written = self.user.get(user, UserTable())
        chosen = self.attention.channels if written.channels is None else written.channels
        return tuple(n for n in chosen if self.channel[n].kind != "email" or written.email is not None)

    def users_of(self, team: str) -> list[str]:
        """Who belongs to the team, as far as it is written down."""
        listed = self.team[team].members() if team in self.team else ()
        own = (name for name, user in self.user.items() if user.team == team)
        return sorted({*listed, *own})


def _team(name: str, written: TeamTable) -> Team:
    return Team(name, written.parent, written.quota, written.weight, written.borrow, written.lend)
