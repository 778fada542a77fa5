"""The engine protocol: four verbs between Muster and whatever runs the jobs.

``observe`` gives facts as events; ``act`` carries out one action of a plan. Acting is idempotent by
(job, attempt): an action that was carried out already, or that speaks of an attempt which is over,
does nothing. An engine never decides: what it can't do, its capabilities say beforehand.

The life of an attempt, as the engine tells it:

- ``Seated`` before that, if it sits elsewhere than was decided, or later, or if nobody decided where.
- ``Started`` once, unless it ended before; then ``Exited`` or ``Vacated`` once, and nothing more.
- ``Exited`` ends the job. ``Vacated`` (it was evicted, or a node it sat on was lost) ends only the
  attempt: the job can be started again, under a higher number. Of what the attempt took from its
  start, ``lost_seconds`` is the part that is of no use to the next one.
- A job has one attempt at a time: until it is over, the start of another does nothing.
- A stop overrules an eviction, whichever came first.
- With ``lines_up``, a ``Start`` may name an attempt that it comes *behind*: it starts when that one is over,
  at once if it is already. Until it has started it can be recalled: ``StoodDown``, as if it had never been
  ordered. One that is stopped or evicted in the line is over without having started.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from muster.model.events import Event
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.plan import Action
from muster.model.state import State


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine can do."""

    evicts: bool = True
    shares_gpus: bool = True
    gangs: bool = True
    virtual_time: bool = False  # time passes only in ``observe``
    places: bool = True  # Muster says where; if not, the engine finds the seats and tells by ``Seated``
    lines_up: bool = False  # a start may name whom it comes behind: it waits until that attempt has left
    starts: bool = True  # if not, it only observes: there is nothing to decide


class Engine(Protocol):
    """Anything that runs jobs on nodes. ``muster.engines.check`` tells whether it does it well."""

    @property
    def capabilities(self) -> Capabilities: ...

    def now(self) -> float:
        """The engine's time, in seconds. Never goes back."""
        ...

    def nodes(self) -> Sequence[Node]:
        """The inventory as it is now."""
        ...

    def observe(self, until: float | None = None) -> Sequence[Event]:
        """Wait until something has happened, at most until ``until``; return what, in time order.

        An empty answer means that ``until`` was reached or, without a bound, that nothing is left
        to wait for. A bound in the past returns at once.
        """
        ...

    def act(self, action: Action) -> None:
        """Carry out an action. Returns at once; what comes of it is observed.

        A job that the engine does not know is refused with a ``MusterError``; nothing changes.
        """
        ...


Key = tuple[JobId, int]  # a job and one of its attempts


class Grant(msgspec.Struct, frozen=True):
    """A limit of each part, in base units (cpus, bytes, seconds, processes, GPUs): enforced, or advisory."""

    what: str
    amount: float
    how: str
    by: str


class Host(Engine, Protocol):
    """What a server needs of an engine beyond that: to be woken by it, and to find things after a crash."""

    @property
    def name(self) -> str:
        """As people call it: local, slurm, sim."""
        ...

    def fileno(self) -> int:
        """Readable when ``observe`` has something to do at once."""
        ...

    def wall_ahead_seconds(self) -> float:
        """By how much the clock that people know is ahead of ``now``."""
        ...

    def running(self) -> set[Key]:
        """The attempts that it has, or was ordered to have."""
        ...

    def settle(self, attempts: Sequence[Key]) -> None:
        """The ends of these attempts are safe in the journal: they need not be told again."""
        ...

    def flush(self) -> None:
        """All of a turn's actions were given: send them."""
        ...

    def locate(self, attempts: Sequence[Key]) -> Mapping[Key, list[dict[str, Any]]]:
        """Where the parts of these attempts are, as its meters understand it; of those that it knows."""
        ...

    def grants(self, job: Job) -> tuple[Grant, ...]:
        """What of a job's limits is enforced, and what is advisory."""
        ...

    def grants_here(self) -> tuple[Grant, ...]:
        """How each thing would be granted here. The amounts say nothing."""
        ...

    def close(self) -> None:
        """Leave; jobs go on."""
        ...


class Known(msgspec.Struct, frozen=True):
    """What was written down of a job that was adopted and has not ended."""

    job: Job
    state: State
    attempt: int
    since: float  # it sits, or waits again


@runtime_checkable
class Shared(Protocol):
    """A host that is not Muster's alone: it has a queue and users of its own, whose jobs are adopted."""

    def knows(
        self,
        jobs: Sequence[Known],
        nodes: Sequence[Node],
        used: Callable[[Collection[JobId]], Collection[JobId]],
    ) -> None:
        """What was written down so far. Once, before anything else; facts are told from there on.

        ``used`` says which of some ids were ever given to a job or an array; it can be asked in any thread.
        """
        ...

    def takes_jobs(self) -> str | None:
        """None if jobs can be handed to it, or a sentence why not."""
        ...

    def cant_run(self, job: Job) -> str | None:
        """None if it has a way to run such a job, whether there is room or not; or a sentence why not."""
        ...

    def waits_because(self, job: JobId) -> str | None:
        """Why a job waits in its queue, adopted or handed over, in words; None: it does not say."""
        ...

    def out_of_reach(self, job: Job) -> str | None:
        """None if it would let us stop this job, which is in its queue or runs; or a sentence why not."""
        ...

    def drain(self, node: str, because: str) -> None:
        """Let nothing new start on a node. Blocks; raises what is in the way."""
        ...

    def undrain(self, node: str) -> None:
        """Let a node take jobs again. Blocks; raises what is in the way."""
        ...
