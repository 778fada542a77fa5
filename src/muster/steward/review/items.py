"""What a review looks at: everything that consumed since the last one, as items somebody could defend.

A *consumer* is a job, or an array as one. Consumers become *items*, one for each subject: those of an effort
together; those outside of efforts that are the same work again (owner, kind of name, purpose) together; any
other by itself; and foreign processes by node and user. Each consumer is in exactly one item, so the items of
a review add up to the ledger.
"""

import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from muster.model.charter import Charter
from muster.model.job import JobId
from muster.model.review import of_foreign, of_work
from muster.model.stewardship import Defended, Effort, Subject, of_effort, of_job
from muster.model.units import MILLI
from muster.model.usage import Usage

Days = tuple[tuple[float, float], ...]  # GPU- and cpu-seconds held on each of the last days, the oldest first


class Kind(enum.StrEnum):
    DEFENDED = "defended"
    HABIT = "habit"
    FORGOTTEN = "forgotten"


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A job or an array that held something since the last review, or waits to."""

    job: JobId
    name: str
    owner: str  # who answers for it; empty: nobody
    submitter: str = ""  # empty: the same
    team: str = ""
    effort: str | None = None
    charter: Charter = Charter()
    is_limited: bool = False  # in time: that is an end, too
    is_spared: bool = False  # it was submitted elsewhere, and is not stopped from here
    submitted_at: float = 0.0
    running: int = 0  # members, of an array
    waiting: int = 0
    usage: Usage = Usage()
    days: Days = ()
    idle_since: float | None = None  # of all that runs of it; None: something is used, or that is not known

    @property
    def is_living(self) -> bool:
        return bool(self.running or self.waiting)

    @property
    def has_end(self) -> bool:
        return self.charter.has_end or self.is_limited

    @property
    def work(self) -> Subject:
        return of_work(self.submitter or self.owner, self.name, self.charter.purpose)


class Foreign(msgspec.Struct, frozen=True):
    """Processes of a user on the GPUs of a node that Muster has not started."""

    node: str
    user: str | None
    devices: tuple[int, ...]
    processes: int
    memory_bytes: int | None  # None: some of it is not known


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that is looked at. Dates are by the wall, all else is in steady time."""

    now: float
    wall: float
    consumers: tuple[Consumer, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    efforts: Mapping[str, Effort] = MappingProxyType({})
    defences: Mapping[Subject, Sequence[Defended]] = MappingProxyType({})
    before: Mapping[Subject, frozenset[JobId]] = MappingProxyType(
        {}
    )  # who did which work, one period earlier
    won: frozenset[Subject] = frozenset()  # work that has won, now or then
    away: frozenset[str] = frozenset()  # owners who are not there any more
    silent: frozenset[str] = frozenset()  # owners who were asked, and have not called for long
    budget_left: Mapping[Subject, float] = MappingProxyType({})  # the part of it, where it is known


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One subject, what is known of it, and what follows."""

    subject: Subject
    kind: Kind = Kind.FORGOTTEN
    because: str = ""  # it is of that kind
    name: str
    owner: str
    team: str = ""
    purpose: str | None = None
    consumers: tuple[Consumer, ...] = ()  # the latest first
    stops: tuple[JobId, ...] = ()  # what is stopped at the close, unless somebody defends it
    usage: Usage = Usage()
    days: Days = ()
    idle_seconds: float | None = None
    charter: Charter = Charter()
    budget_left: float | None = None
    defences: tuple[Defended, ...] = ()  # all of this subject, in order
    foreign: Foreign | None = None

    @property
    def running(self) -> int:
        return sum(one.running for one in self.consumers)

    @property
    def waiting(self) -> int:
        return sum(one.waiting for one in self.consumers)

    @property
    def is_undefended(self) -> bool:
        return self.kind is not Kind.DEFENDED

    @property
    def to_defend(self) -> str:
        """What ``muster defend`` is told: an effort's name, or the latest job that lives."""
        kind, _, name = self.subject.partition(":")
        living = next((one.job for one in self.consumers if one.is_living), "")
        return name if kind == "effort" else living

    @property
    def defended_as(self) -> Subject:
        """The subject of such a defence."""
        return self.subject if self.subject.startswith("effort:") else of_job(self.to_defend)

    @property
    def used_share(self) -> float | None:
        """Of its GPUs, or of its cpus if it held none, while they were measured; None: they were not."""
        measured, used = self.usage.measured, self.usage.used
        if self.usage.held.gpus_milli:
            return used.gpus_milli / measured.gpus_milli if measured.gpus_milli else None
        return used.cpus_milli / measured.cpus_milli if measured.cpus_milli else None

    @property
    def gpu_seconds(self) -> float:
        return self.usage.held.gpus_milli / MILLI

    @property
    def cpu_seconds(self) -> float:
        return self.usage.held.cpus_milli / MILLI

    def same_words(self) -> int:
        """How many of the last defences in a row gave the same reason."""
        said = [" ".join(one.because.lower().split()) for one in reversed(self.defences)]
        return next((n for n, words in enumerate(said) if words != said[0]), len(said))


def gathered(world: World) -> list[Item]:
    """Items without a kind, each consumer in one of them, in any order."""
    groups: dict[Subject, list[Consumer]] = {}
    for one in world.consumers:
        subject = of_effort(one.effort) if one.effort in world.efforts and one.effort else one.work
        groups.setdefault(subject, []).append(one)
    items = [_item(subject, some, world) for subject, some in groups.items()]
    return items + [_of_strangers(one) for one in world.foreign]


def submissions(item: Item, world: World) -> frozenset[JobId]:
    """Of the same work, in this period and the one before."""
    return world.before.get(item.subject, frozenset()) | {one.job for one in item.consumers}


def _item(subject: Subject, some: list[Consumer], world: World) -> Item:
    some = sorted(some, key=lambda one: (-one.submitted_at, one.job))
    first, is_effort = some[0], subject.startswith("effort:")
    effort = world.efforts[subject.partition(":")[2]] if is_effort else None
    alone = not is_effort and len(world.before.get(subject, frozenset()) | {one.job for one in some}) == 1
    subject = of_job(first.job) if alone else subject
    charter = effort.charter if effort is not None else first.charter
    return Item(
        subject=subject,
        name=effort.name if effort is not None else first.name,
        owner=effort.owner if effort is not None else first.owner,
        team=effort.team if effort is not None else first.team,
        purpose=charter.purpose,
        consumers=tuple(some),
        usage=sum((one.usage for one in some), Usage()),
        days=_added([one.days for one in some]),
        idle_seconds=_idle_seconds(some, world.now),
        charter=charter,
        budget_left=_budget_left(some, world) if effort is None else world.budget_left.get(subject),
        defences=tuple(world.defences.get(subject if effort is not None else first.work, ())),
    )


def _budget_left(some: list[Consumer], world: World) -> float | None:
    """The least of those that live."""
    each = (world.budget_left.get(of_job(one.job)) for one in some if one.is_living)
    return min((left for left in each if left is not None), default=None)


def _of_strangers(one: Foreign) -> Item:
    name = f"GPU {', '.join(map(str, one.devices))} of {one.node}"
    return Item(subject=of_foreign(one.node, one.user), name=name, owner=one.user or "", foreign=one)


def _added(some: list[Days]) -> Days:
    """Day by day; those that are not as long end with the same day."""
    length = max(map(len, some))
    padded = [((0.0, 0.0),) * (length - len(days)) + days for days in some]
    return tuple((sum(g for g, _ in day), sum(c for _, c in day)) for day in zip(*padded, strict=True))


def _idle_seconds(some: list[Consumer], now: float) -> float | None:
    """For how long all that runs has used nothing."""
    since = [one.idle_since for one in some if one.running]
    known = [at for at in since if at is not None]
    return now - max(known) if known and len(known) == len(since) else None
