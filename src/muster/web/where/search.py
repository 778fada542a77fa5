"""What of the map matches a word, or is where a job runs: those marks stand out, the others step back."""

from collections.abc import Callable, Iterable

import msgspec

from muster.layout.geometry import Level, gpu_id, node_id
from muster.model.units import show_count
from muster.server.answers_map import Where
from muster.server.seeing.scene import Holder
from muster.web.where.scope import Scope


class Hits(msgspec.Struct, frozen=True):
    """The boxes that stand out: GPUs, nodes and racks. ``is_mine``: where one job runs."""

    boxes: frozenset[str]
    gpus: int
    nodes: int
    is_mine: bool = False

    def sentence(self, word: str) -> str:
        if not self.nodes:
            return f"Nothing in view is called “{word}”: no node, job, person, effort or purpose."
        gpus = f"{show_count(self.gpus, 'GPU')} on " if self.gpus else ""
        match = "match" if (self.gpus or self.nodes) != 1 else "matches"
        return f"{gpus}{show_count(self.nodes, 'node')} {match} “{word}”."


def found(scope: Scope, word: str) -> Hits:
    """By the names of nodes and of whoever holds them; a node is found with all its GPUs."""
    matches = _matcher(word)
    low = word.casefold()
    named = {box.id for box in scope.boxes if box.level is Level.NODE and low in box.name.casefold()}
    nodes = {
        box.id
        for box in scope.boxes
        if box.level is Level.NODE and matches(scope.scene.nodes[box.id].holders)
    }
    gpus = [
        (box.id, box.parent or "")
        for box in scope.boxes
        if box.level is Level.GPU and (box.parent in named or matches(scope.scene.gpus[box.id].holders))
    ]
    return _hits(scope, {gpu for gpu, _ in gpus}, named | nodes | {node for _, node in gpus})


def where_runs(scope: Scope, where: Where) -> Hits:
    gpus = {gpu_id(place.node, gpu.number) for place in where.places for gpu in place.gpus}
    nodes = {node_id(place.node) for place in where.places}
    return msgspec.structs.replace(_hits(scope, gpus, nodes), is_mine=True)


def _hits(scope: Scope, gpus: set[str], nodes: set[str]) -> Hits:
    in_view = {box.id: box.parent for box in scope.boxes if box.level in (Level.NODE, Level.GPU)}
    racks = {in_view[node] for node in nodes if node in in_view}
    boxes = gpus | nodes | {rack for rack in racks if rack}
    return Hits(frozenset(boxes), len(gpus & in_view.keys()), len(nodes & in_view.keys()))


def _matcher(word: str) -> Callable[[Iterable[Holder]], bool]:
    """Each job is looked at once, however many GPUs it holds."""
    low = word.casefold()
    known: dict[str, bool] = {}

    def is_meant(holder: Holder) -> bool:
        meant = known.get(holder.id)
        if meant is None:
            meant = known[holder.id] = low == holder.id.casefold() or low in _text(holder)
        return meant

    return lambda holders: any(map(is_meant, holders))


def _text(holder: Holder) -> str:
    words = (holder.name, holder.owner, holder.answers, holder.team, holder.effort, holder.purpose)
    return "\n".join(filter(None, words)).casefold()
