"""One machine from near: its cpus and memory, each GPU, its jobs, and their processes."""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from muster.layout.geometry import Box, Level, gpu_id, node_id
from muster.layout.parts import UNPLACED, Gpu, Spot
from muster.layout.svg_marks import cell
from muster.model.errors import MusterError
from muster.model.units import MILLI, show_bytes
from muster.server.answers import JobView
from muster.server.answers_map import ProcessView
from muster.server.people import Person
from muster.server.seeing.scene import GpuNow, Holder, NodeNow
from muster.web.desk import Desk
from muster.web.where.scope import Scope

_MOST_JOBS = 12
_TILE = 28.0, 44.0


class GpuHere(msgspec.Struct, frozen=True):
    """A GPU. ``tile``: its cell, large."""

    gpu: Gpu
    now: GpuNow
    number: int  # of its box
    tile: str


class JobHere(msgspec.Struct, frozen=True):
    """A job on this machine. ``processes`` None: not known."""

    holder: Holder
    view: JobView | None
    processes: list[ProcessView] | None


class Meter(msgspec.Struct, frozen=True):
    """Held against used, of all that there is, in percent."""

    name: str
    words: str
    held: float
    used: float | None
    ticks: int = 0


class Machine(msgspec.Struct, frozen=True):
    """What the panel shows."""

    spot: Spot
    now: NodeNow
    number: int
    place: str
    meters: list[Meter]
    gpus: list[GpuHere]
    jobs: list[JobHere]
    further: int  # jobs that are not shown
    path: str  # of its actions


async def machine(
    desk: Desk, person: Person, scope: Scope, spot: Spot, numbers: Mapping[str, int]
) -> Machine:
    now = scope.scene.nodes[node_id(spot.name)]
    shown = now.holders[:_MOST_JOBS]
    jobs = await asyncio.gather(*(_job(desk, person, holder, spot.name) for holder in shown))
    return Machine(
        spot,
        now,
        numbers[node_id(spot.name)],
        _place(spot),
        _meters(now, _memory_used(now, jobs)),
        [_gpu(scope, spot, gpu, numbers) for gpu in spot.gpus],
        list(jobs),
        len(now.holders) - len(shown),
        f"nodes/{quote(spot.name, safe='')}",
    )


def _gpu(scope: Scope, spot: Spot, gpu: Gpu, numbers: Mapping[str, int]) -> GpuHere:
    known = gpu_id(spot.name, gpu.number)
    now, (w, h) = scope.scene.gpus[known], _TILE
    box = Box(f"tile-{known}", 0.5, 0.5, w, h, None, Level.GPU, spot.name, gpu.number)
    said = f' data-n="{numbers[known]}"' + (' data-undefended=""' if now.undefended else "")
    return GpuHere(gpu, now, numbers[known], cell(box, now, said, live=True))


async def _job(desk: Desk, person: Person, holder: Holder, node: str) -> JobHere:
    """A job that ends while it is looked at is shown as far as it is known."""
    try:
        view, where = await asyncio.gather(
            desk.get(person, f"/jobs/{quote(holder.id, safe='')}"),
            desk.get(person, f"/jobs/{quote(holder.id, safe='')}/where"),
        )
    except MusterError:
        return JobHere(holder, None, None)
    here = next((place for place in where.places if place.node == node), None)
    return JobHere(holder, view, None if here is None else here.processes)


def _place(spot: Spot) -> str:
    if spot.rack == UNPLACED:
        return ""
    return f"{spot.rack} · U{spot.at_u}" if spot.at_u is not None else spot.rack


def _memory_used(now: NodeNow, jobs: Sequence[JobHere]) -> float | None:
    """In bytes: exactly if all jobs are seen and are nowhere else, by the node's share otherwise."""
    seen = [job.view.used for job in jobs if job.view is not None and len(job.view.nodes) == 1]
    known = [used.memory_bytes for used in seen if used is not None and used.memory_bytes is not None]
    if len(known) == len(now.holders):
        return float(sum(known))
    return None if now.memory_share is None or not now.memory_bytes else now.memory_share * now.memory_bytes


def _meters(now: NodeNow, memory_used: float | None) -> list[Meter]:
    meters = []
    if now.cpus_milli:
        cpus, held = now.cpus_milli / MILLI, now.cpus_held_milli / MILLI
        used = None if now.cpu_share is None else now.cpu_share * cpus
        words = f"{held:g} of {cpus:g} held" + (
            f", {_short(used)} used" if used is not None else ", use not known"
        )
        meters.append(_meter("cpus", words, held / cpus, now.cpu_share, int(cpus) if cpus <= 128 else 0))
    if now.memory_bytes:
        total, held_bytes = now.memory_bytes, now.memory_held_bytes
        words = f"{show_bytes(held_bytes)} of {show_bytes(total)} held"
        words += ", use not known" if memory_used is None else f", {show_bytes(int(memory_used))} used"
        share = None if memory_used is None else memory_used / total
        meters.append(_meter("memory", words, held_bytes / total, share))
    return meters


def _meter(name: str, words: str, held: float, used: float | None, ticks: int = 0) -> Meter:
    return Meter(name, words, _percent(held), None if used is None else _percent(used), ticks)


def _short(cpus: float) -> str:
    return f"{cpus:,.0f}" if cpus >= 10 else f"{cpus:.2g}"


def _percent(share: float) -> float:
    return round(100 * min(1.0, max(0.0, share)), 1)
