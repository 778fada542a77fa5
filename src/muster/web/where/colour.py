"""What colours tell: what GPUs do, whose they are, for which effort, or how much of them is used.

Of people and efforts those that hold most have a colour and a pattern of their own, all others share one.
How much is used has five steps, of one colour that gets stronger.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from muster.layout.geometry import Box, Level
from muster.layout.states import HUES, State
from muster.layout.svg_marks import Load
from muster.server.seeing.scene import GpuNow, Tally
from muster.web.where.asked import SHORT, Colour
from muster.web.where.scope import Scope

_OTHERS = len(HUES) - 1
_STEPS = 5
_UNMEASURED = "ux"
_USES = [f"u{step}" for step in range(_STEPS)]
_HELD = (State.WORKING, State.IDLE)
NOBODY = "(no effort)"


class Entry(msgspec.Struct, frozen=True):
    """A line of the legend. ``kind``: how it looks, and what marks are called by the script."""

    kind: str
    name: str
    count: int


class Colouring:
    """How GPUs and bars are coloured. For states nothing has to be said: they have their own looks."""

    def __init__(self, colour: Colour, scope: Scope) -> None:
        self.colour, self._scope = colour, scope
        self._kinds: dict[str, str] = {}  # of people or efforts
        self.entries: list[Entry] = []
        self._bars: dict[str, Counter[str]] = {}
        if colour in (Colour.OWNER, Colour.EFFORT):
            self._name(_gpus(scope))
        if colour is not Colour.STATE:
            self._count(_gpus(scope))

    def kind(self, gpu: GpuNow) -> str:
        """Empty: it looks as its state does."""
        if self.colour is Colour.STATE or not gpu.holders or gpu.state not in _HELD:
            return ""
        if self.colour is Colour.USE:
            return use_kind(gpu.share)
        return self._kinds.get(self._whose(gpu), f"c{_OTHERS}")

    def segments(self, box: Box) -> Sequence[tuple[str, int]]:
        """Of a bar: first what has a colour, then the other states."""
        if self.colour is Colour.USE:
            return [(use_kind(self._scope.tallies[box.id].share) if _held(self._scope, box) else "free", 1)]
        found = self._bars.get(box.id, Counter())
        kinds = [entry.kind for entry in self.entries] + [SHORT[state] for state in State]
        return [(kind, found[kind]) for kind in kinds]

    def load_kind(self, load: Load) -> str:
        """What has no GPUs is coloured by its use, too."""
        return use_kind(load.used) if self.colour is Colour.USE and load.held else ""

    def _whose(self, gpu: GpuNow) -> str:
        first = gpu.holders[0]
        return first.owner if self.colour is Colour.OWNER else first.effort or NOBODY

    def _name(self, gpus: Iterable[tuple[Box, GpuNow]]) -> None:
        """The most frequent first; who has as many, by name."""
        held = Counter(self._whose(gpu) for _, gpu in gpus if gpu.holders and gpu.state in _HELD)
        ranked = sorted(held.items(), key=lambda one: (-one[1], one[0]))
        # One that would be the only other has the last colour for itself.
        own = ranked if len(ranked) <= len(HUES) else ranked[:_OTHERS]
        self._kinds = {name: f"c{at}" for at, (name, _) in enumerate(own)}
        self.entries = [Entry(self._kinds[name], name, count) for name, count in own]
        rest = ranked[len(own) :]
        if rest:
            self.entries.append(Entry(f"c{_OTHERS}", f"{len(rest)} others", sum(count for _, count in rest)))

    def _count(self, gpus: Iterable[tuple[Box, GpuNow]]) -> None:
        """Of every node and rack, the kinds inside; of all, the steps of use."""
        racks = {box.id: box.parent or "" for box in self._scope.boxes if box.level is Level.NODE}
        total: Counter[str] = Counter()
        for box, gpu in gpus:
            node = box.parent or ""
            kind = self.kind(gpu) or SHORT[gpu.state]
            total[kind] += 1
            if self.colour is not Colour.USE:
                self._bars.setdefault(node, Counter())[kind] += 1
                self._bars.setdefault(racks[node], Counter())[kind] += 1
        if self.colour is Colour.USE:
            names = [f"{20 * at}–{20 * at + 20} %" for at in range(_STEPS)]
            steps = [*zip(_USES, names, strict=True), (_UNMEASURED, "not measured")]
            self.entries = [Entry(kind, name, total[kind]) for kind, name in steps]


def use_kind(share: float | None) -> str:
    return _UNMEASURED if share is None else _USES[min(_STEPS - 1, int(max(0.0, share) * _STEPS))]


def _gpus(scope: Scope) -> Iterable[tuple[Box, GpuNow]]:
    scene = scope.scene
    return ((box, scene.gpus[box.id]) for box in scope.boxes if box.level is Level.GPU)


def _held(scope: Scope, box: Box) -> bool:
    tally: Tally = scope.tallies[box.id]
    return any(tally.of(state) for state in _HELD)
