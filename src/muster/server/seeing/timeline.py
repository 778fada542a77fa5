"""A Gantt chart as data: for each row, who had it from when to when. Pure.

What is shorter than the *resolution* can't be seen; such bars that lie next to each other are told as one,
with how many they are. The resolution is made coarser until all bars together are few enough to be drawn: so
a week of a large place is as long an answer as that of a small one. Bars that overlap, as on a node that
several share, get *lanes*, each the first that is free.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from muster.model.events import DeviceHealth, NodeHealth
from muster.model.job import JobId
from muster.model.node import Health, Node
from muster.model.units import show_count
from muster.server.seeing.time_answers import Bar, Kind

MOST_BARS = 4000
_FINEST = 1000  # parts of the interval
_LEAST_IN_A_ROW = 8


class Sat(NamedTuple):
    """Somebody sat, sits, or will sit somewhere."""

    job: JobId
    attempt: int
    owner: str
    team: str
    start: float
    end: float
    kind: Kind
    nodes: tuple[str, ...]
    devices: tuple[tuple[str, int], ...]
    how: str | None = None
    latest: float | None = None
    firm: bool = False


def rows_of(sat: Sat, by: str) -> Iterable[str]:
    """The rows that it is drawn in."""
    if by == "team":
        return (sat.team,)
    if by == "owner":
        return (sat.owner,)
    if by == "gpu":
        return [gpu_row(node, device) for node, device in sat.devices] or sat.nodes
    return sat.nodes


def gpu_row(node: str, device: int) -> str:
    return f"{node}/{device}"


def bars_by_row(
    stays: Iterable[Sat], rows: Mapping[str, object], by: str, since: float, until: float
) -> tuple[dict[str, list[Bar]], float]:
    """Of each row that is asked for its bars, cut to the interval and few enough; and the resolution."""
    found: dict[str, list[Bar]] = {}
    for sat in stays:
        start, end = max(sat.start, since), min(sat.end, until)
        if start > end or sat.start >= until or sat.end <= since:
            continue
        for row in rows_of(sat, by):
            if row in rows:
                bar = Bar(start, end, sat.kind, sat.job, sat.attempt, 0, sat.how, 1, sat.latest, sat.firm)
                found.setdefault(row, []).append(bar)
    return _few_enough(found, until - since)


def _few_enough(found: dict[str, list[Bar]], seconds: float) -> tuple[dict[str, list[Bar]], float]:
    """First what is short in the past is told together; then, of a row that has too many, the shortest."""
    resolution = seconds / _FINEST
    for bars in found.values():
        bars.sort(key=_by_start)
    living = sum(bar.kind is not Kind.PAST for bars in found.values() for bar in bars)
    most = max(MOST_BARS // 2, MOST_BARS - living) + living
    while True:
        merged = {row: list(merged_bars(bars, resolution)) for row, bars in found.items()}
        count = sum(map(len, merged.values()))
        if count <= most or resolution > seconds:
            break
        resolution *= max(2.0, math.sqrt(count / most))
    if count > MOST_BARS:
        each = max(_LEAST_IN_A_ROW, MOST_BARS // len(merged))
        merged = {row: longest(bars, each) for row, bars in merged.items()}
    return merged, resolution


def longest(bars: list[Bar], most: int) -> list[Bar]:
    """So many of a row; of each kind, all others as one."""
    if len(bars) <= most:
        return bars
    in_order = sorted(bars, key=lambda bar: bar.start - bar.end)
    kept = in_order[: max(0, most - len(Kind))]
    rest: dict[Kind, Bar] = {}
    for bar in in_order[len(kept) :]:
        one = rest.setdefault(bar.kind, Bar(bar.start, bar.end, bar.kind, count=0))
        one.start, one.end, one.count = (
            min(one.start, bar.start),
            max(one.end, bar.end),
            one.count + bar.count,
        )
    return [*kept, *rest.values()]


def _by_start(bar: Bar) -> tuple[float, float]:
    return (bar.start, bar.end)


def merged_bars(bars: Sequence[Bar], resolution: float) -> Iterator[Bar]:
    """Past ones that are too short to be seen, and no further apart, as one. They come in order."""
    short: Bar | None = None
    for bar in bars:
        if bar.kind is not Kind.PAST or bar.end - bar.start >= resolution:
            yield bar
        elif short is not None and bar.start - short.end < resolution:
            short.end, short.count = max(short.end, bar.end), short.count + 1
            short.kind, short.job, short.attempt, short.how = Kind.SHORT, None, 0, None
        else:
            if short is not None:
                yield short
            short = Bar(bar.start, bar.end, bar.kind, bar.job, bar.attempt, how=bar.how)
    if short is not None:
        yield short


def in_lanes(bars: list[Bar]) -> int:
    """Give each the first lane that is free; how many that takes."""
    bars.sort(key=_by_start)
    taken: list[tuple[float, int]] = []  # until when, and which
    free: list[int] = []
    lanes = 0
    for bar in bars:
        while taken and taken[0][0] <= bar.start:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            bar.lane = heapq.heappop(free)
        else:
            bar.lane, lanes = lanes, lanes + 1
        heapq.heappush(taken, (bar.end, bar.lane))
    return lanes


# --- Outages ---------------------------------------------------------------------------------------------


class Outage(NamedTuple):
    """A node, or one GPU of it, was out of service."""

    node: str
    device: int | None
    start: float
    end: float
    health: str
    because: str


def outages_of(
    events: Iterable[NodeHealth | DeviceHealth], nodes: Mapping[str, Node], now: float
) -> list[Outage]:
    """From when to when. Of what is out and of which nothing was heard, always until now."""
    found: list[Outage] = []
    out: dict[tuple[str, int | None], tuple[float, str, str]] = {}
    known: set[tuple[str, int | None]] = set()
    for event in events:
        key = (event.node, event.device if isinstance(event, DeviceHealth) else None)
        health = _health(event)
        before = out.pop(key, None) or (None if key in known else (-math.inf, "drained", ""))
        if before is not None and (health == Health.UP or before[0] > -math.inf):
            found.append(Outage(*key, before[0], event.at, *before[1:]))
        known.add(key)
        if health != Health.UP:
            out[key] = (event.at, health, event.because)
    for key, reason in _out_now(nodes):
        since, health, because = out.get(key, (-math.inf, *reason))
        found.append(Outage(*key, since, now, health, because))
    return found


def _health(event: NodeHealth | DeviceHealth) -> str:
    if isinstance(event, NodeHealth):
        return event.health.value
    return (Health.UP if event.healthy else Health.DRAINED).value


def _out_now(nodes: Mapping[str, Node]) -> Iterator[tuple[tuple[str, int | None], tuple[str, str]]]:
    for node in nodes.values():
        if node.health is not Health.UP:
            yield (node.name, None), (node.health.value, node.because)
        for number, device in enumerate(node.devices):
            if not device.healthy:
                yield (node.name, number), (Health.DRAINED.value, device.because)


def out_of_service(outages: Iterable[Outage]) -> str:
    """Whole nodes, and GPUs of nodes that are there."""
    out = {(one.node, one.device) for one in outages}
    nodes = {node for node, device in out if device is None}
    gpus = sum(node not in nodes for node, device in out if device is not None)
    said = [show_count(len(nodes), "node")] * bool(nodes)
    said += [show_count(gpus, "GPU") + " of others" * bool(nodes)] * bool(gpus)
    verb = "is" if len(nodes) + gpus == 1 else "are"
    return f" {' and '.join(said)} {verb} out of service." if said else ""


def outage_bars(
    outage: Outage, rows: Mapping[str, object], nodes: Mapping[str, Node], by: str
) -> Iterator[tuple[str, Bar]]:
    """In the rows of the node, or of its GPUs."""
    bar = Bar(outage.start, outage.end, Kind.OUT, how=outage.health, because=outage.because or None)
    if by == "node" and outage.device is None and outage.node in rows:
        yield outage.node, bar
    if by == "gpu":
        node = nodes.get(outage.node)
        every = range(len(node.devices)) if node is not None else ()
        for device in every if outage.device is None else (outage.device,):
            row = gpu_row(outage.node, device)
            if row in rows:
                yield row, Bar(bar.start, bar.end, bar.kind, how=bar.how, because=bar.because)
