"""What agents have told last, and what it says of attempts.

An attempt is read from agents if each of its nodes has one that spoke lately; otherwise Slurm is asked. An
agent that has not looked since the attempt began is waited for: the next look has it, and to go from one kind
of meter to the other and back costs an interval.

*Clocks.* A reading's moment is by a clock of the node's own. How far that is from ours is the least that lay
between sending and hearing: what was underway longest tells least. Clocks drift, so that is let go slowly.

*Devices.* Slurm counts a node's GPUs from 0, in the order of their device files; agents tell the number of
the file. Where one has a number that Slurm's count does not reach, Slurm leaves some out, and which of them
is which is not known.
"""

import enum
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from muster.model.usage import GpuShown, NodeReading, Reading
from muster.monitor.agents.merge import Merged, Place
from muster.monitor.agents.message import Heard, Told, check
from muster.monitor.meters.gather import Attended

_FRESH_PERIODS, _LEAST_FRESH_SECONDS = 3, 15.0
_COMES_WITHIN_SECONDS = 5.0  # after the start that Slurm tells: prologs run, and groups are made
_DRIFT = 1e-4  # what clocks may part in a second
_MOST_AGENTS = 1 << 16
Key = tuple[str, int]  # job and attempt


class Said(NamedTuple):
    """When the agent of a node spoke last, and which of its meters do not answer."""

    at: float
    is_fresh: bool  # otherwise it is no longer reckoned with
    silent: tuple[str, ...]


class Look(enum.Enum):
    """What agents say of an attempt, where that is no reading."""

    NOBODY = enum.auto()  # not all of its nodes have an agent that sees it
    LATER = enum.auto()  # they have, and will have looked the next time


class _Agent:
    """The last word of one agent."""

    def __init__(self, told: Told, arrived: float) -> None:
        self._ahead = arrived - told.since_boot_seconds
        self._hear(told, arrived)

    def hear(self, told: Told, arrived: float) -> None:
        ahead = arrived - told.since_boot_seconds
        if told.since_boot_seconds < self._sent:  # another boot, or another machine
            self._ahead = ahead
        else:
            self._ahead = min(ahead, self._ahead + _DRIFT * (arrived - self.heard))
        self._hear(told, arrived)

    def _hear(self, told: Told, arrived: float) -> None:
        self.told, self.heard, self._sent = told, arrived, told.since_boot_seconds
        self._readings = {int(reading.job): reading for reading in told.readings}

    def reading_of(self, number: int) -> Reading | None:
        return self._readings.get(number)

    def moment(self, reading: Reading | None) -> float:
        """When it was read, by our clock; of none, when that was told."""
        by_its_own = self._sent if reading is None else min(reading.since_boot_seconds, self._sent)
        return by_its_own + self._ahead


class _Seen(NamedTuple):
    """Of one place: what was told, and when that was, by our clock."""

    reading: Reading | None
    moment: float


class Board:
    """``devices``: how many GPUs Slurm counts in each node that it knows; ``now`` is the server's time."""

    def __init__(
        self,
        devices: Callable[[], Mapping[str, int]],
        now: Callable[[], float],
        period_seconds: float,
        boot: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._devices, self._now, self._boot = devices, now, boot
        self._period_seconds = period_seconds
        self._agents: dict[tuple[str, int | None], _Agent] = {}
        self._merged: dict[Key, Merged] = {}
        self._moments: dict[Key, float] = {}  # of the last reading
        self._begun: dict[Key, float] = {}  # when each began; Slurm's clock may be ahead of ours
        self._there: Mapping[str, set[int]] = {}  # by node, the jobs that were asked for last
        self._lock = threading.Lock()

    # --- Hearing ----------------------------------------------------------------------------------

    def hear(self, told: Told) -> Heard:
        """Take in what an agent tells. Of a node that is not known, nothing is kept."""
        check(told)
        arrived = self._boot()
        knows_node = told.node in self._devices()
        with self._lock:
            if knows_node:
                self._keep(told, arrived)
            there = self._there.get(told.node, set())
        taken = sum(int(reading.job) in there for reading in told.readings) if knows_node else 0
        return Heard(self._period_seconds, knows_node, taken, len(told.readings) - taken)

    def _keep(self, told: Told, arrived: float) -> None:
        who = (told.node, told.only)
        if who in self._agents:
            self._agents[who].hear(told, arrived)
            return
        kept = (w for w, agent in self._agents.items() if w[1] is None or self._is_fresh(agent, arrived))
        self._agents = {w: self._agents[w] for w in kept}  # jobs end, and nodes stay
        if len(self._agents) < _MOST_AGENTS:
            self._agents[who] = _Agent(told, arrived)

    def _is_fresh(self, agent: _Agent, boot: float) -> bool:
        period_seconds = max(self._period_seconds, agent.told.period_seconds)
        return boot - agent.heard <= max(_LEAST_FRESH_SECONDS, _FRESH_PERIODS * period_seconds)

    # --- Attempts ---------------------------------------------------------------------------------

    def read(
        self, attended: Sequence[Attended], numbers: Mapping[Key, Sequence[int]]
    ) -> dict[Key, Reading | Look]:
        """Of each attempt that Slurm has a number for."""
        asked = [one for one in attended if (one.job, one.attempt) in numbers]
        with self._lock:
            boot = self._boot()
            self._there = _there(asked, numbers)
            keys = {(one.job, one.attempt) for one in asked}
            self._merged = {key: merged for key, merged in self._merged.items() if key in keys}
            self._moments = {key: moment for key, moment in self._moments.items() if key in keys}
            self._begun = {key: begun for key, begun in self._begun.items() if key in keys}
            return {
                (one.job, one.attempt): self._read_one(one, numbers[one.job, one.attempt], boot)
                for one in asked
            }

    def _read_one(self, one: Attended, numbers: Sequence[int], boot: float) -> Reading | Look:
        key = (one.job, one.attempt)
        found = {(node, number): self._seen(node, number, boot) for node in one.nodes for number in numbers}
        seen = {place: what for place, what in found.items() if what is not None}
        if not seen or len(seen) < len(found):
            return Look.NOBODY
        begun = self._begun.setdefault(key, min(one.since or 0.0, self._now()))
        if any(self._at(what.moment, boot) < begun for what in seen.values()):
            return Look.LATER
        if key not in self._merged and all(what.reading is None for what in seen.values()):
            comes = any(self._at(what.moment, boot) < begun + _COMES_WITHIN_SECONDS for what in seen.values())
            return Look.LATER if comes else Look.NOBODY
        moment = sum(what.moment for what in seen.values()) / len(seen)
        if moment <= self._moments.get(key, -1.0):
            return Look.LATER
        self._moments[key] = moment
        merged = self._merged.setdefault(key, Merged(*key))
        shown: dict[Place, Reading | None] = {place: what.reading for place, what in seen.items()}
        reading = merged.read(shown, self._at(moment, boot), moment)
        return msgspec.structs.replace(reading, gpus=tuple(self._gpus(one, seen)))

    def _seen(self, node: str, number: int, boot: float) -> _Seen | None:
        """None: nobody there has looked lately. The agent of the whole node goes before one of the job."""
        found: _Seen | None = None
        for only in (None, number):
            agent = self._agents.get((node, only))
            if agent is not None and self._is_fresh(agent, boot):
                reading = agent.reading_of(number)
                if reading is not None:
                    return _Seen(reading, agent.moment(reading))
                found = found or _Seen(None, agent.moment(None))
        return found

    def _at(self, moment: float, boot: float) -> float:
        return self._now() - (boot - moment)

    # --- GPUs -------------------------------------------------------------------------------------

    def gpus_of(self, one: Attended, numbers: Sequence[int]) -> tuple[GpuShown, ...]:
        """What is told of its devices, in their order, by those of its nodes that have an agent."""
        with self._lock:
            boot = self._boot()
            found = {(node, n): self._seen(node, n, boot) for node in one.nodes for n in numbers}
            return tuple(self._gpus(one, {place: what for place, what in found.items() if what is not None}))

    def _gpus(self, one: Attended, seen: Mapping[Place, _Seen]) -> Iterator[GpuShown]:
        counts = self._devices()
        shown: dict[tuple[str, int], list[GpuShown]] = {}
        for (node, _), what in seen.items():
            told = () if what.reading is None else what.reading.gpus
            if all(gpu.device < counts.get(node, 0) for gpu in told):
                for gpu in told:
                    shown.setdefault((node, gpu.device), []).append(gpu)
        for node, device in zip(one.device_nodes, one.devices, strict=True):
            found = shown.get((node, device), [])
            yield found[0] if len(found) == 1 else _of_several(device, found)

    # --- Nodes ------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, NodeReading]:
        """Of those whose agent spoke lately, what it has read of the node itself; in the server's time."""
        with self._lock:
            boot, counts = self._boot(), self._devices()
            return {
                node: self._own(agent, counts.get(node, 0), boot)
                for (node, only), agent in self._agents.items()
                if only is None and self._is_fresh(agent, boot) and agent.told.own is not None
            }

    def _own(self, agent: _Agent, count: int, boot: float) -> NodeReading:
        own = agent.told.own
        assert own is not None
        gpus = own.gpus if all(gpu.index < count for gpu in own.gpus) else ()
        return msgspec.structs.replace(own, at=self._at(agent.moment(None), boot), gpus=gpus)

    def said(self) -> dict[str, Said]:
        """By node, when the agent of all of it spoke last, however long ago."""
        with self._lock:
            boot = self._boot()
            return {
                node: Said(self._at(agent.heard, boot), self._is_fresh(agent, boot), agent.told.silent)
                for (node, only), agent in self._agents.items()
                if only is None
            }

    def speaking(self, nodes: Sequence[str], numbers: Sequence[int]) -> int:
        """On how many of these nodes somebody looks at one of these jobs, or would see it."""
        with self._lock:
            boot = self._boot()
            return sum(any(self._seen(node, n, boot) is not None for n in numbers) for node in nodes)


def _there(asked: Sequence[Attended], numbers: Mapping[Key, Sequence[int]]) -> dict[str, set[int]]:
    there: dict[str, set[int]] = {}
    for one in asked:
        for node in one.nodes:
            there.setdefault(node, set()).update(numbers[one.job, one.attempt])
    return there


def _of_several(device: int, found: Sequence[GpuShown]) -> GpuShown:
    """Of an attempt that is several jobs of Slurm's on one node: each tells what it has there."""
    taken = [gpu.memory_bytes for gpu in found if gpu.memory_bytes is not None]
    busy = next((gpu.busy for gpu in found if gpu.busy is not None), None)
    return GpuShown(device, busy, sum(taken) if found and len(taken) == len(found) else None)
