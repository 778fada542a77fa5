"""``/stack``: what stands on what, from rack to process?

Of the whole place, of one node, or of one job up to its processes. Where there is only one machine, the whole
place goes up to processes, too.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from muster.model.errors import MusterError
from muster.server.people import Person
from muster.server.seeing.stack_answers import Layer, Stack
from muster.web.bands import MOST_CARDS, bands_of, load_bar
from muster.web.desk import Desk
from muster.web.loads import Loads
from muster.web.sheet import Cell, Sheet, Table, Visit

_MOST_LETTERS = 200
_MOST_JOBS = 12  # of one machine, whose processes are looked at
_COLUMNS = (
    "layer",
    "id",
    "name",
    "kind",
    "state",
    "stands_on",
    "gpus",
    "gpus_held",
    "gpus_used",
    "cpus",
    "cpus_held",
    "cpus_used",
    "memory_bytes",
    "memory_held_bytes",
    "memory_used_bytes",
    "unknown",
)


class Asked(msgspec.Struct, frozen=True):
    job: str | None = None
    node: str | None = None


class StackPage:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        asked = asked_in(visit.query)
        found = await self._stack(visit.person, asked)
        nodes = [node for rack in found.bottom.children for node in rack.children]
        left_out = sum(rack.left_out for rack in found.bottom.children)
        if asked.job is None and len(nodes) == 1 and not left_out:
            found = await self._with_processes(visit.person, found, nodes[0])
        as_strips = asked.job is None and (len(nodes) > MOST_CARDS or left_out > 0)
        loads = Loads(self._desk.live.scene())
        return Sheet(
            template="stack.html",
            title="Stack",
            sentence=found.sentence,
            data=found,
            table=Table(_COLUMNS, [_row(layer, on) for layer, on in _all(found.bottom, None)]),
            more={
                "asked": asked,
                "bands": bands_of(found.bottom, found.layers, loads, as_strips=as_strips),
                "as_strips": as_strips,
                "load_bar": load_bar,
                "gpu_share": loads.gpu,
            },
            scripts=("use.css", "stack.css", "gantt.js"),
        )

    async def _stack(self, person: Person, asked: Asked) -> Stack:
        found: Stack = await self._desk.get(person, "/stack", job=asked.job, node=asked.node)
        return found

    async def _with_processes(self, person: Person, found: Stack, node: Layer) -> Stack:
        """Between the one machine and its jobs, what holds them; above them, who they are."""
        jobs = [layer for layer in node.children if layer.layer == "job"]
        looked = await asyncio.gather(*(self._looked(person, job) for job in jobs[:_MOST_JOBS]))
        node.children = [one for some in looked for one in some] + jobs[_MOST_JOBS:]
        return msgspec.structs.replace(found, layers=layers_of(found.bottom))

    async def _looked(self, person: Person, job: Layer) -> list[Layer]:
        """What stands on the node of this job; the job alone, if it has ended meanwhile."""
        try:
            stack = await self._stack(person, Asked(job=job.id))
        except MusterError:
            return [job]
        return [one for rack in stack.bottom.children for node in rack.children for one in node.children]


def asked_in(query: Mapping[str, str]) -> Asked:
    job, node = (query.get(name, "").strip()[:_MOST_LETTERS] or None for name in ("job", "node"))
    return Asked(job, node)


def layers_of(bottom: Layer) -> list[str]:
    """The words of those that are there, from the bottom up: each above all that it stands on."""
    depths: dict[str, int] = {}
    for layer, depth in _depths(bottom, 0):
        depths[layer] = max(depth, depths.get(layer, 0))
    return sorted(depths, key=lambda layer: depths[layer])


def _depths(layer: Layer, depth: int) -> Iterator[tuple[str, int]]:
    yield layer.layer, depth
    for child in layer.children:
        yield from _depths(child, depth + 1)


# --- As a table -----------------------------------------------------------------------------------------


def _all(layer: Layer, on: str | None) -> Iterator[tuple[Layer, str | None]]:
    yield layer, on
    for child in layer.children:
        yield from _all(child, layer.id)


def _row(layer: Layer, on: str | None) -> list[Cell]:
    amounts = [layer.has, layer.held, layer.used]

    def each(name: str) -> Sequence[Cell]:
        return [None if one is None else getattr(one, name) for one in amounts]

    who: list[Cell] = [layer.layer, layer.id, layer.name, layer.kind, layer.state, on]
    return [*who, *each("gpus"), *each("cpus"), *each("memory_bytes"), "; ".join(layer.unknown)]
