"""Where a job is: its nodes, racks, GPUs and processes, in a sentence, as data, and as a small drawing."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from muster.engines.base import Key
from muster.layout.geometry import gpu_id
from muster.layout.parts import UNPLACED, Gpu, Layout
from muster.layout.ranges import fold, fold_numbers
from muster.layout.states import LOOKS
from muster.layout.terminal import draw
from muster.layout.words import printable
from muster.model.ledger import devices_of
from muster.model.snapshot import Running
from muster.model.state import State
from muster.model.units import MILLI, show_count
from muster.monitor.meters.parts import PartSeen
from muster.server import members
from muster.server.answers import JobView
from muster.server.answers_map import PlaceGpu, PlaceView, ProcessView, Where
from muster.server.seeing.places import Map
from muster.server.seeing.processes import parts_seen
from muster.server.seeing.saying import sentence
from muster.server.seeing.scene import Scene
from muster.server.seeing.seeing import Seeing
from muster.server.service import Service
from muster.store.records import Record

OWN = "●"  # a GPU of the job that is asked for
_MOST_RACKS = 8  # that are drawn
_LOCATES_SECONDS = 0.1  # what it takes an engine to find a part that nobody has asked for
_VERBS = {
    State.STARTING: "is starting",
    State.RUNNING: "runs",
    State.SUSPENDED: "is suspended",
    State.STOPPING: "is stopping",
}

Located = Mapping[Key, list[PartSeen]]


class Look(Protocol):
    """Finds the processes of parts; None: they are not known."""

    def __call__(self, attempts: Located, *, gpus: bool) -> list[ProcessView] | None: ...


class Whereabouts:
    """Answers where jobs are."""

    def __init__(self, service: Service, seeing: Seeing, look: Look) -> None:
        self._service, self._seeing, self.look = service, seeing, look

    async def of(self, job_id: str) -> Where:
        view = members.view(self._service, job_id)
        records = [] if view.state is State.ENDED else members.living(self._service, job_id)
        running = [r.running for r in records if r.running is not None and r.running.behind is None]
        if not running:
            return self._absent(view, records)
        places = [self._place(node, running) for node in _nodes(running)]
        await self._find_processes(places, running)
        # While processes were looked for, the map may have become another.
        here, scene = self._seeing.now()
        own = {(one.node, one.device) for r in running for one in devices_of(r.seats)}
        return Where(
            view.id,
            view.name,
            view.state,
            sentence(_head(view, running), places),
            places,
            drawing(here, scene, [place.node for place in places], own),
        )

    # --- Where it runs --------------------------------------------------------------------------------

    def _place(self, node: str, running: Sequence[Running]) -> PlaceView:
        here, scene = self._seeing.now()
        spot, seats = here.spots.get(node), [s for r in running for s in r.seats if s.node == node]
        rack = None if spot is None else here.racks.get(spot.rack)
        is_placed = rack is not None and rack.name != UNPLACED
        numbers = {} if spot is None else {gpu.device: gpu for gpu in spot.gpus if gpu.seen is not False}
        held = devices_of(seats)
        return PlaceView(
            node=node,
            rack=rack.name if rack is not None and is_placed else None,
            room=rack.room if rack is not None else None,
            row=rack.row if rack is not None else None,
            at_u=None if spot is None else spot.at_u,
            cpus=sum(seat.shape.cpus_milli for seat in seats) / MILLI,
            memory_bytes=sum(seat.shape.memory_bytes for seat in seats),
            gpus=[_gpu(node, numbers.get(one.device, Gpu(one.device)), one.milli, scene) for one in held],
        )

    async def _find_processes(self, places: Sequence[PlaceView], running: Sequence[Running]) -> None:
        located = await self._located(running)
        for place in places:
            parts = _parts_on(place.node, running, located)
            if parts is not None:
                place.processes = await asyncio.to_thread(self.look, parts, gpus=bool(place.gpus))

    async def _located(self, running: Sequence[Running]) -> Located:
        keys = [(one.job.id, one.attempt) for one in running]
        located = self._service.engine.locate(keys)
        if len(located) < len(keys):
            await asyncio.sleep(_LOCATES_SECONDS)
            located = self._service.engine.locate(keys)
        return {key: parts_seen(parts) for key, parts in located.items()}

    # --- Where it does not ----------------------------------------------------------------------------

    def _absent(self, view: JobView, records: Sequence[Record]) -> Where:
        nodes, said = self._expected(view, records)
        here, scene = self._seeing.now()
        return Where(view.id, view.name, view.state, said, [], drawing(here, scene, nodes, ()))

    def _expected(self, view: JobView, records: Sequence[Record]) -> tuple[list[str], str]:
        """Where it was, or is likely to be; and why it is nowhere now."""
        called = _called(view)
        if view.state is State.ENDED:
            if view.counts is not None:
                return [], f"{called} has ended; ask about one of its jobs to see where it ran."
            if not view.nodes:
                return [], f"{called} has ended, and never ran."
            which = f"GPU{'s' * (len(view.devices) > 1)} {fold_numbers(view.devices)} of " * bool(
                view.devices
            )
            return view.nodes, f"{called} has ended; it last ran on {which}{printable(fold(view.nodes))}."
        why = f"{called} does not run: {view.reason}." if view.reason else f"{called} does not run."
        first = records[0] if records else None
        if first is not None and first.running is not None:  # it is lined up
            nodes = _nodes([first.running])
            return nodes, f"{why} These are on {printable(fold(nodes))}."
        promised = self._service.fold.promised_nodes(first.waiting.job.id) if first and first.waiting else ()
        if promised:
            return list(promised), f"{why} It was promised room on {printable(fold(promised))}."
        return [], why


def drawing(here: Map, scene: Scene, nodes: Collection[str], own: Collection[tuple[str, int]]) -> list[str]:
    """The racks of these nodes, which are marked, and so are the GPUs of its own."""
    spots = [here.spots[node] for node in nodes if node in here.spots]
    names = dict.fromkeys(spot.rack for spot in spots)
    drawn = set(list(names)[:_MOST_RACKS])
    layout = Layout(
        here.layout.site,
        tuple(rack for rack in here.layout.racks if rack.name in drawn),
        tuple(spot for spot in here.layout.spots if spot.rack in drawn),
    )
    boxes = {here.box_of[one] for one in own if one in here.box_of}

    def glyph(node: str, number: int) -> str:
        box = gpu_id(node, number)
        return OWN if box in boxes else LOOKS[scene.gpus[box].state].glyph

    lines, more = draw(layout, glyph, marked=set(nodes)), len(names) - len(drawn)
    return [*lines, f"… and {show_count(more, 'rack')} more"] if more else lines


def _gpu(node: str, gpu: Gpu, milli: int, scene: Scene) -> PlaceGpu:
    now = scene.gpus.get(gpu_id(node, gpu.number))
    share = None if now is None else now.share
    return PlaceGpu(gpu.number, gpu.model, gpu.numa, share, milli / MILLI)


def _parts_on(node: str, running: Sequence[Running], located: Located) -> Located | None:
    """Of each attempt the parts that sit there; None: the engine does not tell of all of them."""
    found: dict[Key, list[PartSeen]] = {}
    for one in running:
        if all(seat.node != node for seat in one.seats):
            continue
        parts = located.get((one.job.id, one.attempt), [])
        if len(parts) != len(one.seats):
            return None
        there = [part for part, seat in zip(parts, one.seats, strict=True) if seat.node == node]
        found[one.job.id, one.attempt] = there
    return found


def _nodes(running: Sequence[Running]) -> list[str]:
    return list(dict.fromkeys(seat.node for one in running for seat in one.seats))


def _called(view: JobView) -> str:
    return printable(f"{view.id} {view.name}")


def _head(view: JobView, running: Sequence[Running]) -> str:
    if view.counts is None:
        return f"{_called(view)} {_VERBS[view.state]}"
    return f"{show_count(len(running), 'job')} of {_called(view)} {'is' if len(running) == 1 else 'are'}"
