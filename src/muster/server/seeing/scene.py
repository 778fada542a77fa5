"""The scene: what every GPU, node and rack does at one moment, by the ids of their boxes on the map.

A GPU *works* if it is held and used, by the rule by which the steward calls things idle; one whose use is not
measured counts as working, since a broken meter may exempt a job but never condemn one. What is drained and
still held shows what its job does. What the layout has and nobody sees is unknown, never free.

Values are shared between scenes: what has not changed is the same object, so that two are quickly compared.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from muster.layout.states import Doing, State
from muster.model.job import JobId
from muster.model.units import MILLI, show_count

_WORDS = {  # of one, and of many
    State.WORKING: ("works", "work"),
    State.IDLE: ("is held idle", "are held idle"),
    State.FREE: ("is free", "are free"),
    State.DOWN: ("is down", "are down"),
    State.DRAINED: ("is drained", "are drained"),
    State.UNKNOWN: ("is unknown", "are unknown"),
}


class Holder(msgspec.Struct, frozen=True):
    """A job as far as the map tells of it."""

    id: JobId
    name: str
    owner: str
    team: str
    effort: str | None
    purpose: str | None
    since: float  # when it got its seats, by the wall
    answers: str  # who answers for it
    undefended: bool = False

    def __str__(self) -> str:
        return f"{self.id} {self.name}, {self.owner}" if self.owner else f"{self.id} {self.name}"


class GpuNow(Doing, frozen=True):
    """One GPU now. ``share`` is a mean over the last minutes, in whole percent; the largest of its jobs."""

    held_milli: int = 0
    holders: tuple[Holder, ...] = ()  # several may have a part of it
    idle_since: float | None = None  # by the wall, as the steward has found; None: it has not


class Tally(msgspec.Struct, frozen=True):
    """GPUs by what they do, and the use of those that are held."""

    counts: tuple[int, ...] = (0,) * len(State)  # in the order of ``State``
    measured: int = 0  # held, and their use is known
    used: float = 0.0  # the sum of their shares
    undefended: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            tuple(map(sum, zip(self.counts, other.counts, strict=True))),
            self.measured + other.measured,
            self.used + other.used,
            self.undefended + other.undefended,
        )

    def of(self, state: State) -> int:
        return self.counts[_PLACE[state]]

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def share(self) -> float | None:
        """The mean use of what is held, as far as it is known."""
        return round(self.used / self.measured, 2) if self.measured else None

    def by_state(self) -> dict[State, int]:
        return dict(zip(STATES, self.counts, strict=True))


STATES = tuple(State)
_PLACE = {state: place for place, state in enumerate(STATES)}


class Counted(Protocol):
    """What is counted of a GPU."""

    @property
    def state(self) -> State: ...

    @property
    def share(self) -> float | None: ...

    @property
    def undefended(self) -> bool: ...


def tally_of(gpus: Iterable[Counted]) -> Tally:
    counts = [0] * len(STATES)
    measured, used, undefended = 0, 0.0, 0
    for gpu in gpus:
        counts[_PLACE[gpu.state]] += 1
        undefended += gpu.undefended
        if gpu.share is not None:
            measured, used = measured + 1, used + gpu.share
    return Tally(tuple(counts), measured, used, undefended)


class NodeNow(msgspec.Struct, frozen=True):
    """One node now. Of the jobs on it: what they hold, and what they use of it, in whole percent."""

    name: str
    state: State  # of all of it: one without GPUs can be drawn by it
    health: str | None  # None: the layout has it, and the engine does not know it
    because: str = ""
    cpus_milli: int | None = None
    cpus_held_milli: int = 0
    cpu_share: float | None = None  # of all that it has, used by jobs; None: not known of all of them
    memory_bytes: int | None = None
    memory_held_bytes: int = 0
    memory_share: float | None = None
    holders: tuple[Holder, ...] = ()
    tally: Tally = Tally()


class Scene(msgspec.Struct, frozen=True):
    """Everything on the map at one moment, by box: ``gpu_id``, ``node_id``, ``rack_id`` of the geometry."""

    at: float  # by the wall
    generation: int  # of the map
    gpus: Mapping[str, GpuNow]
    nodes: Mapping[str, NodeNow]
    racks: Mapping[str, Tally]
    tally: Tally = Tally()

    @property
    def counts(self) -> dict[State, int]:
        return self.tally.by_state()

    @property
    def sentence(self) -> str:
        return sentence(self.tally, list(self.nodes.values()))


def sentence(tally: Tally, nodes: list[NodeNow]) -> str:
    """``400 GPUs: 268 work, 61 are held idle, 52 are free.`` What has no GPUs is told by its cpus."""
    plain = [node for node in nodes if not node.tally.total]
    said = [_of_gpus(tally)] if tally.total else []
    said += [_of_cpus(plain)] if plain else []
    return " ".join(said) or "There is nothing on the map."


def _of_gpus(tally: Tally) -> str:
    parts = [f"{n:,} {_WORDS[state][n != 1]}" for state, n in tally.by_state().items() if n]
    return f"{tally.total:,} GPU{'s' * (tally.total != 1)}: {', '.join(parts)}."


def _few(amount: float) -> str:
    """As many digits as somebody reads: ``0.35``, ``7.2``, ``1,140``."""
    return f"{amount:,.0f}" if amount >= 10 else f"{amount:.2g}"


def _of_cpus(nodes: list[NodeNow]) -> str:
    head = f"{show_count(len(nodes), 'node')} without GPUs"
    known = [node for node in nodes if node.cpus_milli is not None]
    if not known:
        return f"{head}, of which nothing is known."
    total = sum(node.cpus_milli or 0 for node in known) / MILLI
    held = sum(node.cpus_held_milli for node in known) / MILLI
    shares = [(node.cpu_share, node.cpus_milli or 0) for node in known]
    used = sum(share * milli for share, milli in shares if share is not None) / MILLI
    measured = f", {_few(used)} used" if all(share is not None for share, _ in shares) else ""
    return f"{head}: {held:.10g} of {show_count(total, 'cpu')} {'is' if held == 1 else 'are'} held{measured}."
